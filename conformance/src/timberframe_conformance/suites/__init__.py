"""The suites: each yields cases for a device."""

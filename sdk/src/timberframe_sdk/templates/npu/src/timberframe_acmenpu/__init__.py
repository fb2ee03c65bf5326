"""The device ACMENPU for Timberframe."""

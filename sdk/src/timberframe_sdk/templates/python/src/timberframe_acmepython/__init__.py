"""The device ACMEPYTHON for Timberframe."""

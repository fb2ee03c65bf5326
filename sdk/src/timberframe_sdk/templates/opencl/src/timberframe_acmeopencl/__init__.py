"""The device ACMEOPENCL for Timberframe."""

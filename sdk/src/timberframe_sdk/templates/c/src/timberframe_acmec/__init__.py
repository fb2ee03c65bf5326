"""The device ACMEC for Timberframe."""

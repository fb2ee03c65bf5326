"""The command `timberframe-sdk`."""

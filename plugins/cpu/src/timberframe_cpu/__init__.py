"""The CPU device of Timberframe."""

"""What a Timberframe device plugin imports."""

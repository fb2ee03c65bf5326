"""What devices of the SDK, and our own, run nodes with: loops on the host, what is kept of constants, trace events."""

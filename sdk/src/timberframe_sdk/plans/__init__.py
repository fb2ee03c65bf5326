"""The geometry of ops, worked out once for the kernels of all devices."""

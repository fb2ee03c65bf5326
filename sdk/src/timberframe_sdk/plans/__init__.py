"""The geometry of ops, worked out once for the kernels of all devices.

What a function shares with the definition of an op it imports itself: devices load these modules with all kernels, and
most programs have few of the ops.
"""

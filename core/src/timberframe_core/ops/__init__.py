"""Declarations of all ops, one block each, in TensorFlow's families. Nothing here computes on a device.

A module is imported, which puts its ops into the registry, when one of them is first looked for. `definition` has what
defines an op.
"""

"""Declarations of all ops, one block each, by family. Nothing here computes on a device."""

"""Ops that make, describe, move and choose elements, regardless of their values: TensorFlow's array_ops."""

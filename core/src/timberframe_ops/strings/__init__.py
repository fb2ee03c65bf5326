"""Ops on strings: TensorFlow's string_ops."""

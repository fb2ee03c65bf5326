"""Ops on sparse tensors: TensorFlow's sparse_ops."""

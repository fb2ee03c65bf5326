"""Ops that read files: TensorFlow's io_ops."""

"""Ops on images: TensorFlow's image_ops."""

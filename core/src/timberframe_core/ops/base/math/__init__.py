"""Arithmetic by element, comparisons, reductions and products: TensorFlow's math_ops."""

"""Decompositions, equations and sums of products: TensorFlow's linalg_ops."""

"""Ops that make, ask for, move and choose elements, whatever these mean: TensorFlow's array_ops."""

"""Activations, convolutions, pooling, normalisation and losses of neural networks: TensorFlow's nn_ops."""

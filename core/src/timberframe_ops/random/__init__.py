"""Random numbers: TensorFlow's random_ops and stateless_random_ops."""

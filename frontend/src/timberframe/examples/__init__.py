"""`tf.examples`: what TensorFlow 1 brought for its tutorials."""

from timberframe.examples import tutorials as tutorials

__all__ = ["tutorials"]

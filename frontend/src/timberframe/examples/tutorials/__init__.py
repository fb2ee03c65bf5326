"""`tf.examples.tutorials`: the reader of MNIST's files."""

from timberframe.examples.tutorials import mnist as mnist

__all__ = ["mnist"]

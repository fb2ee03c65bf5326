"""`tf.examples.tutorials.mnist`: handwritten digits from files of one's own."""

from timberframe.examples.tutorials.mnist import input_data as input_data

__all__ = ["input_data"]

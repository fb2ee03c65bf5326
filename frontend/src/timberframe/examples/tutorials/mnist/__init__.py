"""`tf.examples.tutorials.mnist`: handwritten digits from files of one's own, and the tutorial's network."""

from timberframe.examples.tutorials.mnist import input_data as input_data
from timberframe.lazy import lazy_names as _lazy_names

__getattr__ = _lazy_names(__name__, {"mnist": "timberframe.examples.tutorials.mnist.mnist"})

__all__ = ["input_data"]

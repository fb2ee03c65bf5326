"""`tf.python`: those of TensorFlow's own modules that programs import by their paths."""

from timberframe.lazy import lazy_names as _lazy_names

__getattr__ = _lazy_names(__name__, {"client": "timberframe.python.client"})

"""`tf.python.client`: sessions and the list of devices."""

from timberframe.lazy import lazy_names as _lazy_names

__getattr__ = _lazy_names(__name__, {"device_lib": "timberframe.python.client.device_lib"})

"""`tf.python.client`: sessions and the list of devices."""

from timberframe.lazy import lazy_names as _lazy_names

__getattr__ = _lazy_names(__name__, {name: f"timberframe.python.client.{name}" for name in ("device_lib", "timeline")})

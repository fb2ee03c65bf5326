"""`tf.image`: operations on images.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import namespace as _namespace
from timberframe.lazy import lazy_names as _lazy_names

__all__ = sorted(_namespace("image"))

globals().update(_namespace("image"))


__getattr__ = _lazy_names(__name__, {})


def __dir__() -> list[str]:
    return __all__

"""`tf.math`: mathematical functions.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import namespace as _namespace
from timberframe.lazy import lazy_names as _lazy_names

_LATER = {"confusion_matrix": "timberframe.metrics.confusion:confusion_matrix"}

__all__ = sorted([*_namespace("math"), *_LATER])

globals().update(_namespace("math"))


__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

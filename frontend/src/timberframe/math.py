"""`tf.math`: mathematical functions.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import offered as _offered
from timberframe.lazy import lazy_names as _lazy_names

_LATER = {**_offered("math"), "confusion_matrix": "timberframe.metrics.confusion:confusion_matrix"}
__all__ = sorted(_LATER)
__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

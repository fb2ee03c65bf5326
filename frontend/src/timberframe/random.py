"""`tf.random`: random numbers and their seeds.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import offered as _offered
from timberframe.lazy import lazy_names as _lazy_names

_LATER = _offered("random")

__all__ = sorted(_LATER)
__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

"""`tf.linalg`: linear algebra.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import offered as _offered
from timberframe.lazy import lazy_names as _lazy_names

_LATER = _offered("linalg")

__all__ = sorted(_LATER)
__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

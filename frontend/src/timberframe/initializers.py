"""`tf.initializers`: functions that make the first value of a variable.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import offered as _offered
from timberframe.lazy import lazy_names as _lazy_names

_VARIABLES = ("global_variables", "local_variables", "variables")
_LATER = {
    **_offered("initializers"),
    **{name: f"timberframe.api.variable_collections:{name}_initializer" for name in _VARIABLES},
    "tables_initializer": "timberframe.api.lookup:tables_initializer",
}
__all__ = sorted(_LATER)
__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

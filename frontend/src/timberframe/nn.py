"""`tf.nn`: functions that neural networks are made of.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from timberframe.api import offered as _offered
from timberframe.lazy import lazy_names as _lazy_names

_DYNAMIC = ("bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn")
_STATIC = ("static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn")
_LATER = {
    **_offered("nn"),
    **{name: f"timberframe.recurrent.dynamic:{name}" for name in _DYNAMIC},
    **{name: f"timberframe.recurrent.static:{name}" for name in _STATIC},
    "rnn_cell": "timberframe.recurrent.rnn_cell",
}
__all__ = sorted(_LATER)
__getattr__ = _lazy_names(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__

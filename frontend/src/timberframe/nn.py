"""`tf.nn`: functions that neural networks are made of.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("nn"))

globals().update(_namespace("nn"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.nn has no function {name!r}")


def __dir__() -> list[str]:
    return __all__

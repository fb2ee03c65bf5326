"""`tf.initializers`: functions that make the first value of a variable.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("initializers"))

globals().update(_namespace("initializers"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.initializers has no function {name!r}")


def __dir__() -> list[str]:
    return __all__

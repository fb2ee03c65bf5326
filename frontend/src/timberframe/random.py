"""`tf.random`: random numbers and their seeds.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("random"))

globals().update(_namespace("random"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.random has no function {name!r}")


def __dir__() -> list[str]:
    return __all__

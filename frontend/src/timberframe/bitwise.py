"""`tf.bitwise`: operations on the bits of integers.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("bitwise"))

globals().update(_namespace("bitwise"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.bitwise has no function {name!r}")


def __dir__() -> list[str]:
    return __all__

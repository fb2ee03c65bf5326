"""`tf.lookup`: hash tables.

They are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("lookup"))

globals().update(_namespace("lookup"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.lookup has no name {name!r}")


def __dir__() -> list[str]:
    return __all__

"""`tf.initializers`: functions that make the first value of a variable.

Which functions are here is told by the families' modules; see `timberframe.api`.
"""

from __future__ import annotations

from typing import Any

from timberframe.api import namespace

globals().update(namespace("initializers"))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"tf.initializers has no function {name!r}")

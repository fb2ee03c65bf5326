"""`tf.math`: mathematical functions.

Which functions are here is told by the families' modules; see `timberframe.api`.
"""

from __future__ import annotations

from typing import Any

from timberframe.api import namespace

globals().update(namespace("math"))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"tf.math has no function {name!r}")

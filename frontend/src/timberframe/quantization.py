"""`tf.quantization`: quantized numbers.

Its functions are defined in the modules of `timberframe.api`, which says how.
"""

from typing import Any as _Any

from timberframe.api import namespace as _namespace

__all__ = sorted(_namespace("quantization"))

globals().update(_namespace("quantization"))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"tf.quantization has no function {name!r}")


def __dir__() -> list[str]:
    return __all__

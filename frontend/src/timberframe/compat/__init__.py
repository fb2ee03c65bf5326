"""`tf.compat`: TensorFlow 1's API by the name that TensorFlow 2 gives it, and texts of either type.

`import timberframe.compat.v1 as tf` is `import timberframe as tf`. `python -m timberframe.compat` runs programs that
import tensorflow, and lists what they use that is not here.
"""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from timberframe.api.framework import dimension_value as dimension_value
from timberframe.lazy import UnknownNameError
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.tensor_shape import TensorShape

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Returns a text as bytes; bytes as they are. InvalidTypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    raise InvalidTypeError(f"tf.compat.as_bytes: got {type(bytes_or_text).__name__}; bytes or a text is required")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Returns bytes as a text; a text as it is. InvalidTypeError for anything else."""
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise InvalidTypeError(f"tf.compat.as_text: got {type(bytes_or_text).__name__}; bytes or a text is required")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Returns bytes as a text, and anything else as `str` makes it."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Returns the text of a path object; anything else as it is."""
    return as_text(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """Returns the Dimension of a shape at an index, an unknown one where the rank is unknown."""
    found: Dimension = TensorShape(shape)[index]
    return found


def __getattr__(name: str) -> Any:
    if name in ("v1", "v2"):
        import importlib

        return importlib.import_module("timberframe.compat.v1")
    raise UnknownNameError(__name__, name)

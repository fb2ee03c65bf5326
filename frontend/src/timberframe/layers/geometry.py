"""Arguments that layers of windows share: sizes for each spatial axis, padding, the order of axes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.tensor_shape import TensorShape

LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def sizes_of(value: Any, rank: int, what: str) -> tuple[int, ...]:
    """Returns one integer for each spatial axis, from as many or one for all; a shape will do, and sizes of one."""
    parts = tuple(value) if isinstance(value, list | tuple | TensorShape | np.ndarray) else (value,) * rank
    given = tuple(-1 if isinstance(v, bool) else _integer(v) for v in parts)
    if len(given) != rank or min(given) < 1:
        raise InvalidArgumentError(
            f"tf.layers: {what} is {value!r}; a positive integer, or {rank} of them, is required"
        )
    return given


def _integer(value: Any) -> int:
    """Returns an integer of any type, else -1."""
    try:
        return operator.index(value)
    except (TypeError, ValueError):
        return -1


def padding_of(value: str) -> str:
    """VALID or SAME; the letters' case is free."""
    if str(value).upper() not in ("VALID", "SAME"):
        raise InvalidArgumentError(f"tf.layers: padding is {value!r}; 'valid' or 'same' is required")
    return str(value).upper()


def channels_first(data_format: str) -> bool:
    """Returns whether channels stand before the spatial axes."""
    if data_format not in ("channels_first", "channels_last"):
        raise InvalidArgumentError(
            f"tf.layers: data_format is {data_format!r}; 'channels_last' or 'channels_first' is required"
        )
    return data_format == "channels_first"


def window_length(length: int | None, window: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """Returns how many windows fit along an axis."""
    if length is None:
        return None
    reach = (window - 1) * dilation + 1
    return -(-length // stride) if padding == "SAME" else max(-(-(length - reach + 1) // stride), 0)


def transposed_length(length: Any, window: int, padding: str, stride: int) -> Any:
    """Returns the length whose windows are `length`; an integer or a tensor."""
    return length * stride if padding == "SAME" else length * stride + max(window - stride, 0)

"""The affine map that cells and decoders of `tf.contrib` make of several tensors."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.framework import convert_to_tensor
from timberframe.api.initializers import zeros_initializer
from timberframe.api.variable_scope import get_variable
from timberframe.recurrent.base import affine


def linear(parts: list[Any], size: int) -> Any:
    """concat(parts, 1) . kernel + bias, [batch, size]; kernel and bias are variables of the current scope."""
    joined: Any = convert_to_tensor(parts[0]) if len(parts) == 1 else concat(parts, 1)
    kernel = get_variable("kernel", [joined.shape.as_list()[1], size], joined.dtype)
    return affine([joined], kernel, get_variable("bias", [size], joined.dtype, zeros_initializer()))

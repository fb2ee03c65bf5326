"""Initializers: callables that make the first value of a variable from its shape and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.constants import filled
from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import constant_op, convert_to_tensor, to_array
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import StaticShape, format_shape, num_elements

__all__ = ["constant_initializer", "ones_initializer", "zeros_initializer"]

NAMESPACES = {"initializers": ("constant", "identity", "ones", "zeros")}


def static_sizes(shape: Any) -> StaticShape:
    """Returns the sizes of a shape, all of which must be known."""
    sizes = as_shape(shape)
    if sizes is None or None in sizes:
        raise InvalidArgumentError(f"initializer: shape is {format_shape(sizes)}; every size must be known")
    return tuple(size for size in sizes if size is not None)


_STORED = 1 << 16
"""Elements up to which a first value is a constant, which takes memory; the ops that fill more make graphs larger."""


class Initializer:
    """Base of initializers: objects that make a tensor of a shape, and that a dict of arguments describes."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Returns the first value of a variable.

        dtype: the initializer's own if None; partition_info: of a part of one.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments from which `from_config` makes an equal initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Returns an initializer of this class with the arguments of `get_config`."""
        return cls(**config)


class constant_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with a value, or with the elements of a list or array in row-major order.

    dtype: of the variable where its own is not given. verify_shape: whether a list must have the variable's shape.
    """

    def __init__(self, value: Any = 0, dtype: Any = float32, verify_shape: bool = False) -> None:
        self.value = value
        self.dtype = as_dtype(dtype)
        self.verify_shape = verify_shape

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        sizes, kind = static_sizes(shape), as_dtype(dtype) if dtype is not None else self.dtype
        array, _ = to_array(self.value, kind)
        if array.size == 1 and not (self.verify_shape and array.shape != sizes):
            return filled(sizes, kind, array.item(), "Const", _STORED)
        if array.size != num_elements(sizes) or (self.verify_shape and array.shape != sizes):
            raise InvalidArgumentError(
                f"initializer: value has shape {format_shape(array.shape)}; it must suit {format_shape(sizes)}"
            )
        return constant_op(array.reshape(sizes), kind)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value, "dtype": self.dtype.name}


class zeros_initializer(constant_initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with zeros (false, empty strings)."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(0, dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else as_dtype(dtype)
        return filled(static_sizes(shape), kind, 0, "zeros", _STORED)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class ones_initializer(constant_initializer):  # noqa: N801 - TensorFlow's name
    """Fills a variable with ones (true)."""

    def __init__(self, dtype: Any = float32) -> None:
        super().__init__(1, dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else as_dtype(dtype)
        return filled(static_sizes(shape), kind, 1, "ones", _STORED)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class identity(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes a matrix with `gain` on its main diagonal and zeros elsewhere."""

    def __init__(self, gain: float = 1.0, dtype: Any = float32) -> None:
        self.gain = gain
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        sizes, kind = static_sizes(shape), as_dtype(dtype) if dtype is not None else self.dtype
        if len(sizes) != 2:
            raise InvalidArgumentError(f"initializer: shape is {format_shape(sizes)}; an identity matrix has rank 2")
        return convert_to_tensor((np.eye(*sizes) * self.gain).astype(kind.numpy), kind)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "dtype": self.dtype.name}


zeros, ones, constant = zeros_initializer, ones_initializer, constant_initializer

"""TensorSpec: dtype and shape of a tensor that is to come."""

from __future__ import annotations

from typing import Any

from timberframe_core.dtypes import DType, as_dtype, float32
from timberframe_core.graph.tensor_shape import TensorShape


class TensorSpec:
    """What is known of a tensor: shape, of which sizes may be None, dtype and a name."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Returns the spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name."""
        return self._name

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Returns whether a tensor, or one of another spec, may be one of this spec."""
        return self._dtype is spec_or_tensor.dtype.base_dtype and self._shape.is_compatible_with(spec_or_tensor.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self._shape.as_tuple(), self._dtype, self._name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

"""IndexedSlices: some rows of a tensor, as the gradient of a lookup gives them."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.ops.definition.opdef import is_known


class IndexedSlicesValue(NamedTuple):
    """What a Session returns for IndexedSlices: arrays, with None for a dense_shape that it does not have."""

    values: Any
    indices: Any
    dense_shape: Any


class IndexedSlices:
    """Some rows of a tensor: row `indices[i]` is `values[i]`; a row named twice is the sum of both.

    dense_shape is the shape of the whole tensor. Used as a tensor it becomes dense, with zeros elsewhere; that needs
    dense_shape.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        known = None if self.dense_shape is None else self.dense_shape.host_value
        return TensorShape([int(d) for d in known] if known is not None and is_known(known) else None)

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self.values.op

    @property
    def graph(self) -> Graph:
        """The graph of the values."""
        return self.values.graph

    @property
    def name(self) -> str:
        """The name of the values."""
        return self.values.name

    @property
    def device(self) -> str:
        """The device asked for where the values are made."""
        return self.values.device

    def consumers(self) -> list[Operation]:
        """Returns the operations of the graph that have its values or indices as an input."""
        return [*dict.fromkeys([*self.values.consumers(), *self.indices.consumers()])]

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(apply_op("Neg", [self.values]), self.indices, self.dense_shape)

    def fetch_parts(self) -> Any:
        """Returns what a Session fetches for it, and how the values are put together."""
        parts = [self.values, self.indices, *([] if self.dense_shape is None else [self.dense_shape])]
        return parts, lambda found: IndexedSlicesValue(*found, *[None] * (3 - len(found)))

    def __tf_tensor__(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        if self.dense_shape is None:
            raise InvalidArgumentError(f"IndexedSlices '{self.name}': has no dense_shape; a dense tensor needs one")
        rows = apply_op("GatherV2", [self.dense_shape, 0, 0])
        dense: Tensor = apply_op("UnsortedSegmentSum", [self.values, self.indices, rows], name=name)
        dense.set_shape(self.shape)
        return dense

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"

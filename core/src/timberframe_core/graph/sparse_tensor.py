"""SparseTensor: indices and values of the elements that a tensor has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from timberframe_core.dtypes import DType, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.defaults import default_session
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.ops.definition.opdef import is_known
from timberframe_core.shapes import compatible, format_shape, rank_of_sparse


class SparseTensorValue(NamedTuple):
    """The arrays of a sparse tensor: what a Session returns for one, and what may be given in place of one."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """Element `indices[i]` is `values[i]`, and all that are not named are missing.

    indices: int64 [elements, rank]. values: [elements]. dense_shape: int64 [rank], the sizes of the whole tensor.
    Raises InvalidArgumentError where one of them is known to have another rank.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = convert_to_tensor(indices, int64, "indices")
        self.values = convert_to_tensor(values, name="values")
        self.dense_shape = convert_to_tensor(dense_shape, int64, "dense_shape")
        for part, rank in (("indices", 2), ("values", 1), ("dense_shape", 1)):
            known = getattr(self, part).static_shape
            if known is not None and len(known) != rank:
                shape = format_shape(known)
                raise InvalidArgumentError(f"SparseTensor: {part} has shape {shape}; rank {rank} is required")
        self._declared = TensorShape(None)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Returns the tensor of a SparseTensorValue; a SparseTensor is that one itself."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        return cls(*sparse_tensor_value)

    def __mul__(self, other: Any) -> SparseTensor:
        """With a dense tensor that broadcasts to the shape, element by element."""
        return self._by_element("SparseDenseCwiseMul", other)

    def __truediv__(self, other: Any) -> SparseTensor:
        """By a dense tensor that broadcasts to the shape, element by element."""
        return self._by_element("SparseDenseCwiseDiv", other)

    def _by_element(self, op: str, other: Any) -> SparseTensor:
        dense = convert_to_tensor(other, self.dtype)
        values = apply_op(op, [self.indices, self.values, self.dense_shape, dense])
        return SparseTensor(self.indices, values, self.dense_shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        known = self.dense_shape.host_value
        if known is not None and is_known(known):
            return TensorShape([int(d) for d in known])
        rank = rank_of_sparse(self.indices.static_shape, self.dense_shape.static_shape)
        return TensorShape(None if rank is None else [None] * rank).merge_with(self._declared)

    def set_shape(self, shape: Any) -> None:
        """Adds knowledge about the shape; raises InvalidArgumentError where it contradicts what is known."""
        self._declared = self.shape.merge_with(shape)

    def get_shape(self) -> TensorShape:
        """Returns the static shape of the whole tensor."""
        return self.shape

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

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> SparseTensorValue:
        """Returns the arrays of its parts in `session`, or in the default session."""
        found: SparseTensorValue = default_session(session, self.graph).run(self, feed_dict)
        return found

    def with_values(self, new_values: Any) -> SparseTensor:
        """Returns the tensor with the same elements and other values for them; new_values: of any
        dtype, one for each element.

        Raises InvalidArgumentError where it is known that they are not as many.
        """
        values = convert_to_tensor(new_values, name="values")
        if not compatible(values.static_shape, self.values.static_shape):
            raise InvalidArgumentError(
                f"SparseTensor '{self.name}': with_values is given shape {format_shape(values.static_shape)}; "
                f"one value for each element, {format_shape(self.values.static_shape)}, is required"
            )
        return SparseTensor(self.indices, values, self.dense_shape)

    def consumers(self) -> list[Operation]:
        """Returns the operations of the graph that have one of its parts as an input."""
        found = [op for part in (self.indices, self.values, self.dense_shape) for op in part.consumers()]
        return [*dict.fromkeys(found)]

    def fetch_parts(self) -> Any:
        """Returns what a Session fetches for it, and how the values are put together."""
        parts: list[Tensor] = [self.indices, self.values, self.dense_shape]
        return parts, lambda found: SparseTensorValue(*found)

    def __tf_tensor__(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        raise InvalidTypeError(
            f"SparseTensor '{self.name}': is used as a tensor; tf.sparse_tensor_to_dense makes one of it"
        )

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"

"""Tensors as strings, and back."""

from __future__ import annotations

from typing import Any

from timberframe.api.sparse import parts, sparse_tensor
from timberframe_core.dtypes import string
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor

__all__ = ["deserialize_many_sparse", "parse_tensor", "serialize_many_sparse", "serialize_sparse", "serialize_tensor"]


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Returns a tensor as a scalar string: the bytes of a TensorProto, which `tf.parse_tensor` reads."""
    result: Tensor = apply_op("SerializeTensor", [tensor], None, name)
    return result


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Returns the tensor, of dtype out_type, that a scalar string of `tf.serialize_tensor` holds.

    Running it raises InvalidArgumentError for damaged strings and tensors of another dtype.
    """
    result: Tensor = apply_op("ParseTensor", [serialized], {"out_type": out_type}, name)
    return result


def serialize_sparse(sp_input: Any, name: str | None = None, out_type: Any = string) -> Tensor:
    """Returns a sparse tensor as a vector of 3 strings: its indices, its values and its shape.

    out_type must be tf.string.
    """
    return _serialized("SerializeSparse", sp_input, name, out_type)


def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: Any = string) -> Tensor:
    """Returns the rows of a sparse tensor of rank 2 or more, each as `tf.serialize_sparse`
    gives it: strings [rows, 3].
    """
    return _serialized("SerializeManySparse", sp_input, name, out_type)


def _serialized(op: str, sp_input: Any, name: str | None, out_type: Any) -> Tensor:
    result: Tensor = apply_op(op, parts(sparse_tensor(sp_input, "sp_input")), {"out_type": out_type}, name)
    return result


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Sparse tensors as the rows of one, which has one dimension more and in the others the largest of their sizes.

    serialized_sparse: strings [rows, 3] of `tf.serialize_sparse` or `tf.serialize_many_sparse`, of sparse tensors of
    one rank and dtype. rank: that of the result, where it is known. Running it raises InvalidArgumentError for damaged
    strings and tensors of another dtype.
    """
    indices, values, shape = apply_op("DeserializeManySparse", [serialized_sparse], {"dtype": dtype}, name)
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)

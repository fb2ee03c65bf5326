"""Crosses of the features in the rows of tensors and sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.selection import cast
from timberframe_core.dtypes import int64, string
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue

_HASH_KEY = 0xDECAFCAFFE
"""TensorFlow's."""


def cross(inputs: Sequence[Any], name: str | None = None) -> SparseTensor:
    """Returns all combinations of the features in each row, as texts joined by "_X_".

    inputs: SparseTensors and matrices of strings or integers with one number of rows. The features of SparseTensors
    come first. Returns a SparseTensor [rows, most combinations] of strings; the last input's features change fastest.
    """
    return _crossed("tf.sparse.cross", inputs, False, 0, None, name)


def cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """`tf.sparse.cross` as numbers, int64: below num_buckets, or below 2**63 - 1 for 0; TensorFlow's are the same.

    hash_key: what the hashes begin with.
    """
    return _crossed("tf.sparse.cross_hashed", inputs, True, num_buckets, hash_key, name)


def _crossed(
    function: str, inputs: Sequence[Any], hashed: bool, buckets: int, key: int | None, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, list | tuple):
        raise InvalidTypeError(f"{function}: inputs is {inputs!r}; a list of tensors and SparseTensors is required")
    sparse = [SparseTensor.from_value(x) for x in inputs if isinstance(x, SparseTensor | SparseTensorValue)]
    dense = [_feature(convert_to_tensor(x)) for x in inputs if not isinstance(x, SparseTensor | SparseTensorValue)]
    values = [_feature(x.values) for x in sparse]
    texts = all(x.dtype is string for x in [*values, *dense])
    attrs = {
        "hashed_output": hashed, "num_buckets": buckets, "hash_key": _HASH_KEY if key is None else key,
        "out_type": int64 if hashed else string, "internal_type": string if texts else int64,
    }  # fmt: skip
    given = [[x.indices for x in sparse], values, [x.dense_shape for x in sparse], dense]
    made: Any = apply_op("SparseCross", given, attrs, name=name or "SparseCross")
    return SparseTensor(*made)


def _feature(x: Tensor) -> Tensor:
    return x if x.dtype is string else cast(x, int64)

"""`tf.slice`, `tf.strided_slice` and `tf.newaxis`; `x[...]` on tensors is the core's own."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.slicing import index_dtype, newaxis, strided_slice

__all__ = ["newaxis", "slice", "strided_slice"]


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Returns the block of the input that begins at `begin` and has the sizes `size`; -1 means up to the end."""
    dtype = index_dtype([begin, size])
    vectors = [convert_to_tensor(v, dtype) for v in (begin, size)]
    result: Tensor = apply_op("Slice", [input_, *vectors], None, name)
    return result

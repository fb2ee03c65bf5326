"""Ops that keep sparse tensors in a session and give numbers for them, by which queues can hold them."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.sparse.shapes import check_parts

_STATE = NotDifferentiable("a number of a sparse tensor is no function of its values")
_SPARSE = ("sparse_indices: int64", "sparse_values: T", "sparse_shape: int64")
_NAMES = ("container: string = ''", "shared_name: string = ''")


def _one(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, label="sparse")
    return [()]


def _many(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, label="sparse")
    rows = c.shape_value(2)
    return [(rows[0] if rows else None,)]


for _name, _output, _doc, _shape in (
    ("AddSparseToTensorsMap", "sparse_handle: int64", "the sparse tensor and gives its number", _one),
    (
        "AddManySparseToTensorsMap",
        "sparse_handles: int64",
        "each row of a sparse tensor, which has one dimension less, and gives their numbers",
        _many,
    ),
):
    define_op(
        _name,
        inputs=_SPARSE,
        outputs=[_output],
        attrs=["T: type", *_NAMES],
        doc=f"Keeps {_doc}, in the map of that shared_name (the node's name where it is empty).",
        shape=_shape,
        gradient=_STATE,
        on_host=True,
        stateful=True,
    )


def _taken(c: InferenceContext) -> Sequence[Shape]:
    c.require_rank(0, 1)
    return [(None, None), (None,), (None,)]


define_op(
    "TakeManySparseFromTensorsMap",
    inputs=["sparse_handles: int64"],
    outputs=["sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"],
    attrs=["dtype: type", *_NAMES],
    doc="Takes the sparse tensors of these numbers out of the map, as the rows of one that has one dimension more and "
    "in the others the largest sizes.",
    shape=_taken,
    gradient=_STATE,
    on_host=True,
    stateful=True,
)

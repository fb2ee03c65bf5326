"""Sparse tensors made dense, put in order, and without empty rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import bool_, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, constant, gather, reshape_like, sum_all
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.sparse.shapes import check_inside, check_parts, count_of, flat

_SPARSE = ("indices: int64", "values: T", "dense_shape: int64")


def _dense_shape(c: InferenceContext) -> Sequence[Shape]:
    indices, values = c.shapes[0], c.shapes[2]
    for what, found, most in (("sparse_indices", indices, 2), ("sparse_values", values, 1)):
        if found is not None and len(found) > most:
            raise c.late_error(f"{what} has shape {format_shape(found)}; it must have rank {most} at most")
    if c.shapes[1] is not None and len(c.shapes[1]) != 1:
        raise c.late_error(f"output_shape has shape {format_shape(c.shapes[1])}; it must be a vector")
    return [c.shape_value(1)]


def _to_dense(
    attrs: Attrs, indices: np.ndarray, shape: np.ndarray, values: np.ndarray, default: np.ndarray
) -> np.ndarray:
    count = 1 if indices.ndim == 0 else len(indices)
    rows = indices.reshape(count, -1 if indices.size else max(len(shape), 1))
    if rows.shape[1] != len(shape) or (values.ndim and len(values) != count):
        raise InvalidArgumentError(
            f"sparse_indices has shape {format_shape(indices.shape)} for {values.size} values in the shape "
            f"{shape.tolist()}; each value needs an index with a number for each size"
        )
    if default.ndim:
        raise InvalidArgumentError(f"default_value has shape {format_shape(default.shape)}; it must be a scalar")
    if (shape < 0).any():
        raise InvalidArgumentError(f"output_shape is {shape.tolist()}; sizes must not be negative")
    check_inside(rows, shape, "sparse_indices")
    if attrs["validate_indices"] and count > 1 and (np.diff(flat(rows, shape)) <= 0).any():
        at = int(np.argmax(np.diff(flat(rows, shape)) <= 0)) + 1
        raise InvalidArgumentError(
            f"sparse_indices[{at}] is {rows[at].tolist()} after {rows[at - 1].tolist()}; indices must be in order, "
            "each once"
        )
    dense = np.full(shape.tolist(), default, values.dtype)
    dense[tuple(rows.T)] = values
    return dense


def _to_dense_gradient(op: Any, grad: Any) -> list[Any]:
    indices, shape, values, _ = op.inputs
    rank = apply_op("Cast", [apply_op("Size", [shape])], {"DstT": int32})
    rows = apply_op("Reshape", [indices, apply_op("Pack", [[constant(-1, int32), rank]])])
    found = apply_op("GatherNd", [grad, rows])
    rest = apply_op("Sub", [sum_all(grad), sum_all(found)])
    return [None, None, sum_all(found) if values.static_shape == () else reshape_like(found, values), rest]


define_op(
    "SparseToDense",
    inputs=["sparse_indices: Tindices", "output_shape: Tindices", "sparse_values: T", "default_value: T"],
    outputs=["dense: T"],
    attrs=["validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"],
    doc="A tensor of output_shape with sparse_values (or one for all) at sparse_indices, and default_value elsewhere. "
    "validate_indices: they must be in order, each once.",
    shape=_dense_shape,
    reference=_to_dense,
    gradient=_to_dense_gradient,
    on_host=True,
)


def _reordered_shape(c: InferenceContext) -> Sequence[Shape]:
    rank, count = check_parts(c, label="input"), count_of(c)
    return [(count, rank), (count,)]


def _reorder(attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(flat(indices, shape), kind="stable")
    return indices[order], values[order]


def _reorder_gradient(op: Any, _: Any, grad: Any) -> list[Any]:
    indices, _, shape = op.inputs
    count = apply_op("GatherV2", [apply_op("Shape", [indices]), 0, 0])
    places = apply_op("Range", [0, count, 1])
    ordered = apply_op("SparseReorder", [indices, places, shape])[1]
    return [None, gather(grad, apply_op("InvertPermutation", [ordered])), None]


define_op(
    "SparseReorder",
    inputs=["input_indices: int64", "input_values: T", "input_shape: int64"],
    outputs=["output_indices: int64", "output_values: T"],
    attrs=["T: type"],
    doc="The elements of a sparse tensor in the order of their indices, the last dimension fastest.",
    shape=_reordered_shape,
    reference=_reorder,
    gradient=_reorder_gradient,
    on_host=True,
)


def _filled_shape(c: InferenceContext) -> Sequence[Shape]:
    rank, count = check_parts(c), count_of(c)
    if c.shapes[3] not in (None, ()):
        raise c.late_error(f"default_value has shape {format_shape(c.shapes[3])}; it must be a scalar")
    sizes = c.shape_value(2)
    return [(None, rank), (None,), (sizes[0] if sizes else None,), (count,)]


def _filled(
    attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, default: np.ndarray
) -> tuple[np.ndarray, ...]:
    if not len(shape):
        raise InvalidArgumentError("dense_shape is empty; a sparse tensor with rows is required")
    check_inside(indices, shape)
    count = int(shape[0])
    empty = np.bincount(indices[:, 0], minlength=count) == 0 if count else np.zeros(0, bool)
    added = np.zeros((int(empty.sum()), len(shape)), np.int64)
    added[:, 0] = np.flatnonzero(empty)
    every = np.concatenate([indices, added])
    order = np.argsort(every[:, 0], kind="stable")
    made = np.concatenate([values, np.full(len(added), default, values.dtype)])
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    return every[order], made[order], empty, where[: len(indices)]


def _filled_gradient(op: Any, _: Any, grad: Any, *__: Any) -> list[Any]:
    values, default = apply_op("SparseFillEmptyRowsGrad", [op.outputs[3], grad])
    return [None, values, None, default]


define_op(
    "SparseFillEmptyRows",
    inputs=[*_SPARSE, "default_value: T"],
    outputs=[
        "output_indices: int64", "output_values: T", "empty_row_indicator: bool", "reverse_index_map: int64",
    ],
    attrs=["T: type"],
    doc="A sparse tensor with default_value at the beginning of each row that has no element; which rows had none, and "
    "where each element went.",
    shape=_filled_shape,
    reference=_filled,
    gradient=_filled_gradient,
    on_host=True,
)  # fmt: skip


def _filled_backward(attrs: Attrs, where: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if ((where < 0) | (where >= len(grad))).any():
        raise InvalidArgumentError(f"reverse_index_map leaves the {len(grad)} elements of grad_values; it must not")
    others = np.ones(len(grad), bool)
    others[where] = False
    return grad[where], np.asarray(grad[others].sum(dtype=grad.dtype), grad.dtype)


def _filled_second(op: Any, values: Any, default: Any) -> list[Any]:
    where, grad = op.inputs
    count = apply_op("Shape", [grad], {"out_type": int64})
    kept = apply_op("ScatterNd", [apply_op("ExpandDims", [where, 1]), apply_op("OnesLike", [where]), count])
    fresh = apply_op("Equal", [kept, constant(0, int64)])
    scattered = apply_op("ScatterNd", [apply_op("ExpandDims", [where, 1]), values, count])
    assert fresh.dtype is bool_
    return [None, apply_op("SelectV2", [fresh, default, scattered])]


define_op(
    "SparseFillEmptyRowsGrad",
    inputs=["reverse_index_map: int64", "grad_values: T"],
    outputs=["d_values: T", "d_default_value: T"],
    attrs=["T: type"],
    doc="The gradients of values and default_value of SparseFillEmptyRows.",
    shape=lambda c: [c.shapes[0], ()],
    reference=_filled_backward,
    gradient=_filled_second,
    on_host=True,
)

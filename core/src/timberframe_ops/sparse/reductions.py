"""Sums and largest values along dimensions of sparse tensors, and the softmax of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, constant
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.math.segments import NUMBERS, REALS
from timberframe_ops.sparse.shapes import check_parts, count_of, flat, some, unflat


def _kept(axes: np.ndarray, rank: int) -> list[bool]:
    """For each dimension whether it is kept."""
    wrong = [a for a in axes.ravel().tolist() if not -rank <= a < rank]
    if wrong:
        raise InvalidArgumentError(f"reduction_axes has {wrong[0]} for a tensor of rank {rank}; it must lie inside")
    reduced = {a % rank for a in axes.ravel().tolist()}
    return [i not in reduced for i in range(rank)]


def _groups(
    attrs: Attrs, combine: Any, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the numbers of the elements of the result that are there, their values, and the
    shape without dimensions.
    """
    kept = _kept(axes, len(shape))
    left = shape[kept]
    flat(indices, shape)  # raises where indices leave the shape
    numbers = flat(indices[:, kept], left)
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    made = combine.reduceat(values[order], starts, dtype=values.dtype) if len(found) else values[:0]
    return found, made.astype(values.dtype), left


def _whole_shape(attrs: Attrs, shape: np.ndarray, axes: np.ndarray) -> np.ndarray:
    kept = np.array(_kept(axes, len(shape)), bool)
    return np.where(kept, shape, 1) if attrs["keep_dims"] else shape[kept]


def _dense_shape(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, label="input")
    sizes, axes = c.shape_value(2), c.value(3)
    if sizes is None or axes is None:
        return [None]
    kept = _kept(axes, len(sizes))
    if c.attrs["keep_dims"]:
        return [tuple(d if k else 1 for d, k in zip(sizes, kept, strict=True))]
    return [tuple(d for d, k in zip(sizes, kept, strict=True) if k)]


def _sum_gradient(op: Any, grad: Any) -> list[Any]:
    indices, _, shape, axes = op.inputs
    rank = apply_op("Size", [shape])
    inside = apply_op("FloorMod", [apply_op("Add", [axes, rank]), rank])
    column = apply_op("ExpandDims", [apply_op("Reshape", [inside, constant([-1], axes.dtype)]), 1])
    ones = apply_op("Cast", [apply_op("OnesLike", [apply_op("GatherV2", [column, 0, 1])])], {"DstT": int64})
    hits = apply_op("ScatterNd", [column, ones, apply_op("Shape", [shape])])
    one = apply_op("OnesLike", [shape])
    whole = apply_op("SelectV2", [apply_op("Greater", [hits, constant(0, int64)]), one, shape])
    scale = apply_op("FloorDiv", [shape, apply_op("Maximum", [whole, one])])
    at = apply_op("FloorDiv", [indices, apply_op("Maximum", [scale, one])])
    return [None, apply_op("GatherNd", [apply_op("Reshape", [grad, whole]), at]), None, None]


for _kind, _combine, _types in (("Sum", np.add, NUMBERS), ("Max", np.maximum, REALS)):

    def _reference(attrs: Attrs, *inputs: np.ndarray, combine: Any = _combine) -> np.ndarray:
        found, values, left = _groups(attrs, combine, *inputs)
        made = np.zeros(int(np.prod(left)), values.dtype)
        made[found] = values
        return made.reshape(_whole_shape(attrs, inputs[2], inputs[3]).tolist())

    def _sparse_reference(attrs: Attrs, *inputs: np.ndarray, combine: Any = _combine) -> tuple[np.ndarray, ...]:
        found, values, _ = _groups(attrs, combine, *inputs)
        whole = _whole_shape(attrs, inputs[2], inputs[3])
        return unflat(found, whole), values, whole

    _inputs = ("input_indices: int64", "input_values: T", "input_shape: int64", "reduction_axes: int32")
    _what = f"The {'sum' if _kind == 'Sum' else 'largest'} of the elements of a sparse tensor along dimensions"
    define_op(
        f"SparseReduce{_kind}",
        inputs=_inputs,
        outputs=["output: T"],
        attrs=["keep_dims: bool = false", _types],
        doc=f"{_what}, as a tensor; 0 where there are none.",
        shape=_dense_shape,
        reference=_reference,
        gradient=_sum_gradient
        if _kind == "Sum"
        else MissingGradient("TensorFlow has none of the largest elements of a sparse tensor either"),
        on_host=True,
    )
    define_op(
        f"SparseReduce{_kind}Sparse",
        inputs=_inputs,
        outputs=["output_indices: int64", "output_values: T", "output_shape: int64"],
        attrs=["keep_dims: bool = false", _types],
        doc=f"{_what}, as a sparse tensor.",
        shape=lambda c: (check_parts(c, label="input"), some(None))[1],
        reference=_sparse_reference,
        gradient=MissingGradient("TensorFlow has none of reductions that are sparse either"),
        on_host=True,
    )


def _softmax_shape(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, label="sp")
    return [(count_of(c),)]


def _row_groups(indices: np.ndarray, shape: np.ndarray) -> np.ndarray:
    if len(shape) < 2:
        raise InvalidArgumentError(f"sp_shape is {shape.tolist()}; a rank of 2 or more is required")
    flat(indices, shape)
    return np.unique(flat(indices[:, :-1], shape[:-1]), return_inverse=True)[1].reshape(-1)


def _softmax(attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    groups = _row_groups(indices, shape)
    count = int(groups.max()) + 1 if len(groups) else 0
    largest = np.full(count, -np.inf, values.dtype)
    np.maximum.at(largest, groups, values)
    powers = np.exp(values - largest[groups])
    sums = np.zeros(count, values.dtype)
    np.add.at(sums, groups, powers)
    return np.asarray(powers / sums[groups], values.dtype)


def _softmax_gradient(op: Any, grad: Any) -> list[Any]:
    indices, _, shape = op.inputs
    made = op.outputs[0]
    products = [indices, apply_op("Mul", [made, grad]), shape, constant([-1], "int32")]
    sums = apply_op("Neg", [apply_op("SparseReduceSum", products, {"keep_dims": True})])
    total = apply_op("SparseDenseCwiseAdd", [indices, grad, shape, sums])
    return [None, apply_op("Mul", [total, made]), None]


define_op(
    "SparseSoftmax",
    inputs=["sp_indices: int64", "sp_values: T", "sp_shape: int64"],
    outputs=["output: T"],
    attrs=["T: {half, float, double}"],
    doc="The softmax along the last dimension of a sparse tensor, of the elements that are there.",
    shape=_softmax_shape,
    reference=_softmax,
    gradient=_softmax_gradient,
    on_host=True,
)

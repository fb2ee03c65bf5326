"""Sparse tensors joined, taken apart and given other shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape, rank_of_sparse
from timberframe_ops.math.segments import NUMBERS
from timberframe_ops.sparse.shapes import Parts, check_parts, flat, some, unflat

_NO_GRADIENT = NotDifferentiable("as in TensorFlow, gradients do not flow through parts of sparse tensors here")


def _concat_shape(c: InferenceContext) -> Sequence[Shape]:
    n = c.attrs["N"]
    ranks = {rank_of_sparse(c.shapes[i], c.shapes[2 * n + i]) for i in range(n)} - {None}
    if len(ranks) > 1:
        raise c.late_error(
            f"the inputs have ranks {sorted(r for r in ranks if r is not None)}; equal ones are required"
        )
    parts = [(c.shapes[i], c.shapes[n + i]) for i in range(n)]
    counts = [next((s[0] for s in found if s is not None and s[0] is not None), None) for found in parts]
    total = None if None in counts else sum(x for x in counts if x is not None)
    rank = next(iter(ranks), None)
    return [(total, rank), (total,), (rank,)]


def _concat(attrs: Attrs, *inputs: np.ndarray) -> Parts:
    n = attrs["N"]
    indices, values, shapes = inputs[:n], inputs[n : 2 * n], inputs[2 * n :]
    rank, axis = len(shapes[0]), attrs["concat_dim"]
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"concat_dim is {axis} for tensors of rank {rank}; it must lie inside")
    axis %= rank
    for i, shape in enumerate(shapes):
        if len(shape) != rank or (np.delete(shape, axis) != np.delete(shapes[0], axis)).any():
            raise InvalidArgumentError(
                f"input {i} has shape {shape.tolist()} and input 0 {shapes[0].tolist()}; they must agree but for "
                f"dimension {axis}"
            )
    starts = np.cumsum([0, *(s[axis] for s in shapes)])
    moved = [x + np.eye(1, rank, axis, dtype=np.int64) * start for x, start in zip(indices, starts, strict=False)]
    total = shapes[0].copy()
    total[axis] = starts[-1]
    every = np.concatenate(moved)
    order = np.argsort(flat(every, total), kind="stable")
    return every[order], np.concatenate(values)[order], total


define_op(
    "SparseConcat",
    inputs=["indices: N * int64", "values: N * T", "shapes: N * int64"],
    outputs=["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs=["concat_dim: int", "N: int >= 2", "T: type"],
    doc="Sparse tensors one after the other along a dimension, in the order of the indices.",
    shape=_concat_shape,
    reference=_concat,
    gradient=_NO_GRADIENT,
    on_host=True,
)


def _split_shape(c: InferenceContext) -> Sequence[Shape]:
    n, rank = c.attrs["num_split"], check_parts(c, 1)
    return [*[(None, rank)] * n, *[(None,)] * n, *[(rank,)] * n]


def _split(
    attrs: Attrs, split_dim: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: np.ndarray
) -> tuple[np.ndarray, ...]:
    n, axis = attrs["num_split"], int(split_dim)
    if not -len(shape) <= axis < len(shape):
        raise InvalidArgumentError(f"split_dim is {axis} for a tensor of rank {len(shape)}; it must lie inside")
    axis %= len(shape)
    if n > shape[axis]:
        raise InvalidArgumentError(f"num_split is {n} for a dimension of size {shape[axis]}; it must not be larger")
    least, longer = divmod(int(shape[axis]), n)  # the first `longer` parts have one more
    parts = []
    start = 0
    for i in range(n):
        size = least + (i < longer)
        begin, sizes = np.zeros(len(shape), np.int64), shape.copy()
        begin[axis], sizes[axis] = start, size
        parts.append(_part(indices, values, begin, sizes))
        start += size
    return (*(p[0] for p in parts), *(p[1] for p in parts), *(p[2] for p in parts))


def _part(indices: np.ndarray, values: np.ndarray, begin: np.ndarray, sizes: np.ndarray) -> Parts:
    inside = ((indices >= begin) & (indices < begin + sizes)).all(axis=1)
    return indices[inside] - begin, values[inside], sizes


define_op(
    "SparseSplit",
    inputs=["split_dim: int64", "indices: int64", "values: T", "shape: int64"],
    outputs=["output_indices: num_split * int64", "output_values: num_split * T", "output_shape: num_split * int64"],
    attrs=["num_split: int >= 1", "T: type"],
    doc="Equal parts of a sparse tensor along a dimension; the first are larger by one if it cannot be divided.",
    shape=_split_shape,
    reference=_split,
    gradient=MissingGradient("TensorFlow has none of parts of a sparse tensor either"),
    on_host=True,
)


def _slice(
    attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, start: np.ndarray, size: np.ndarray
) -> Parts:
    if len(start) != len(shape) or len(size) != len(shape):
        raise InvalidArgumentError(
            f"start has {len(start)} elements and size {len(size)}; {len(shape)}, the rank, are required"
        )
    return _part(indices, values, start, np.clip(shape - start, 0, size))


def _slice_gradient(op: Any, _: Any, grad: Any, *__: Any) -> list[Any]:
    indices, _, _, start, _ = op.inputs
    return [None, apply_op("SparseSliceGrad", [grad, indices, start, op.outputs[0]]), None, None, None]


define_op(
    "SparseSlice",
    inputs=["indices: int64", "values: T", "shape: int64", "start: int64", "size: int64"],
    outputs=["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs=["T: type"],
    doc="The part of a sparse tensor that begins at start and has at most these sizes.",
    shape=lambda c: some(check_parts(c)),
    reference=_slice,
    gradient=_slice_gradient,
    on_host=True,
)


def _sliced_backward(
    attrs: Attrs, grad: np.ndarray, indices: np.ndarray, start: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    found = {tuple(row): g for row, g in zip((kept + start).tolist(), grad, strict=True)}
    zero = grad.dtype.type(0)
    return np.array([found.get(tuple(row), zero) for row in indices.tolist()], grad.dtype)


define_op(
    "SparseSliceGrad",
    inputs=["backprop_val_grad: T", "input_indices: int64", "input_start: int64", "output_indices: int64"],
    outputs=["val_grad: T"],
    attrs=[NUMBERS],
    doc="The gradient of the values of SparseSlice: zero for those outside the part.",
    shape=lambda c: [None if c.shapes[1] is None else c.shapes[1][:1]],
    reference=_sliced_backward,
    gradient=MissingGradient("TensorFlow has no second derivative of a part of a sparse tensor either"),
    on_host=True,
)


def _reshaped_shape(c: InferenceContext) -> Sequence[Shape]:
    c.require_rank(0, 2)
    new = c.require_rank(2, 1)
    indices = c.shapes[0]
    return [(None if indices is None else indices[0], new[0]), (new[0],)]


def _reshape(attrs: Attrs, indices: np.ndarray, shape: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes = new.tolist()
    if sizes.count(-1) > 1 or any(d < -1 for d in sizes):
        raise InvalidArgumentError(f"new_shape is {sizes}; one size at most may be -1, and none less")
    total = math.prod(shape.tolist())
    if -1 in sizes:
        rest = math.prod(d for d in sizes if d != -1)
        sizes[sizes.index(-1)] = total // rest if rest else 0
    if math.prod(sizes) != total:
        raise InvalidArgumentError(
            f"new_shape {format_shape(tuple(sizes))} has {math.prod(sizes)} elements; {total}, of {shape.tolist()}, "
            "are required"
        )
    made = np.array(sizes, np.int64)
    return unflat(flat(indices, shape), made), made


define_op(
    "SparseReshape",
    inputs=["input_indices: int64", "input_shape: int64", "new_shape: int64"],
    outputs=["output_indices: int64", "output_shape: int64"],
    doc="The indices of a sparse tensor in another shape of as many elements; -1 is the size that is left.",
    shape=_reshaped_shape,
    reference=_reshape,
    gradient=NotDifferentiable("indices are integers"),
    on_host=True,
)

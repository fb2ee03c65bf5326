"""Reading slices of a tensor at positions that another tensor gives: Gather, GatherV2, GatherNd."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int16, int32, int64
from timberframe_core.ops.definition.gradients import (
    apply_op,
    constant,
    indexed_slices,
    known,
    reshape_like,
    shape_of,
    size_of,
)
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import check_indices, check_tuples
from timberframe_core.shapes import Shape, format_shape, merge_dim

INTEGERS_EMPTY = np.zeros(0, np.int32)
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")


def check_policy(c: InferenceContext) -> None:
    """Checks the attr bad_indices_policy: what happens at an index out of range."""
    policy = c.attrs["bad_indices_policy"]
    if policy not in POLICIES:
        raise c.late_error(f"bad_indices_policy is {policy!r}; it must be one of {', '.join(map(repr, POLICIES))}")


def _gather_shape(c: InferenceContext) -> Sequence[Shape]:
    params, indices = c.shapes
    if params is None or indices is None:
        return [None]
    if not params:
        raise c.error("params has rank 0; it must have rank 1 or more")
    return [indices + params[1:]]


def _gather_v2_shape(c: InferenceContext) -> Sequence[Shape]:
    params, indices, axis_shape = c.shapes
    if axis_shape not in (None, ()):
        raise c.error(f"axis has shape {format_shape(axis_shape)}; it must be a scalar")
    if params is not None and not params:
        raise c.error("params has rank 0; it must have rank 1 or more")
    if indices is None:
        return [None]
    batch = c.attrs["batch_dims"]
    if not -len(indices) <= batch <= len(indices):
        raise c.error(
            f"batch_dims is {batch} for indices of rank {len(indices)}; "
            f"it must lie in [{-len(indices)}, {len(indices)}]"
        )
    batch += len(indices) if batch < 0 else 0
    if params is None:
        return [None]
    value = c.value(2)
    if batch >= len(params):
        raise c.error(f"batch_dims is {batch} for params of rank {len(params)}; it must be below that rank")
    if value is None:
        return [(None,) * (len(params) + len(indices) - 1 - batch)]
    axis = c.axis(int(value), len(params))
    if batch > axis:
        raise c.error(f"batch_dims is {batch} and axis {axis}; batch_dims must not be above axis")
    try:
        shared = tuple(merge_dim(p, i) for p, i in zip(params[:batch], indices[:batch], strict=True))
    except ValueError:
        raise c.error(
            f"params {format_shape(params)} and indices {format_shape(indices)} differ in the first {batch} "
            "dimensions; they must agree"
        ) from None
    return [shared + params[batch:axis] + indices[batch:] + params[axis + 1 :]]


INDEX_OUTSIDE = "index {0} at position {1} is outside [0, {2}); it must name a slice of params"


def _read(params: np.ndarray, where: tuple[np.ndarray, ...]) -> np.ndarray:
    """params[where], which for one string would be bytes and no array."""
    result = np.empty(np.shape(where[0]) + params.shape[len(where) :], params.dtype)
    result[...] = params[where]
    return result


def _gather_reference(attrs: Attrs, params: np.ndarray, indices: np.ndarray) -> np.ndarray:
    check_indices(indices, params.shape[0], INDEX_OUTSIDE)
    return _read(params, (indices.astype(np.int64),))


def gather_v2_reference(attrs: Attrs, params: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
    at = int(axis) % params.ndim
    check_indices(indices, params.shape[at], INDEX_OUTSIDE)
    batch = attrs["batch_dims"] + (indices.ndim if attrs["batch_dims"] < 0 else 0)
    outer, inner = params.shape[batch:at], params.shape[at + 1 :]
    rows = math.prod(params.shape[:batch])
    flat = params.reshape(rows, math.prod(outer), params.shape[at], math.prod(inner))
    wanted = indices.astype(np.int64).reshape(rows, -1) if indices.size else np.zeros((rows, 0), np.int64)
    result = flat[np.arange(rows)[:, None, None], np.arange(flat.shape[1])[None, :, None], wanted[:, None, :]]
    return result.reshape((*indices.shape[:batch], *outer, *indices.shape[batch:], *inner))


def _gather_v2_value(c: InferenceContext) -> list[np.ndarray | None]:
    params, indices, axis = c.values[0], c.value(1), c.value(2)
    if params is None or indices is None or axis is None:
        return [None]
    size = params.shape[int(axis)]
    if np.any((indices < 0) | (indices >= size)):
        return [None]  # the kernel reports it
    return [gather_v2_reference(c.attrs, params, indices, axis)]


def _gather_samples() -> Iterator[Sample]:
    yield Sample((Arg((5,)), Arg(values=[0, 4, 4, 2])))
    yield Sample((Arg((3, 7)), Arg(values=[[2, 0], [1, 1]])))
    yield Sample((Arg((4, 2, 3)), Arg(values=3)))
    yield Sample((Arg((0, 2)), Arg(values=INTEGERS_EMPTY)))
    yield Sample((Arg((3, 0)), Arg(values=[1, 2])))


def _gather_v2_samples() -> Iterator[Sample]:
    axis = [Arg(values=i, dtype="int32") for i in range(4)]
    last = Arg(values=-1, dtype="int64")
    for sample in _gather_samples():
        yield Sample((*sample.inputs, axis[0]))
    yield Sample((Arg((4, 5, 3)), Arg(values=[4, 0, 3]), axis[1]))
    yield Sample((Arg((4, 5, 17)), Arg(values=[[16, 0], [3, 3], [1, 2]]), last))
    yield Sample((Arg((2, 3, 4, 5)), Arg(values=[3, 1]), axis[2]))
    yield Sample((Arg((70001,)), Arg(values=[[70000], [0], [65536]], dtype="int32"), last))
    yield Sample((Arg((70001, 2)), Arg(values=[[70000, 1], [65536, 3]], dtype="int32"), axis[0]))
    yield Sample((Arg((2, 70001, 1)), Arg(values=[70000, 1], dtype="int64"), axis[1]))
    yield Sample((Arg((3, 4, 2)), Arg(values=[[3, 0], [1, 1], [2, 0]]), axis[1]), {"batch_dims": 1})
    yield Sample((Arg((3, 2, 4)), Arg(values=[[3, 0], [1, 1], [2, 0]]), last), {"batch_dims": 1})
    yield Sample((Arg((2, 3, 5, 2)), Arg(values=[[0, 4, 1], [2, 2, 3]]), axis[2]), {"batch_dims": 2})
    yield Sample((Arg((2, 3, 4)), Arg(values=[[[1, 0]], [[2, 2]]]), axis[2]), {"batch_dims": -2})
    yield Sample((Arg((2, 0, 4)), Arg(values=np.zeros((2, 0), np.int32)), axis[1]), {"batch_dims": 1})
    yield Sample((Arg((1, 1, 1, 3, 1, 1, 1, 2)), Arg(values=[2]), axis[3]))


def _index_errors(extra: Sequence[Arg]) -> Iterator[ErrorSample]:
    for indices, match in (
        ([-1], r"index -1 at position 0 is outside \[0, 3\)"),
        ([0, 2, 3], r"index 3 at position 2 is outside \[0, 3\)"),
        ([[0, 1], [5, 1]], r"index 5 at position 2 is outside \[0, 3\)"),
        ([1] * 1100 + [3], r"index 3 at position 1100 is outside \[0, 3\)"),  # after many right ones
    ):
        yield ErrorSample((Arg((3, 2)), Arg(values=indices), *extra), match)
    yield ErrorSample((Arg((0, 2)), Arg(values=[0]), *extra), r"index 0 at position 0 is outside \[0, 0\)")
    yield ErrorSample((Arg(()), Arg(values=[0]), *extra), "rank 1 or more")


def _gather_v2_errors() -> Iterator[ErrorSample]:
    axis = [Arg(values=i, dtype="int32") for i in (0, 1, 2)]
    yield from _index_errors(axis[:1])
    params, indices = Arg((2, 3)), Arg(values=[[0], [2]])
    yield ErrorSample((params, indices, axis[2]), r"axis 2 is outside the input's rank 2")
    yield ErrorSample((params, indices, Arg(values=[0], dtype="int32")), "must be a scalar")
    yield ErrorSample((params, indices, axis[0]), "batch_dims must not be above axis", {"batch_dims": 1})
    yield ErrorSample((params, Arg(values=[[0], [2], [1]]), axis[1]), "must agree", {"batch_dims": 1})
    yield ErrorSample((params, Arg(values=[0]), axis[1]), r"must lie in \[-1, 1\]", {"batch_dims": 2})
    yield ErrorSample(
        (params, Arg(values=[[0, 3], [0, 0]]), axis[1]), r"index 3 at position 1 is outside \[0, 3\)", {"batch_dims": 1}
    )


def rows_gradient(params: Any, indices: Any, grad: Any, shape: Any = None) -> Any:
    """IndexedSlices: the gradient of params whose rows were read at the indices; shape: where params is a handle."""
    flat = indices
    if indices.static_shape is None or len(indices.static_shape) != 1:
        flat = apply_op("Reshape", [indices, constant([-1], int32)])
    dense_shape = shape_of(params, indices.dtype) if shape is None else shape
    tail = apply_op("StridedSlice", [dense_shape, [1], [0], [1]], {"end_mask": 1})
    count = apply_op("ExpandDims", [apply_op("Size", [indices], {"out_type": dense_shape.dtype}), constant(0, int32)])
    values = apply_op("Reshape", [grad, apply_op("ConcatV2", [[count, tail], constant(0, int32)])])
    return indexed_slices(values, flat, dense_shape)


def _axis(op: Any) -> Any:
    """Returns the axis of a GatherV2 counted from the front: an integer where known, else a scalar."""
    params, _, axis = op.inputs
    value, shape = known(axis), params.static_shape
    if value is not None and (int(value) >= 0 or shape is not None):
        return int(value) % len(shape) if shape is not None else int(value)
    narrow = apply_op("Cast", [axis], {"DstT": int32})
    return apply_op("FloorMod", [narrow, apply_op("Rank", [params])])


def _gather_v2_gradient(op: Any, grad: Any) -> list[Any]:
    params, indices, _ = op.inputs
    if indices.dtype is int16:  # which shapes do not have
        indices = apply_op("Cast", [indices], {"DstT": int32})
    axis, batch = _axis(op), op.attrs["batch_dims"]
    if isinstance(axis, int) and axis == 0 and batch == 0:
        return [rows_gradient(params, indices, grad), None, None]
    if batch < 0:
        known_rank = indices.static_shape is not None
        batch = batch + (len(indices.static_shape) if known_rank else apply_op("Rank", [indices]))
    return [reshape_like(_batch_gather_gradient(params, indices, grad, axis, batch), params), None, None]


def _batch_gather_gradient(params: Any, indices: Any, grad: Any, axis: Any, batch: Any) -> Any:
    """Returns the gradient of params seen as [rows, outer, limit, inner], with indices as [rows, count]."""
    rows, outer, inner = size_of(params, 0, batch), size_of(params, batch, axis), size_of(params, axis + 1, None)
    limit, count = size_of(params, axis, axis + 1), size_of(indices, batch, None)
    positions = apply_op("Reshape", [indices, constant([rows, count], int32)])
    if not isinstance(batch, int) or batch:
        first = apply_op("Range", [constant(0, int32), constant(rows, int32), constant(1, int32)]) * limit
        first = apply_op("Cast", [apply_op("ExpandDims", [first, constant(1, int32)])], {"DstT": int64})
        positions = apply_op("Cast", [positions], {"DstT": int64}) + first
    segments = constant(rows * limit, int32)
    if isinstance(outer, int) and outer == 1:
        values = apply_op("Reshape", [grad, constant([rows, count, inner], int32)])
        return apply_op("UnsortedSegmentSum", [values, positions, segments])
    swapped = constant([0, 2, 1, 3], int32)
    values = apply_op("Reshape", [grad, constant([rows, outer, count, inner], int32)])
    total = apply_op("UnsortedSegmentSum", [apply_op("Transpose", [values, swapped]), positions, segments])
    apart = apply_op("Reshape", [total, constant([rows, limit, outer, inner], int32)])
    return apply_op("Transpose", [apart, swapped])


define_op(
    "Gather",
    inputs=("params: Tparams", "indices: Tindices"),
    outputs=("output: Tparams",),
    attrs=("validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"),
    doc="Slices of params along its first dimension, one for each index.",
    shape=_gather_shape,
    reference=_gather_reference,
    gradient=lambda op, grad: [rows_gradient(op.inputs[0], op.inputs[1], grad), None],
    samples=_gather_samples,
    errors=lambda: _index_errors(()),
)

define_op(
    "GatherV2",
    inputs=("params: Tparams", "indices: Tindices", "axis: Taxis"),
    outputs=("output: Tparams",),
    attrs=("batch_dims: int = 0", "Tparams: type", "Tindices: {int16, int32, int64}", "Taxis: {int32, int64}"),
    doc="Slices of params along axis, one for each index; the first batch_dims dimensions of both are walked together.",
    shape=_gather_v2_shape,
    reference=gather_v2_reference,
    value=_gather_v2_value,
    total_value=True,
    gradient=_gather_v2_gradient,
    shape_inputs=("axis",),
    samples=_gather_v2_samples,
    errors=_gather_v2_errors,
)


def index_depth(c: InferenceContext, indices: Shape) -> int | None:
    """Returns the length of the index tuples that make up the last dimension of `indices`."""
    if indices is None:
        return None
    if not indices:
        raise c.error("indices has rank 0; it must have rank 1 or more")
    return indices[-1]


def _gather_nd_shape(c: InferenceContext) -> Sequence[Shape]:
    check_policy(c)
    params, indices = c.shapes
    depth = index_depth(c, indices)
    if params is not None and not params:
        raise c.error("params has rank 0; it must have rank 1 or more")
    if params is None or indices is None or depth is None:
        return [None]
    if depth > len(params):
        raise c.error(
            f"indices has tuples of {depth} for params of rank {len(params)}; they must not be longer than the rank"
        )
    return [indices[:-1] + params[depth:]]


def gather_nd_reference(attrs: Attrs, params: np.ndarray, indices: np.ndarray) -> np.ndarray:
    depth = indices.shape[-1]
    at = indices.astype(np.int64)
    if attrs.get("bad_indices_policy") != "IGNORE":
        if not depth:
            return np.broadcast_to(params, (*indices.shape[:-1], *params.shape)).copy()
        check_tuples(indices, params.shape)
        return _read(params, tuple(np.moveaxis(at, -1, 0)))
    good = np.asarray(((at >= 0) & (at < np.array(params.shape[:depth], np.int64))).all(axis=-1))
    result = _read(params, tuple(np.moveaxis(np.where(good[..., None], at, 0), -1, 0)))
    result[np.logical_not(good)] = np.zeros((), params.dtype)[()] if params.dtype != object else b""
    return result


def _gather_nd_samples() -> Iterator[Sample]:
    yield Sample((Arg((5,)), Arg(values=[[4], [0], [4]])))
    yield Sample((Arg((3, 7)), Arg(values=[[2, 6], [0, 0], [1, 3]])))
    yield Sample((Arg((3, 7)), Arg(values=[[2], [0]])))
    yield Sample((Arg((3, 7)), Arg(values=[1, 2])))
    yield Sample((Arg((2, 3, 4)), Arg(values=[[[1, 2], [0, 0]], [[0, 1], [1, 1]]])))
    yield Sample((Arg((2, 3)), Arg(values=np.zeros((2, 0), np.int32))))
    yield Sample((Arg((0, 3)), Arg(values=np.zeros((0, 1), np.int32))))
    yield Sample((Arg((2, 3)), Arg(values=np.zeros((0, 2), np.int32))))
    yield Sample((Arg((70001, 2)), Arg(values=[[70000, 1], [65536, 0]], dtype="int32")))
    yield Sample((Arg((2, 1, 2, 1, 2, 1, 2, 1)), Arg(values=[[1, 0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 0, 1, 0]])))
    yield Sample((Arg((2, 3)), Arg(values=[[0, 1], [1, 3], [-1, 0]])), {"bad_indices_policy": "IGNORE"})


def _gather_nd_errors() -> Iterator[ErrorSample]:
    params = Arg((2, 3))
    outside = r"index tuple {} has {} in dimension {}; it must lie in \[0, {}\)"
    yield ErrorSample((params, Arg(values=[[0, 1], [1, 3]])), outside.format(1, 3, 1, 3))
    yield ErrorSample((params, Arg(values=[[0, -1]])), outside.format(0, -1, 1, 3))
    yield ErrorSample((params, Arg(values=[[2]])), outside.format(0, 2, 0, 2))
    yield ErrorSample((params, Arg(values=[[0, 0, 0]])), "not be longer than the rank")
    yield ErrorSample((params, Arg(values=0)), "indices has rank 0")
    yield ErrorSample((Arg((0, 3)), Arg(values=[[0, 1]])), outside.format(0, 0, 0, 0))
    yield ErrorSample((params, Arg(values=[[0]])), "bad_indices_policy is 'X'", {"bad_indices_policy": "X"})


def _gather_nd_gradient(op: Any, grad: Any) -> list[Any]:
    params, indices = op.inputs
    if indices.dtype is int16:  # which shapes do not have
        indices = apply_op("Cast", [indices], {"DstT": int32})
    shape, policy = shape_of(params, indices.dtype), op.attrs["bad_indices_policy"]
    depth = indices.static_shape
    if depth is not None and len(depth) == 2 and depth[1] == 1 and policy != "IGNORE":
        rows = apply_op("Squeeze", [indices], {"squeeze_dims": (-1,)})
        return [indexed_slices(grad, rows, shape), None]
    if depth is None or len(depth) == 1:  # ScatterNd wants a list of index tuples, be it one
        indices, grad = (apply_op("ExpandDims", [x, 0]) for x in (indices, grad))
    return [apply_op("ScatterNd", [indices, grad, shape], {"bad_indices_policy": policy}), None]


define_op(
    "GatherNd",
    inputs=("params: Tparams", "indices: Tindices"),
    outputs=("output: Tparams",),
    attrs=("Tparams: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"),
    doc="Slices of params, one for each index tuple in the last dimension of indices. "
    "Policy IGNORE reads zeros where a tuple lies outside.",
    shape=_gather_nd_shape,
    reference=gather_nd_reference,
    gradient=_gather_nd_gradient,
    samples=_gather_nd_samples,
    errors=_gather_nd_errors,
)

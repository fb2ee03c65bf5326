"""Reading parts of a variable, and counting with one.

In the references a handle stands for the variable's value, and a new value is returned before the op's own outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import OutOfRangeError
from timberframe_core.ops.base.array.gather import gather_nd_reference, gather_v2_reference, index_depth
from timberframe_core.ops.definition.gradients import apply_op, indexed_slices
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import variable_shape_of
from timberframe_core.shapes import Shape, format_shape, merge_dim

_TYPES = {
    "dtype": ("float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "bool", "complex64", "string")
}


def _gather_shape(c: InferenceContext) -> Sequence[Shape]:
    variable, indices = variable_shape_of(c, 0, c.attrs["dtype"]), c.shapes[1]
    batch = c.attrs["batch_dims"]
    if variable is not None and not 0 <= batch < len(variable):
        raise c.error(f"the variable has rank {len(variable)} and batch_dims is {batch}; the rank must be above it")
    if indices is not None and batch > len(indices):
        raise c.error(f"indices has rank {len(indices)} and batch_dims is {batch}; the rank must not be below it")
    if variable is None or indices is None:
        return [None]
    try:
        shared = tuple(merge_dim(p, i) for p, i in zip(variable[:batch], indices[:batch], strict=True))
    except ValueError:
        raise c.late_error(
            f"the variable {format_shape(variable)} and indices {format_shape(indices)} differ in the first {batch} "
            "dimensions; they must agree"
        ) from None
    return [shared + indices[batch:] + variable[batch + 1 :]]


def _gather_reference(attrs: Attrs, resource: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return gather_v2_reference(attrs, resource, indices, np.array(attrs["batch_dims"]))


def _gather_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the rows of the gradient, to be added to the variable's at these indices."""
    handle, indices = op.inputs
    if op.attrs["batch_dims"]:
        value = apply_op("ReadVariableOp", [handle], {"dtype": op.attrs["dtype"]})
        forward = apply_op("GatherV2", [value, indices, op.attrs["batch_dims"]], {"batch_dims": op.attrs["batch_dims"]})
        return [*forward.op.op_def.gradient(forward.op, grad)[:1], None]
    shape = apply_op("VariableShape", [handle], {"out_type": indices.dtype})
    count = apply_op("Reshape", [apply_op("Size", [indices], {"out_type": indices.dtype}), [1]])
    row = apply_op("StridedSlice", [shape, [1], [0], [1]], {"end_mask": 1})
    values = apply_op("Reshape", [grad, apply_op("ConcatV2", [[count, row], 0])])
    return [indexed_slices(values, apply_op("Reshape", [indices, count]), shape), None]


def _gather_samples() -> Iterator[Sample]:
    for shape, indices in (
        ((5,), [0, 4, 4, 2]),
        ((3, 7), [[2, 0], [1, 1]]),
        ((4, 2, 3), 3),
        ((0, 2), np.zeros(0, np.int32)),
        ((3, 0), [1, 2]),
    ):
        yield Sample((Arg(shape), Arg(values=indices)), types=_TYPES)
    yield Sample((Arg((70_001, 1)), Arg(values=[70_000, 0, 65_536], dtype="int32")), types=_TYPES)
    yield Sample((Arg((3, 4, 2)), Arg(values=[[3, 0], [1, 1], [2, 0]])), {"batch_dims": 1}, _TYPES)


def _gather_errors() -> Iterator[ErrorSample]:
    types = {"dtype": ("float32",)}
    outside = r"index {} at position {} is outside \[0, 3\)"
    yield ErrorSample((Arg((3, 2)), Arg(values=[-1])), outside.format(-1, 0), types=types)
    yield ErrorSample((Arg((3, 2)), Arg(values=[[0, 1], [5, 1]])), outside.format(5, 2), types=types)
    yield ErrorSample((Arg(()), Arg(values=[0])), "has rank 0 and batch_dims is 0", types=types)
    yield ErrorSample((Arg((2, 3)), Arg(values=0)), "indices has rank 0", {"batch_dims": 1}, types)
    yield ErrorSample((Arg((2, 3)), Arg(values=[[0], [2], [1]])), "must agree", {"batch_dims": 1}, types)


def _gather_nd_shape(c: InferenceContext) -> Sequence[Shape]:
    variable, indices = variable_shape_of(c, 0, c.attrs["dtype"]), c.shapes[1]
    depth = index_depth(c, indices)
    if variable is not None and not variable:
        raise c.error("the variable has rank 0; it must have rank 1 or more")
    if variable is None or indices is None or depth is None:
        return [None]
    if depth > len(variable):
        raise c.error(
            f"indices has tuples of {depth} for a variable of rank {len(variable)}; "
            "they must not be longer than the rank"
        )
    return [indices[:-1] + variable[depth:]]


def _gather_nd_gradient(op: Any, grad: Any) -> list[Any]:
    handle, indices = op.inputs
    shape = apply_op("VariableShape", [handle], {"out_type": indices.dtype})
    # ScatterNd wants a list of index tuples, be it one.
    return [apply_op("ScatterNd", [apply_op("ExpandDims", [x, 0]) for x in (indices, grad)] + [shape]), None]


def _gather_nd_samples() -> Iterator[Sample]:
    for shape, indices in (
        ((5,), [[4], [0], [4]]),
        ((3, 7), [[2, 6], [0, 0], [1, 3]]),
        ((3, 7), [1, 2]),
        ((2, 3, 4), [[[1, 2], [0, 0]], [[0, 1], [1, 1]]]),
        ((0, 3), np.zeros((0, 1), np.int32)),
    ):
        yield Sample((Arg(shape), Arg(values=indices)), types=_TYPES)


def _gather_nd_errors() -> Iterator[ErrorSample]:
    types = {"dtype": ("float32",)}
    outside = r"index tuple 1 has 3 in dimension 1; it must lie in \[0, 3\)"
    yield ErrorSample((Arg((2, 3)), Arg(values=[[0, 1], [1, 3]])), outside, types=types)
    yield ErrorSample((Arg((2, 3)), Arg(values=[[0, 0, 0]])), "not be longer than the rank", types=types)
    yield ErrorSample((Arg((2, 3)), Arg(values=0)), "indices has rank 0", types=types)
    yield ErrorSample((Arg(()), Arg(values=[0])), "the variable has rank 0", types=types)


def _count_shape(c: InferenceContext) -> Sequence[Shape]:
    variable = variable_shape_of(c, 0, c.attrs["T"])
    if variable:
        raise c.error(f"the variable has shape {format_shape(variable)}; it must be a scalar")
    return [()]


define_op(
    "ResourceGather",
    inputs=["resource: resource", "indices: Tindices"],
    outputs=["output: dtype"],
    attrs=["batch_dims: int = 0", "validate_indices: bool = true", "dtype: type", "Tindices: {int32, int64}"],
    doc="Rows of the variable, one for each index; the first batch_dims dimensions of both are walked together.",
    shape=_gather_shape,
    reference=_gather_reference,
    gradient=_gather_gradient,
    reads=("resource",),
    stateful=True,
    samples=_gather_samples,
    errors=_gather_errors,
)

define_op(
    "ResourceGatherNd",
    inputs=["resource: resource", "indices: Tindices"],
    outputs=["output: dtype"],
    attrs=["dtype: type", "Tindices: {int32, int64}"],
    doc="Slices of the variable, one for each index tuple in the last dimension of indices.",
    shape=_gather_nd_shape,
    reference=gather_nd_reference,
    gradient=_gather_nd_gradient,
    reads=("resource",),
    stateful=True,
    samples=_gather_nd_samples,
    errors=_gather_nd_errors,
)


LIMIT_REACHED = "the counter has reached its limit {0}; it must be below it"


def _count(attrs: Attrs, resource: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if resource >= attrs["limit"]:
        raise OutOfRangeError(LIMIT_REACHED.format(attrs["limit"]))
    return resource + np.ones_like(resource), resource


define_op(
    "ResourceCountUpTo",
    inputs=["resource: resource"],
    outputs=["output: T"],
    attrs=["limit: int", "T: {int32, int64}"],
    doc="The variable's value, to which one is added; an error that changes nothing where it is not below `limit`.",
    shape=_count_shape,
    reference=_count,
    gradient=NotDifferentiable("an update of variables is not a function of its inputs"),
    updates=("resource",),
    stateful=True,
    samples=lambda: [Sample((Arg(values=n),), {"limit": 5}, {"T": ("int32", "int64")}) for n in (-3, 0, 4)],
    errors=lambda: [
        ErrorSample(
            (Arg(values=5),), "has reached its limit 5", {"limit": 5}, {"T": ("int32", "int64")}, "OutOfRangeError"
        )
    ],
)

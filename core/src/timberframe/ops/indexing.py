"""Reading a tensor at positions that another tensor gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from timberframe.ops.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe.ops.samples import Arg, ErrorSample, Sample
from timberframe.shapes import Shape, StaticShape, format_shape, merge_dim

INTEGERS_EMPTY = np.zeros(0, np.int32)
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")


def check_policy(c: InferenceContext) -> None:
    """The attr bad_indices_policy: what happens at an index out of range."""
    policy = c.attrs["bad_indices_policy"]
    if policy not in POLICIES:
        raise c.error(f"bad_indices_policy is {policy!r}; it must be one of {', '.join(map(repr, POLICIES))}")


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


def _read(params: np.ndarray, where: tuple[np.ndarray, ...]) -> np.ndarray:
    """params[where], which for one string would be bytes and no array."""
    result = np.empty(np.shape(where[0]) + params.shape[len(where) :], params.dtype)
    result[...] = params[where]
    return result


def _gather_reference(attrs: Attrs, params: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return _read(params, (indices.astype(np.int64),))


def gather_v2_reference(attrs: Attrs, params: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
    at = int(axis) % params.ndim
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


define_op(
    "Gather",
    inputs=("params: Tparams", "indices: Tindices"),
    outputs=("output: Tparams",),
    attrs=("validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"),
    doc="Slices of params along its first dimension, one for each index.",
    shape=_gather_shape,
    reference=_gather_reference,
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
    shape_inputs=("axis",),
    samples=_gather_v2_samples,
    errors=_gather_v2_errors,
)


def index_depth(c: InferenceContext, indices: Shape) -> int | None:
    """Length of the index tuples that make up the last dimension of `indices`."""
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


define_op(
    "GatherNd",
    inputs=("params: Tparams", "indices: Tindices"),
    outputs=("output: Tparams",),
    attrs=("Tparams: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"),
    doc="Slices of params, one for each index tuple in the last dimension of indices. "
    "Policy IGNORE reads zeros where a tuple lies outside.",
    shape=_gather_nd_shape,
    reference=gather_nd_reference,
    samples=_gather_nd_samples,
    errors=_gather_nd_errors,
)


def _one_hot_shape(c: InferenceContext) -> Sequence[Shape]:
    indices, axis = c.shapes[0], c.attrs["axis"]
    for i, what in ((1, "depth"), (2, "on_value"), (3, "off_value")):
        if c.shapes[i] not in (None, ()):
            raise c.error(f"{what} has shape {format_shape(c.shapes[i])}; it must be a scalar")
    value = c.value(1)
    if value is not None and int(value) < 0:
        raise c.error(f"depth is {int(value)}; it must not be negative")
    if axis < -1:
        raise c.error(f"axis is {axis}; it must be -1 or more")
    if indices is None:
        return [None]
    if axis > len(indices):
        raise c.error(f"axis is {axis} for indices of rank {len(indices)}; it must not be above the rank")
    at = len(indices) if axis == -1 else axis
    return [indices[:at] + (None if value is None else int(value),) + indices[at:]]


def _one_hot_reference(
    attrs: Attrs, indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray
) -> np.ndarray:
    axis = indices.ndim if attrs["axis"] == -1 else attrs["axis"]
    classes = np.arange(int(depth)).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices.astype(np.int64), axis) == classes, on_value, off_value)


def _one_hot_samples() -> Iterator[Sample]:
    on, off = Arg(()), Arg(())

    def depth(n: int) -> Arg:
        return Arg(values=n, dtype="int32")

    for values in ([0, 2, 1], [[1, 0], [3, 2], [2, 2]], 1, [7, 3, 0]):
        rank = np.ndim(values)
        for axis in range(-1, rank + 1):
            yield Sample((Arg(values=values), depth(3), on, off), {"axis": axis})
    yield Sample((Arg(values=[-1, 0, 5], dtype="int32"), depth(5), on, off))
    yield Sample((Arg(values=INTEGERS_EMPTY), depth(5), on, off))
    yield Sample((Arg(values=[0, 1]), depth(0), on, off))
    yield Sample((Arg(values=[0, 70000], dtype="int64"), depth(70001), on, off))


def _one_hot_errors() -> Iterator[ErrorSample]:
    scalar, indices, depth = Arg(()), Arg(values=[0, 1]), Arg(values=3, dtype="int32")
    yield ErrorSample((indices, Arg(values=-1, dtype="int32"), scalar, scalar), "depth is -1; it must not be negative")
    yield ErrorSample((indices, Arg(values=[3], dtype="int32"), scalar, scalar), "depth has shape")
    yield ErrorSample((indices, depth, Arg((1,)), scalar), "on_value has shape")
    yield ErrorSample((indices, depth, scalar, Arg((1,))), "off_value has shape")
    yield ErrorSample((indices, depth, scalar, scalar), "must not be above the rank", {"axis": 2})
    yield ErrorSample((indices, depth, scalar, scalar), "must be -1 or more", {"axis": -2})


define_op(
    "OneHot",
    inputs=("indices: TI", "depth: int32", "on_value: T", "off_value: T"),
    outputs=("output: T",),
    attrs=("axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = DT_INT64"),
    doc="Inserts a dimension of size depth that holds on_value at each index, off_value elsewhere and for others.",
    shape=_one_hot_shape,
    reference=_one_hot_reference,
    shape_inputs=("depth",),
    samples=_one_hot_samples,
    errors=_one_hot_errors,
    gradient=NotDifferentiable("the output is constant in the indices"),
)


def _reverse_sequence_shape(c: InferenceContext) -> Sequence[Shape]:
    x, (count,) = c.shapes[0], c.require_rank(1, 1)
    seq_dim, batch_dim = c.attrs["seq_dim"], c.attrs["batch_dim"]
    if x is None:
        return [None]
    for what, axis in (("seq_dim", seq_dim), ("batch_dim", batch_dim)):
        if not 0 <= axis < len(x):
            raise c.error(f"{what} is {axis} for an input of rank {len(x)}; it must lie in [0, {len(x)})")
    # That the two differ is left to the kernel, as TensorFlow does: graphs with such a node may be built.
    try:
        batch = merge_dim(x[batch_dim], count)
    except ValueError:
        raise c.error(f"seq_lengths has {count} elements and the batch {x[batch_dim]}; they must agree") from None
    return [x[:batch_dim] + (batch,) + x[batch_dim + 1 :]]


def _reverse_sequence_reference(attrs: Attrs, input: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
    seq_dim, batch_dim = attrs["seq_dim"], attrs["batch_dim"]
    steps = np.arange(input.shape[seq_dim])
    lengths = seq_lengths.astype(np.int64)[:, None]
    source = np.where(steps < lengths, lengths - 1 - steps, steps)
    moved = np.moveaxis(input, (batch_dim, seq_dim), (0, 1))
    return np.ascontiguousarray(
        np.moveaxis(moved[np.arange(len(source))[:, None], source], (0, 1), (batch_dim, seq_dim))
    )


def _reverse_sequence_samples() -> Iterator[Sample]:
    cases: tuple[tuple[StaticShape, list[int], int, int], ...] = (
        ((2, 3), [2, 3], 1, 0),
        ((3, 2), [3, 0], 0, 1),
        ((2, 5, 3), [4, 1], 1, 0),
        ((2, 3, 4, 2), [1, 3], 1, 3),
        ((4, 3, 2), [4, 3, 0], 0, 1),
        ((3, 2, 7), [7, 2, 1], 2, 0),
        ((1, 70001), [70000], 1, 0),
        ((2, 0), [0, 0], 1, 0),
    )
    for shape, lengths, seq_dim, batch_dim in cases:
        yield Sample((Arg(shape), Arg(values=lengths)), {"seq_dim": seq_dim, "batch_dim": batch_dim})
    yield Sample((Arg((0, 3)), Arg(values=INTEGERS_EMPTY)), {"seq_dim": 1})


def _reverse_sequence_errors() -> Iterator[ErrorSample]:
    x = Arg((2, 3))
    yield ErrorSample((x, Arg(values=[-1, 1])), r"length -1 of sequence 0 is outside \[0, 3\]", {"seq_dim": 1})
    yield ErrorSample((x, Arg(values=[1, 4])), r"length 4 of sequence 1 is outside \[0, 3\]", {"seq_dim": 1})
    yield ErrorSample((x, Arg(values=[1, 1])), "they must differ", {"seq_dim": 0})
    yield ErrorSample((x, Arg(values=[1, 1])), "seq_dim is -1", {"seq_dim": -1})
    yield ErrorSample((x, Arg(values=[1, 1])), "seq_dim is 2", {"seq_dim": 2})
    yield ErrorSample((x, Arg(values=[1, 1])), "batch_dim is 2", {"seq_dim": 1, "batch_dim": 2})
    yield ErrorSample((x, Arg(values=[1, 1, 1])), "must agree", {"seq_dim": 1})
    yield ErrorSample((x, Arg(values=[[1], [1]])), "must have rank 1", {"seq_dim": 1})


define_op(
    "ReverseSequence",
    inputs=("input: T", "seq_lengths: Tlen"),
    outputs=("output: T",),
    attrs=("seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = DT_INT64"),
    doc="Reverses the first seq_lengths[i] elements along seq_dim of entry i along batch_dim.",
    shape=_reverse_sequence_shape,
    reference=_reverse_sequence_reference,
    samples=_reverse_sequence_samples,
    errors=_reverse_sequence_errors,
)

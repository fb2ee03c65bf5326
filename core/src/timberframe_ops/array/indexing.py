"""OneHot and ReverseSequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.array.gather import INTEGERS_EMPTY
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.rows import next_axis, same_on_rows
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import refuse_first
from timberframe_core.shapes import Shape, StaticShape, format_shape, merge_dim


def _one_hot_shape(c: InferenceContext) -> Sequence[Shape]:
    indices, axis = c.shapes[0], c.attrs["axis"]
    for i, what in ((1, "depth"), (2, "on_value"), (3, "off_value")):
        if c.shapes[i] not in (None, ()):
            error = c.error if what == "depth" else c.late_error
            raise error(f"{what} has shape {format_shape(c.shapes[i])}; it must be a scalar")
    value = c.value(1)
    if value is not None and int(value) < 0:
        raise c.error(f"depth is {int(value)}; it must not be negative")
    if axis < -1:
        raise c.error(f"axis is {axis}; it must be -1 or more")
    if indices is None:
        return [None]
    if axis > len(indices):
        raise c.late_error(f"axis is {axis} for indices of rank {len(indices)}; it must not be above the rank")
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
    on_rows=same_on_rows("indices", attrs=next_axis()),
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


LENGTH_OUTSIDE = "length {0} of sequence {1} is outside [0, {2}]; it must not be above the sequence's size"


def check_reversed(attrs: Attrs) -> None:
    """Raises InvalidArgumentError where a ReverseSequence is to reverse the dimension that holds the batch."""
    if attrs["seq_dim"] == attrs["batch_dim"]:
        raise InvalidArgumentError(f"seq_dim and batch_dim are both {attrs['seq_dim']}; they must differ")


def _reverse_sequence_reference(attrs: Attrs, input: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
    seq_dim, batch_dim = attrs["seq_dim"], attrs["batch_dim"]
    check_reversed(attrs)
    size = input.shape[seq_dim]
    refuse_first((seq_lengths < 0) | (seq_lengths > size), seq_lengths, LENGTH_OUTSIDE, size)
    steps = np.arange(size)
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
    gradient=lambda op, grad: [
        apply_op("ReverseSequence", [grad, op.inputs[1]], {k: op.attrs[k] for k in ("seq_dim", "batch_dim")}),
        None,
    ],
    samples=_reverse_sequence_samples,
    errors=_reverse_sequence_errors,
)

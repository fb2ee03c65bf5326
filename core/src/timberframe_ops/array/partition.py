"""Taking rows apart by number and putting them together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.gradients import apply_op, constant, gather, reshape_like, shape_of, size_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import check_indices
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, num_elements


def _partition_shape(c: InferenceContext) -> Sequence[Shape]:
    data, partitions = c.shapes
    count = c.attrs["num_partitions"]
    if data is None or partitions is None:
        return [None] * count
    prefix = len(partitions)
    if len(data) < prefix or not compatible(data[:prefix], partitions):
        raise c.error(
            f"data has shape {format_shape(data)} and partitions {format_shape(partitions)}; "
            "data's must begin with that"
        )
    return [(None, *data[prefix:])] * count


def _partition_bound(c: InferenceContext) -> list[StaticShape]:
    data, partitions = (tuple(d or 0 for d in s or ()) for s in c.shapes)
    return [(num_elements(partitions), *data[len(partitions) :])] * c.attrs["num_partitions"]


PARTITION_OUTSIDE = "partition {0} at position {1} is outside [0, {2}); it must be below num_partitions"


def _partition_reference(attrs: Attrs, data: np.ndarray, partitions: np.ndarray) -> tuple[np.ndarray, ...]:
    check_indices(partitions, attrs["num_partitions"], PARTITION_OUTSIDE)
    rows = data.reshape(partitions.size, *data.shape[partitions.ndim :])
    return tuple(rows[partitions.reshape(-1) == i] for i in range(attrs["num_partitions"]))


def _partition_samples() -> Iterator[Sample]:
    cases: tuple[tuple[StaticShape, Any, int], ...] = (
        ((5,), [0, 1, 0, 2, 1], 3),
        ((4, 3), [1, 0, 1, 1], 2),
        ((2, 2, 2), [[0, 1], [1, 0]], 2),
        ((3,), [2, 2, 2], 4),
        ((2,), 1, 3),
        ((3, 0), [0, 1, 0], 2),
        ((0, 2), np.zeros(0, np.int32), 2),
        ((6,), [0] * 6, 1),
        ((70001,), np.arange(70001) % 3, 3),
    )
    for shape, partitions, count in cases:
        yield Sample((Arg(shape), Arg(values=partitions, dtype="int32")), {"num_partitions": count})


def _partition_errors() -> Iterator[ErrorSample]:
    for partitions, match in (
        ([0, 3], r"partition 3 at position 1 is outside \[0, 3\)"),
        ([-1, 0], r"partition -1 at position 0 is outside \[0, 3\)"),
        ([0, 1, 1], "data's must begin with that"),
    ):
        yield ErrorSample((Arg((2,)), Arg(values=partitions, dtype="int32")), match, {"num_partitions": 3})


def _partition_gradient(op: Any, *grads: Any) -> list[Any]:
    """Returns the gradient: each slice goes back to the index that it came from: the indices are
    partitioned in the same way.
    """
    data, partitions = op.inputs
    count = size_of(partitions, 0, None)
    numbers = apply_op("Range", [constant(0, int32), constant(count, int32), constant(1, int32)])
    numbers = apply_op("Reshape", [numbers, shape_of(partitions)])
    parts = apply_op("DynamicPartition", [numbers, partitions], {"num_partitions": op.attrs["num_partitions"]})
    indices, slices = _joined(parts), _joined(list(grads))
    gradient = apply_op("UnsortedSegmentSum", [slices, indices, constant(count, int32)])
    return [reshape_like(gradient, data), None]


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else apply_op("ConcatV2", [parts, constant(0, int32)])


define_op(
    "DynamicPartition",
    inputs=("data: T", "partitions: int32"),
    outputs=("outputs: num_partitions * T",),
    attrs=("num_partitions: int >= 1", "T: type"),
    doc="Deals the slices of data into num_partitions tensors; "
    "output i gets those whose entry in partitions is i, in order.",
    shape=_partition_shape,
    gradient=_partition_gradient,
    bound=_partition_bound,
    reference=_partition_reference,
    samples=_partition_samples,
    errors=_partition_errors,
)


def _stitch_shape(c: InferenceContext) -> Sequence[Shape]:
    count = c.attrs["N"]
    inner: Shape = None
    highest: int | None = -1
    for i in range(count):
        indices, data, value = c.shapes[i], c.shapes[count + i], c.value(i)
        if value is not None and value.size and int(value.min()) < 0:
            at = int(np.flatnonzero(value.ravel() < 0)[0])
            raise c.error(f"index {int(value.ravel()[at])} at position {at} of indices[{i}]; it must not be negative")
        highest = None if value is None or highest is None else max([highest, *map(int, value.ravel())])
        if indices is None or data is None:
            continue
        prefix = len(indices)
        if len(data) < prefix or not compatible(data[:prefix], indices):
            raise c.error(
                f"data[{i}] has shape {format_shape(data)} and indices[{i}] {format_shape(indices)}; "
                "data's must begin with that"
            )
        if not compatible(inner, data[prefix:]):
            raise c.error(
                f"data[{i}] has slices of shape {format_shape(data[prefix:])}, others {format_shape(inner)}; "
                "they must agree"
            )
        inner = data[prefix:]
    return [None if inner is None else (None if highest is None else highest + 1, *inner)]


def _stitch_reference(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
    strings = any(x.dtype == object for x in inputs)
    return _stitch(inputs, b"" if strings else 0)


def _stitch(inputs: Sequence[np.ndarray], blank: Any) -> np.ndarray:
    """Returns the slices at their rows, and `blank` in the rows that none names."""
    count = len(inputs) // 2
    indices, data = inputs[:count], inputs[count:]
    inner = data[0].shape[indices[0].ndim :]
    flat = np.concatenate([i.reshape(-1) for i in indices]).astype(np.int64)
    rows = np.concatenate([d.reshape(i.size, *inner) for i, d in zip(indices, data, strict=True)])
    merged = np.full((int(flat.max(initial=-1)) + 1, *inner), blank, rows.dtype)
    for to, row in zip(flat, rows, strict=True):  # in order: the last one wins
        merged[to] = row
    return merged


def _stitch_value(c: InferenceContext) -> list[np.ndarray | None]:
    count = c.attrs["N"]
    if any(c.value(i) is None for i in range(count)) or any(v is None for v in c.values[count:]):
        return [None]
    blank = b"" if c.dtypes[count].numpy.hasobject else 0
    return [_stitch([v for v in c.values if v is not None], blank)]


def _stitch_samples() -> Iterator[Sample]:
    cases: tuple[tuple[list[Any], list[StaticShape]], ...] = (
        ([[0, 2], [1]], [(2,), (1,)]),
        ([[3, 0], [[1], [2]]], [(2, 5), (2, 1, 5)]),
        ([2, [0, 1]], [(3,), (2, 3)]),
        ([[0, 4]], [(2,)]),
        ([[0, 0], [0]], [(2, 2), (1, 2)]),
        ([np.zeros(0, np.int32)], [(0, 3)]),
        ([[0, 1], np.zeros(0, np.int32)], [(2, 0), (0, 0)]),
        ([np.arange(70001)[::-1]], [(70001,)]),
    )
    for indices, shapes in cases:
        yield Sample(([Arg(values=i, dtype="int32") for i in indices], [Arg(s) for s in shapes]))


def _stitch_errors() -> Iterator[ErrorSample]:
    def index(*values: int) -> Arg:
        return Arg(values=list(values), dtype="int32")

    yield ErrorSample(([index(-1)], [Arg((1,))]), "must not be negative")
    yield ErrorSample(([index(0), index(1)], [Arg((1, 2)), Arg((1, 3))]), "they must agree")
    yield ErrorSample(([index(0, 1)], [Arg((3,))]), "data's must begin with that")


def _stitch_gradient(op: Any, grad: Any) -> list[Any]:
    indices = op.inputs[: len(op.inputs) // 2]
    return [*[None] * len(indices), *(gather(grad, i) for i in indices)]


for _name in ("DynamicStitch", "ParallelDynamicStitch"):
    define_op(
        _name,
        inputs=("indices: N * int32", "data: N * T"),
        outputs=("merged: T",),
        attrs=("N: int >= 1", "T: type"),
        doc="Puts the slices of all data at the rows that indices names; "
        "the last one wins, and a row that none names is zero.",
        shape=_stitch_shape,
        reference=_stitch_reference,
        value=_stitch_value,
        gradient=_stitch_gradient,
        gradient_notes=("overwritten_values",),
        shape_inputs=("indices",),
        samples=_stitch_samples,
        errors=_stitch_errors,
    )

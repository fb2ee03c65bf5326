"""Slice and StridedSlice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int16, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.array.strided_slice import COUNTS_DIFFER, Entry, Selection, interval, selections
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.host_values import HostValue, elements, static_output, to_dtype, vector_length
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, StaticShape, merge_dim

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _slice_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    rank: int | None = None if shape is None else len(shape)
    for i, name in ((1, "begin"), (2, "size")):
        length = vector_length(c, i, name)
        try:
            rank = merge_dim(rank, length)
        except ValueError:
            raise c.error(f"{name} has {length} elements and the input rank {rank}; they must be equal") from None
    if rank is None:
        return [None]
    begin, size = elements(c, 1, rank), elements(c, 2, rank)
    return [tuple(_slice_size(c, i, None if shape is None else shape[i], begin[i], size[i]) for i in range(rank))]


def _slice_size(c: InferenceContext, i: int, full: int | None, begin: int | None, size: int | None) -> int | None:
    """Returns the output's size in one dimension, after the checks that the known values allow."""
    if begin is not None and (begin < 0 or (full is not None and begin > full)):
        raise c.error(f"begin[{i}] is {begin}; it must lie in [0, {'?' if full is None else full}]")
    if size is None:
        return None
    if size < -1:
        raise c.error(f"size[{i}] is {size}; it must be zero or more, or -1 for the rest")
    if size == -1:
        return None if full is None or begin is None else full - begin
    if full is not None and size + (begin or 0) > full:
        raise c.error(
            f"begin[{i}] is {begin or 0} and size[{i}] {size}; their sum must be at most the input's size {full}"
        )
    return size


BEGIN_OUTSIDE = "begin[{0}] is {1}; with this size it must lie in [0, {2}]"


def _slice(attrs: Attrs, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    most = np.array(x.shape, np.int64) - np.maximum(size, 0)
    wrong = np.flatnonzero((begin < 0) | (begin > most))
    if wrong.size:
        i = wrong[0]
        raise InvalidArgumentError(BEGIN_OUTSIDE.format(i, begin[i], most[i]))
    stops = [x.shape[i] if s == -1 else int(b) + int(s) for i, (b, s) in enumerate(zip(begin, size, strict=True))]
    index: list[Any] = [slice(int(b), stop) for b, stop in zip(begin, stops, strict=True)]
    return np.asarray(x[(*index, ...)])  # the ellipsis keeps a single element an array


def _slice_value(c: InferenceContext) -> list[HostValue]:
    x, begin, size = c.values[0], c.value(1), c.value(2)
    if x is None or begin is None or size is None or static_output(c) is None:
        return [None]
    return [to_dtype(np.asarray(_slice(c.attrs, x, begin, size)), c.dtypes[0])]


def _slice_planned(attrs: Attrs, constants: Sequence[np.ndarray | None]) -> tuple[str, ...]:
    """Returns the inputs to plan by: sizes that reach up to the end depend on where the block begins."""
    size = constants[2]
    return () if size is not None and (size >= 0).all() else ("begin",)


def _slice_samples() -> Iterator[Sample]:
    for shape, begin, size in (
        ((), (), ()), ((5,), (0,), (5,)), ((5,), (2,), (-1,)), ((5,), (5,), (0,)), ((5,), (5,), (-1,)),
        ((0, 3), (0, 1), (0, 2)),
        ((7, 13), (1, 2), (5, 7)), ((7, 13), (1, 0), (5, 13)), ((7, 13), (0, 12), (7, 1)), ((7, 13), (3, 4), (-1, -1)),
        ((3, 5, 7), (1, 1, 1), (2, 3, 5)), ((65_537, 2), (65_530, 0), (7, 1)), ((2, 65_537), (1, 1), (1, 65_536)),
        ((2, 3, 2, 3, 2, 3, 2, 3), (1, 1, 0, 1, 1, 0, 0, 2), (1, 2, 2, 1, 1, 2, 2, 1)),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(begin, np.int64)), Arg(values=np.array(size, np.int64))])


def _slice_errors() -> Iterator[ErrorSample]:
    def wrong(begin: Any, size: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg((2, 4)), Arg(values=begin), Arg(values=size)], match)

    yield wrong((-1, 0), (1, 1), r"begin\[0\] is -1; .*it must lie in \[0, ")
    yield wrong((3, 0), (-1, 1), r"begin\[0\] is 3; .*it must lie in \[0, ")
    yield wrong((0, 0), (1, -2), r"size\[1\] is -2; it must be zero or more, or -1 for the rest")
    yield wrong((0, 3), (1, 2), r"begin\[1\] is 3")
    yield wrong((0,), (1,), "begin has 1 elements and the input rank 2; they must be equal")


def _slice_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient at the block's position: begin may differ at each launch, and Pad
    would be planned for each.
    """
    x, begin, _ = op.inputs
    end = apply_op("AddV2", [begin, shape_of(op.outputs[0], begin.dtype)])
    strides = apply_op("OnesLike", [begin])
    return [apply_op("StridedSliceGrad", [shape_of(x, begin.dtype), begin, end, strides, grad]), None, None]


define_op(
    "Slice",
    inputs=["input: T", "begin: Index", "size: Index"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}"],
    doc="The block of the input that begins at `begin` and has the sizes `size`; -1 means up to the end.",
    shape=_slice_shape,
    reference=_slice,
    value=_slice_value,
    gradient=_slice_gradient,
    shape_inputs=("size",),
    launch_inputs=("begin",),
    planned=_slice_planned,
    samples=_slice_samples,
    errors=_slice_errors,
)


def entry_count(c: InferenceContext, first: int) -> int | None:
    """Returns the length of begin, end and strides, the inputs from `first` on, which must agree."""
    length: int | None = None
    for i, name in enumerate(("begin", "end", "strides"), first):
        found = vector_length(c, i, name)
        try:
            length = merge_dim(length, found)
        except ValueError:
            raise c.error(
                f"{name} has {found} elements and begin {length}; begin, end and strides must be equally long"
            ) from None
    if length is not None and length > 32:
        raise c.error(f"begin has {length} elements; at most 32 can be masked")
    return length


def selected_shape(c: InferenceContext, shape: Shape, first: int) -> Shape:
    """Returns the shape that begin, end and strides, the inputs from `first` on, select of a tensor."""
    length = entry_count(c, first)
    if shape is None or length is None:
        return None
    values = [elements(c, i, length) for i in range(first, first + 3)]
    sizes: list[int | None] = []
    try:
        for s in selections(len(shape), length, c.attrs):
            if s.source is None:
                sizes.append(1)
            elif s.entry is None:
                sizes.append(shape[s.source])
            else:
                size = _selected_size(c, shape[s.source], [v[s.entry] for v in values], s.entry, s.source, s.shrink)
                if not s.shrink:
                    sizes.append(size)
    except ValueError as e:
        raise c.error(str(e)) from None
    return tuple(sizes)


def _selected_size(
    c: InferenceContext, full: int | None, values: list[int | None], i: int, source: int, shrink: bool
) -> int | None:
    begin, end, stride = values
    if stride == 0:
        raise ValueError(f"strides[{i}] is 0; it must not be zero")
    if shrink and stride is not None and stride < 0:
        raise ValueError(f"strides[{i}] is {stride} where one index is taken; it must be positive")
    entry = Entry(begin, end, stride, bool(c.attrs["begin_mask"] >> i & 1), bool(c.attrs["end_mask"] >> i & 1))
    if full is None:
        return None
    return interval(full, entry, source, shrink)[1]


def _selected(
    attrs: Attrs, shape: StaticShape, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> Iterator[tuple[Selection, tuple[int, int, int]]]:
    """Yields how each dimension is treated, with the first index, number of indices and stride that are taken of it."""
    for s in selections(len(shape), begin.size, attrs):
        first, count, stride = 0, 1, 1
        if s.source is not None and s.entry is None:
            count = shape[s.source]
        elif s.source is not None and s.entry is not None:
            i = s.entry
            masks = attrs["begin_mask"] >> i & 1, attrs["end_mask"] >> i & 1
            entry = Entry(int(begin[i]), int(end[i]), int(strides[i]), bool(masks[0]), bool(masks[1]))
            first, found, stride = interval(shape[s.source], entry, s.source, s.shrink)
            count = found or 0
        yield s, (first, count, stride)


def selection_index(
    attrs: Attrs, shape: StaticShape, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> tuple[Any, ...]:
    """Returns the NumPy index that takes what StridedSlice takes of a tensor of this shape."""
    index: list[Any] = []
    for s, (first, count, stride) in _selected(attrs, shape, begin, end, strides):
        last = first + count * stride
        taken = slice(first, last if last >= 0 else None, stride) if count else slice(0, 0)
        index.append(None if s.source is None else first if s.shrink else taken)
    return (*index, ...)  # the ellipsis keeps a single element an array


def check_counts(attrs: Attrs, shape: StaticShape, taken: StaticShape, *bounds: np.ndarray) -> None:
    """Raises InvalidArgumentError where begin, end and strides do not select a part of the shape `taken`."""
    kept = [(s, count) for s, (_, count, _) in _selected(attrs, shape, *bounds) if not s.shrink]
    for (s, count), planned in zip(kept, taken, strict=True):
        if count != planned:
            raise InvalidArgumentError(COUNTS_DIFFER.format(count, s.source, planned))


def _strided_slice(attrs: Attrs, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> np.ndarray:
    return np.asarray(x[selection_index(attrs, x.shape, begin, end, strides)])


def _strided_value(c: InferenceContext) -> list[HostValue]:
    x, begin, end, strides = c.values[0], c.value(1), c.value(2), c.value(3)
    if x is None or begin is None or end is None or strides is None or static_output(c) is None:
        return [None]
    return [to_dtype(np.asarray(_strided_slice(c.attrs, x, begin, end, strides)), c.dtypes[0])]


def _strided_planned(attrs: Attrs, constants: Sequence[np.ndarray | None]) -> tuple[str, ...]:
    """Single indices are read at each launch; the bounds of ranges decide sizes."""
    strides = constants[3]
    if strides is None:
        return "begin", "end"
    other_masks = attrs["ellipsis_mask"] | attrs["new_axis_mask"] | attrs["shrink_axis_mask"]
    names = []
    for name in ("begin", "end"):
        masked = other_masks | attrs[f"{name}_mask"]
        if any(not masked >> i & 1 for i in range(strides.size)):
            names.append(name)
    return tuple(names)


def _strided(shape: tuple[int, ...], begin: Any, end: Any, strides: Any, /, **masks: int) -> Sample:
    spans = [Arg(values=np.array(v, np.int64)) for v in (begin, end, strides)]
    index = ("int32", "int64") if max(shape, default=0) > 32_767 else ("int16", "int32", "int64")
    return Sample([Arg(shape), *spans], {f"{k}_mask": v for k, v in masks.items()}, {"Index": index})


def strided_samples() -> Iterator[Sample]:
    """Yields what StridedSlice is tried with."""
    yield _strided((), (), (), ())
    yield _strided((5,), (1,), (4,), (1,))
    yield _strided((5,), (1,), (100,), (2,))
    yield _strided((5,), (-2,), (-100,), (-1,))
    yield _strided((5,), (0,), (0,), (-1,), begin=1, end=1)
    yield _strided((5,), (3,), (1,), (1,))
    yield _strided((0,), (0,), (0,), (1,), begin=1, end=1)
    yield _strided((7, 13), (1, 2), (6, 11), (1, 1))
    yield _strided((7, 13), (6, 11), (1, 2), (-2, -3))
    yield _strided((7, 13), (0, 5), (0, 6), (1, 1), begin=1, end=1, shrink_axis=2)
    yield _strided((7, 13), (-1, 3), (0, 9), (1, 2), shrink_axis=1)
    yield _strided((7, 13), (2, 3), (3, 4), (1, 1), shrink_axis=3)
    yield _strided((7, 13), (0, 0, 0), (0, 0, 0), (1, 1, 1), begin=5, end=5, new_axis=2)
    yield _strided((3, 5, 7), (0, 2), (0, 5), (1, 1), ellipsis=1)
    yield _strided((3, 5, 7), (1, 0, 0, 3), (2, 0, 0, 4), (1, 1, 1, 1), shrink_axis=9, ellipsis=2, new_axis=4)
    yield _strided((3, 5, 7), (0, 0, 0, 0), (0, 0, 0, 0), (1, -1, 1, -1), begin=15, end=15, new_axis=4)
    yield _strided((3, 5, 7), (1,), (3,), (1,))
    yield _strided((3, 5), (0, 0, 1, 1), (0, 0, 3, 4), (1, 1, 1, 1), ellipsis=1, new_axis=3, begin=2)
    yield _strided((65_537, 2), (65_536, 0), (0, 2), (-3, 1))
    yield _strided((2, 65_537), (1, 1), (2, 65_537), (1, 2), shrink_axis=1)
    yield _strided((2, 3, 2, 3, 2, 3, 2, 3), (1, 2) * 4, (-9, -9) * 4, (-1, -1) * 4)


def _strided_errors() -> Iterator[ErrorSample]:
    def wrong(begin: Any, end: Any, strides: Any, match: str, /, **masks: int) -> ErrorSample:
        sample = _strided((2, 4), begin, end, strides, **masks)
        return ErrorSample(sample.inputs, match, sample.attrs)

    yield wrong((0,), (1,), (0,), r"strides\[0\] is 0; it must not be zero")
    yield wrong(
        (2,), (3,), (1,), r"index 2 of dimension 0 is outside its size 2; it must lie in \[-2, 2\)", shrink_axis=1
    )
    yield wrong((0, -5), (1, 0), (1, 1), "index -5 of dimension 1 is outside its size 4", shrink_axis=2)
    yield wrong((1,), (0,), (-1,), r"strides\[0\] is -1 where one index is taken; it must be positive", shrink_axis=1)
    yield wrong((0, 0, 0), (1, 1, 1), (1, 1, 1), "3 dimensions are indexed and the input has rank 2")
    yield wrong((0, 0), (1, 1), (1, 1), "at most one bit may be set", ellipsis=3)
    yield wrong((0, 0), (1,), (1, 1), "end has 1 elements and begin 2; begin, end and strides must be equally long")


def _strided_slice_gradient(op: Any, grad: Any) -> list[Any]:
    x, *spans = op.inputs
    if spans[0].dtype is int16:  # which StridedSliceGrad does not take
        spans = [apply_op("Cast", [s], {"DstT": int32}) for s in spans]
    inputs = [shape_of(x, spans[0].dtype), *spans, grad]
    return [apply_op("StridedSliceGrad", inputs, {m: op.attrs[m] for m in MASKS}), None, None, None]


define_op(
    "StridedSlice",
    inputs=["input: T", "begin: Index", "end: Index", "strides: Index"],
    outputs=["output: T"],
    attrs=[
        "T: type", "Index: {int16, int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
        "new_axis_mask: int = 0", "shrink_axis_mask: int = 0",
    ],
    doc=(
        "What `input[begin:end:strides, ...]` selects in NumPy. Bit i of a mask says of entry i: begin_mask, end_mask: "
        "the bound is left out; ellipsis_mask: it stands for all dimensions not named; new_axis_mask: it makes a "
        "dimension of one; shrink_axis_mask: it is one index, whose dimension disappears."
    ),
    shape=late_errors(lambda c: [selected_shape(c, c.shapes[0], 1)]),
    reference=_strided_slice,
    value=_strided_value,
    total_value=True,
    gradient=_strided_slice_gradient,
    shape_inputs=("strides",),
    launch_inputs=("begin", "end"),
    planned=_strided_planned,
    samples=strided_samples,
    errors=_strided_errors,
)  # fmt: skip

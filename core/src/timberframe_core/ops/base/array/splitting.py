"""Taking tensors apart along a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.host_values import HostValue, elements, scalar_value, to_dtype, vector_length
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape


def _part(shape: tuple[int | None, ...], axis: int, size: int | None) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _split_shape(c: InferenceContext) -> list[Shape]:
    shape, count = c.shapes[1], c.attrs["num_split"]
    axis = scalar_value(c, 0, "split_dim")
    if shape is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(shape)] * count
    at = c.axis(axis, len(shape), "split_dim")
    size = shape[at]
    if size is not None and size % count:
        raise c.error(
            f"dimension {at} of the input {format_shape(shape)} is {size}; it must be a multiple of num_split {count}"
        )
    return [_part(shape, at, None if size is None else size // count)] * count


def _split(attrs: Attrs, axis: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.split(value, attrs["num_split"], int(axis)))


_SPLIT_SHAPES: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((6,), 0, 3), ((6,), -1, 1), ((0,), 0, 2), ((6, 0), 0, 2), ((7, 12), 1, 4), ((12, 7), 0, 4), ((3, 4, 5), 1, 2),
    ((3, 4, 6), -1, 6), ((65_538, 2), 0, 2), ((2, 65_538), 1, 3), ((1, 2, 1, 2, 1, 2, 1, 4), 7, 2),
)  # fmt: skip


def _split_errors() -> Iterator[ErrorSample]:
    value = Arg((2, 4))
    yield ErrorSample(
        [Arg(values=1), value], r"dimension 1 of the input \(2, 4\) is 4; it must be a multiple of", {"num_split": 3}
    )
    yield ErrorSample([Arg(values=2), value], "split_dim 2 is outside the input's rank 2", {"num_split": 2})
    yield ErrorSample([Arg(values=0), Arg(())], "split_dim 0 is outside the input's rank 0", {"num_split": 1})


def _joined(grads: Sequence[Any], axis: Any) -> Any:
    return grads[0] if len(grads) == 1 else apply_op("ConcatV2", [list(grads), axis])


define_op(
    "Split",
    inputs=["split_dim: int32", "value: T"],
    outputs=["output: num_split * T"],
    attrs=["num_split: int >= 1", "T: type"],
    python_names={"split_dim": "axis"},
    doc="The value in `num_split` parts of equal size along the dimension `split_dim`.",
    shape=_split_shape,
    reference=_split,
    gradient=lambda op, *grads: [None, _joined(grads, op.inputs[0])],
    shape_inputs=("split_dim",),
    samples=lambda: (Sample([Arg(values=a), Arg(s)], {"num_split": n}) for s, a, n in _SPLIT_SHAPES),
    errors=_split_errors,
)


def _split_v_shape(c: InferenceContext) -> list[Shape]:
    shape, count = c.shapes[0], c.attrs["num_split"]
    length = vector_length(c, 1, "size_splits")
    if length is not None and length != count:
        raise c.error(f"size_splits has {length} elements and num_split is {count}; they must be equal")
    axis = scalar_value(c, 2, "split_dim")
    if shape is None:
        return [None] * count
    if axis is None:
        return [(None,) * len(shape)] * count
    at = c.axis(axis, len(shape), "split_dim")
    sizes = _split_sizes(c, elements(c, 1, count), shape, at)
    return [_part(shape, at, size) for size in sizes]


def _split_sizes(
    c: InferenceContext, sizes: list[int | None], shape: tuple[int | None, ...], axis: int
) -> list[int | None]:
    """Returns the size of each part, -1 replaced by what the others leave."""
    given, size = format_shape(tuple(sizes)), shape[axis]
    if any(s is not None and s < -1 for s in sizes):
        raise c.error(f"size_splits is {given}; sizes must be zero or more, or -1 once")
    if sizes.count(-1) > 1:
        raise c.error(f"size_splits is {given}; only one size may be -1")
    if None in sizes or size is None:
        return [None if s == -1 else s for s in sizes]
    total = sum(s for s in sizes if s is not None and s > 0)
    rest = size - total
    if rest < 0 or (rest and -1 not in sizes):
        raise c.error(
            f"size_splits is {given} and dimension {axis} of the input {format_shape(shape)}; they must add up to it"
        )
    return [rest if s == -1 else s for s in sizes]


def _split_v(attrs: Attrs, value: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, ...]:
    parts = sizes.astype(np.int64)
    at = int(axis)
    parts[parts < 0] = value.shape[at] - parts[parts > 0].sum()
    return tuple(np.split(value, np.cumsum(parts)[:-1], at))


def _split_v_samples() -> Iterator[Sample]:
    for shape, sizes, axis in (
        ((6,), (1, 2, 3), 0), ((6,), (6,), 0), ((7, 13), (5, -1, 0, 1), 1), ((7, 13), (3, 4), 0), ((0, 3), (0, 0), 0),
        ((3, 4, 5), (1, 3), -2), ((65_537, 2), (65_536, 1), 0), ((6,), (-1,), 0), ((3, 0), (1, 2), 0),
    ):  # fmt: skip
        tlen = ("int32", "int64") if max(shape) > 127 else ("int8", "int32", "int64")
        yield Sample([Arg(shape), Arg(values=sizes), Arg(values=axis)], {"num_split": len(sizes)}, {"Tlen": tlen})


def _split_v_errors() -> Iterator[ErrorSample]:
    def wrong(sizes: tuple[int, ...], match: str, axis: int = 1, count: int = 0) -> ErrorSample:
        return ErrorSample(
            [Arg((2, 4)), Arg(values=sizes), Arg(values=axis)], match, {"num_split": count or len(sizes)}
        )

    yield wrong((1, -1, 4), "they must add up to it")
    yield wrong((1, 2), r"size_splits is \(1, 2\) and dimension 1 of the input \(2, 4\); they must add up to it")
    yield wrong((5,), "they must add up to it")
    yield wrong((1, -1, -1), "only one size may be -1")
    yield wrong((-2, 6), "sizes must be zero or more, or -1 once")
    yield wrong((2, 2), "split_dim 2 is outside the input's rank 2", 2)
    yield wrong((2, 2), "size_splits has 2 elements and num_split is 3", 1, 3)


define_op(
    "SplitV",
    inputs=["value: T", "size_splits: Tlen", "split_dim: int32"],
    outputs=["output: num_split * T"],
    attrs=["num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = DT_INT64"],
    python_names={"split_dim": "axis"},
    doc="The value in parts of the given sizes along the dimension `split_dim`; one size may be -1, for what is left.",
    shape=_split_v_shape,
    reference=_split_v,
    gradient=lambda op, *grads: [_joined(grads, op.inputs[2]), None, None],
    shape_inputs=("size_splits", "split_dim"),
    samples=_split_v_samples,
    errors=_split_v_errors,
)


def _unpack_shape(c: InferenceContext) -> list[Shape]:
    shape, count = c.shapes[0], c.attrs["num"]
    if shape is None:
        return [None] * count
    at = c.axis(c.attrs["axis"], len(shape))
    if shape[at] not in (None, count):
        raise c.error(f"dimension {at} of the input {format_shape(shape)} is {shape[at]}; it must equal num {count}")
    return [(*shape[:at], *shape[at + 1 :])] * count


def _unpack(attrs: Attrs, value: np.ndarray) -> tuple[np.ndarray, ...]:
    moved = np.moveaxis(value, attrs["axis"], 0)
    return tuple(moved[i, ...] for i in range(moved.shape[0]))


def _unpack_value(c: InferenceContext) -> list[HostValue]:
    value: Any = c.values[0]
    if value is None:
        return [None] * c.attrs["num"]
    return [to_dtype(np.asarray(v), c.dtypes[0]) for v in _unpack(c.attrs, value)]


def _unpack_samples() -> Iterator[Sample]:
    for shape, axis in (
        ((1,), 0), ((5,), 0), ((3, 0), 0), ((7, 13), 0), ((7, 13), 1), ((3, 5, 7), -2), ((2, 65_537), 0),
        ((65_537, 2), 1),
        ((1, 2, 1, 2, 1, 2, 1, 2), 3), ((0, 4), 0),
    ):  # fmt: skip
        yield Sample([Arg(shape)], {"num": shape[axis], "axis": axis})


def _unpack_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 4))], r"dimension 0 of the input \(2, 4\) is 2; it must equal num 3", {"num": 3})
    yield ErrorSample([Arg(())], "axis 0 is outside the input's rank 0", {"num": 1})


define_op(
    "Unpack",
    inputs=["value: T"],
    outputs=["output: num * T"],
    attrs=["num: int >= 0", "T: type", "axis: int = 0"],
    doc="The tensors that lie side by side along the dimension `axis`, which each of them lacks.",
    shape=_unpack_shape,
    reference=_unpack,
    value=_unpack_value,
    gradient=lambda op, *grads: [apply_op("Pack", [list(grads)], {"axis": op.attrs["axis"]})],
    samples=_unpack_samples,
    errors=_unpack_errors,
)

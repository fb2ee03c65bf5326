"""Pad, PadV2 and MirrorPad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, constant, known, reshape_like, shape_of, sum_all
from timberframe_core.ops.definition.host_values import checked, elements
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape, merge_dim


def _padded(c: InferenceContext) -> list[Shape]:
    shape, given = c.shapes[0], c.shapes[1]
    if given is not None and (len(given) != 2 or given[1] not in (None, 2)):
        raise c.error(f"paddings has shape {format_shape(given)}; it must be (rank, 2)")
    rows = None if given is None else given[0]
    try:
        rank = merge_dim(None if shape is None else len(shape), rows)
    except ValueError:
        raise c.error(
            f"paddings has {rows} rows and the input {format_shape(shape)}; one for each dimension is required"
        ) from None
    if rank is None:
        return [None]
    flat = elements(c, 1, 2 * rank)
    sizes: list[int | None] = []
    for i in range(rank):
        before, after = flat[2 * i], flat[2 * i + 1]
        if (before or 0) < 0 or (after or 0) < 0:
            raise c.error(f"paddings of dimension {i} are {before} and {after}; they must be zero or more")
        size = None if shape is None else shape[i]
        if size is not None:
            _check_mirror(c, i, size, max(before or 0, after or 0))
        sizes.append(None if size is None or before is None or after is None else size + before + after)
    return [checked(c, tuple(sizes))]


def _check_mirror(c: InferenceContext, axis: int, size: int, padding: int) -> None:
    """Checks that a mirror shows no more than there is: the size, without the edge itself for REFLECT."""
    mode = c.attrs.get("mode")
    if mode is None:
        return
    limit = size - 1 if mode == "REFLECT" else size
    if padding > limit:
        raise c.error(
            f"paddings of dimension {axis} reach {padding} and its size is {size}; mode {mode} allows up to {limit}"
        )


def _pairs(paddings: np.ndarray) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in paddings]


def _filled(x: np.ndarray, paddings: np.ndarray, fill: Any) -> np.ndarray:
    pairs = _pairs(paddings)
    out = np.empty(tuple(n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True)), x.dtype)
    out[...] = fill
    out[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, pairs, strict=True))] = x
    return out


def _pad(attrs: Attrs, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    return _filled(x, paddings, b"" if x.dtype == object else 0)


def _pad_v2(attrs: Attrs, x: np.ndarray, paddings: np.ndarray, fill: np.ndarray) -> np.ndarray:
    return _filled(x, paddings, fill.reshape(-1)[0])


def _pad_v2_shape(c: InferenceContext) -> list[Shape]:
    fill = c.shapes[2]
    if fill is not None and any(d not in (None, 1) for d in fill):
        raise c.late_error(f"constant_values has shape {format_shape(fill)}; it must be a scalar")
    return _padded(c)


_SHAPES: tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...] = (
    ((), ()),
    ((5,), ((0, 0),)),
    ((5,), ((2, 0),)),
    ((5,), ((0, 3),)),
    ((0,), ((2, 3),)),
    ((0, 3), ((0, 0), (1, 1))),
    ((7, 13), ((1, 2), (3, 4))),
    ((7, 13), ((0, 0), (0, 1))),
    ((7, 13), ((5, 0), (0, 0))),
    ((3, 5, 7), ((0, 1), (0, 0), (2, 0))),
    ((2, 5, 7, 3), ((0, 0), (1, 1), (2, 2), (0, 0))),
    ((65_537,), ((1, 1),)),
    ((2, 65_537), ((0, 1), (0, 3))),
    ((2, 1, 2, 2, 1, 3, 2, 2), ((1, 0), (0, 1), (0, 0), (1, 1), (1, 0), (0, 2), (1, 0), (0, 1))),
)


def _paddings(pairs: Any) -> Arg:
    return Arg(values=np.array(pairs, np.int64).reshape(-1, 2))


def _errors(rest: list[Arg], attrs: dict[str, Any]) -> Iterator[ErrorSample]:
    def wrong(paddings: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg((2, 4)), Arg(values=paddings), *rest], match, attrs)

    yield wrong([[0, -1], [0, 0]], "paddings of dimension 0 are 0 and -1; they must be zero or more")
    yield wrong([[0, 1]], r"paddings has 1 rows and the input \(2, 4\); one for each dimension is required")
    yield wrong([0, 1], r"paddings has shape \(2,\); it must be \(rank, 2\)")
    yield wrong([[0, 1, 2], [0, 1, 2]], r"paddings has shape \(2, 3\); it must be \(rank, 2\)")


def _middle(op: Any, grad: Any) -> Any:
    """Returns the part of the gradient that belongs to the input itself."""
    x, paddings = op.inputs[:2]
    value = known(paddings)
    if value is not None:
        begin = constant(value[:, 0], paddings.dtype)
    else:
        begin = apply_op("Unpack", [paddings], {"num": 2, "axis": 1})[0]
    return apply_op("Slice", [grad, begin, shape_of(x, paddings.dtype)])


define_op(
    "Pad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    doc="The input with paddings[i, 0] zeros (empty strings) before and paddings[i, 1] after it in each dimension i.",
    shape=_padded,
    reference=_pad,
    gradient=lambda op, grad: [_middle(op, grad), None],
    shape_inputs=("paddings",),
    samples=lambda: (Sample([Arg(shape), _paddings(pairs)]) for shape, pairs in _SHAPES),
    errors=lambda: _errors([], {}),
)


def _pad_v2_gradient(op: Any, grad: Any) -> list[Any]:
    inside = _middle(op, grad)
    return [inside, None, reshape_like(sum_all(grad) - sum_all(inside), op.inputs[2])]


define_op(
    "PadV2",
    inputs=["input: T", "paddings: Tpaddings", "constant_values: T"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    doc="The input with paddings[i, 0] copies of the constant before and paddings[i, 1] after it in each dimension i.",
    shape=_pad_v2_shape,
    reference=_pad_v2,
    gradient=_pad_v2_gradient,
    shape_inputs=("paddings",),
    samples=lambda: (Sample([Arg(shape), _paddings(pairs), Arg(())]) for shape, pairs in _SHAPES),
    errors=lambda: _errors([Arg(())], {}),
)


def _mirror_pad(attrs: Attrs, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    edge = 1 if attrs["mode"] == "REFLECT" else 0
    for axis, (before, after) in enumerate(_pairs(paddings)):
        size = x.shape[axis]
        left = [edge + before - 1 - i for i in range(before)]
        right = [size - 1 - edge - i for i in range(after)]
        x = np.take(x, np.array([*left, *range(size), *right], np.int64), axis)
    return x


def _mirror_samples() -> Iterator[Sample]:
    for mode, edge in (("REFLECT", 1), ("SYMMETRIC", 0)):
        for shape, pairs in _SHAPES:
            if edge and 0 in shape:
                continue  # without its edge, nothing of a size of zero can be mirrored
            limits = [n - edge for n in shape]
            allowed = [(min(a, n), min(b, n)) for (a, b), n in zip(pairs, limits, strict=True)]
            yield Sample([Arg(shape), _paddings(allowed)], {"mode": mode})
        yield Sample([Arg((5, 3)), _paddings([(5 - edge, 5 - edge), (3 - edge, 0)])], {"mode": mode})


def _mirror_errors() -> Iterator[ErrorSample]:
    yield from _errors([], {"mode": "REFLECT"})
    too_much = [Arg((2, 4)), _paddings([(0, 2), (0, 0)])]
    yield ErrorSample(
        too_much, "paddings of dimension 0 reach 2 and its size is 2; mode REFLECT allows up to 1", {"mode": "REFLECT"}
    )
    too_much = [Arg((2, 4)), _paddings([(0, 0), (5, 0)])]
    yield ErrorSample(too_much, "reach 5 and its size is 4; mode SYMMETRIC allows up to 4", {"mode": "SYMMETRIC"})


define_op(
    "MirrorPad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32", "mode: {'REFLECT', 'SYMMETRIC'}"],
    doc="The input continued in each dimension by its mirror image; SYMMETRIC repeats the edge, REFLECT does not.",
    shape=_padded,
    reference=_mirror_pad,
    gradient=lambda op, grad: [
        apply_op("MirrorPadGrad", [grad, op.inputs[1]], {"mode": op.attrs["mode"]}),
        None,
    ],
    shape_inputs=("paddings",),
    samples=_mirror_samples,
    errors=_mirror_errors,
)


def _folded(c: InferenceContext) -> list[Shape]:
    shape, given = c.shapes[0], c.shapes[1]
    if given is not None and (len(given) != 2 or given[1] not in (None, 2)):
        raise c.error(f"paddings has shape {format_shape(given)}; it must be (rank, 2)")
    if shape is None:
        return [c.unknown_sizes(None if given is None else given[0])]
    if given is not None and given[0] not in (None, len(shape)):
        raise c.error(
            f"paddings has {given[0]} rows and the input {format_shape(shape)}; one for each dimension is required"
        )
    flat = elements(c, 1, 2 * len(shape))
    sizes: list[int | None] = []
    for i, size in enumerate(shape):
        before, after = flat[2 * i], flat[2 * i + 1]
        if (before or 0) < 0 or (after or 0) < 0:
            raise c.error(f"paddings of dimension {i} are {before} and {after}; they must be zero or more")
        if size is None or before is None or after is None:
            sizes.append(None)
            continue
        rest = size - before - after
        if rest < 0:
            raise c.error(f"paddings of dimension {i} are {before} and {after} and its size is {size}; it holds both")
        _check_mirror(c, i, rest, max(before, after))
        sizes.append(rest)
    return [tuple(sizes)]


def _mirror_pad_grad(attrs: Attrs, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    edge = 1 if attrs["mode"] == "REFLECT" else 0
    for axis, (before, after) in enumerate(_pairs(paddings)):
        moved = np.moveaxis(x, axis, 0)
        size = len(moved) - before - after
        inside = moved[before : before + size].copy()
        inside[edge : edge + before] += moved[:before][::-1]
        inside[size - edge - after : size - edge] += moved[before + size :][::-1]
        x = np.moveaxis(inside, 0, axis)
    return x


def _mirror_grad_samples() -> Iterator[Sample]:
    for sample in _mirror_samples():
        x, paddings = sample.inputs
        assert isinstance(x, Arg)
        if x.shape == (2, 65_537):
            continue  # a vector is as long already
        assert isinstance(paddings, Arg)
        padded = tuple(n + int(p.sum()) for n, p in zip(x.shape, np.asarray(paddings.values), strict=True))
        numbers = {"T": tuple(t.name for t in NUMERIC)}
        yield Sample([Arg(padded, special=False), paddings], sample.attrs, numbers)


def _mirror_grad_errors() -> Iterator[ErrorSample]:
    yield from _errors([], {"mode": "REFLECT"})
    x = Arg((2, 4))
    yield ErrorSample([x, _paddings([(1, 0), (0, 0)])], "reach 1 and its size is 1; mode REFLECT", {"mode": "REFLECT"})
    yield ErrorSample([x, _paddings([(2, 1), (0, 0)])], "are 2 and 1 and its size is 2", {"mode": "SYMMETRIC"})


define_op(
    "MirrorPadGrad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32", "mode: {'REFLECT', 'SYMMETRIC'}"],
    doc="The input without what MirrorPad adds, each element of which is added to the element that it mirrors.",
    shape=_folded,
    reference=_mirror_pad_grad,
    gradient=lambda op, grad: [
        apply_op("MirrorPad", [grad, op.inputs[1]], {"mode": op.attrs["mode"]}),
        None,
    ],
    shape_inputs=("paddings",),
    accuracy=Accumulation(lambda attrs, x, paddings: 3**x.ndim),
    samples=_mirror_grad_samples,
    errors=_mirror_grad_errors,
)

"""QuantizeV2: floating numbers as the integers that stand for them, and the range that the integers cover."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape
from timberframe_ops.quantization.ranges import QUANTIZED, along, check_axis, check_ends, ends_shape

_LAST_FLOAT_OF_INT32 = 2147483520.0
"""The largest float32 that is an int32: casts of larger numbers are undefined."""
_ORDER = "max_range must be at least min_range"


@late_errors
def _shape(c: InferenceContext) -> list[Shape]:
    shape, mode = c.shapes[0], c.attrs["mode"]
    axis = check_axis(c, shape)
    if c.attrs["round_mode"] == "HALF_TO_EVEN" and mode != "SCALED":
        raise c.error(f"round_mode is HALF_TO_EVEN with mode {mode}; it serves SCALED alone")
    if axis >= 0 and mode == "MIN_FIRST":
        raise UnimplementedError(
            f"QuantizeV2 '{c.name}': mode is MIN_FIRST with axis {axis}; with an axis it must be another", c.name
        )
    ends = ends_shape(axis, shape)
    found = c.shapes[1:]
    if axis >= 0 or any(x not in ((1,), None) for x in found):
        check_ends(c, 1, ("min_range", "max_range"), ends)
    return [shape, ends, ends]


def round_away(x: np.ndarray) -> np.ndarray:
    """Rounds halves away from 0."""
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x))


def _ends(attrs: Attrs, min_range: np.ndarray, max_range: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the range that is used: it has 0, and is not narrower than a part of its largest end."""
    if (max_range < min_range).any():
        at = int(np.argmax(max_range < min_range))
        raise InvalidArgumentError(f"min_range is {min_range.flat[at]} and max_range {max_range.flat[at]}; {_ORDER}")
    low = np.minimum(np.float32(0), min_range)
    least = np.maximum(np.float32(1), np.maximum(np.abs(min_range), np.abs(max_range)))
    least = least * np.float32(attrs["ensure_minimum_range"])
    return low, np.maximum(np.float32(0), np.maximum(max_range, low + least))


def _scaled(attrs: Attrs, info: Any, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the ends that integers stand for exactly, and how many steps one unit has; 0 stands for 0."""
    first, last = np.float32(info.min + attrs["narrow_range"]), np.float32(info.max)
    most = np.float32(np.finfo(np.float32).max)
    with np.errstate(all="ignore"):
        scales = [np.where(end * x > 0, end / x, most).astype(np.float32) for end, x in ((first, low), (last, high))]
    scale = np.minimum(*scales)
    return first / scale, last / scale, scale


def _steps(attrs: Attrs, info: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns numbers in steps of the integers, of the modes whose range has all integers; low and high broadcast."""
    scale = (np.float32(float(info.max) - float(info.min)) / (high - low)).astype(np.float32)
    if attrs["mode"] == "MIN_FIRST":
        return np.asarray(round_away(x * scale) - (round_away(low * scale) - np.float32(info.min)))
    moved = (np.maximum(np.minimum(x, high), low) - low) * scale
    if info.min == 0:
        return np.asarray(np.floor(moved + np.float32(0.5)))
    return round_away(moved - np.float32((float(info.max) - float(info.min) + 1) / 2))


def _reference(attrs: Attrs, x: np.ndarray, min_range: np.ndarray, max_range: np.ndarray) -> tuple[np.ndarray, ...]:
    """Computes in float32 whatever it is given, so that every device gives the same integers."""
    axis, dtype = attrs["axis"], attrs["T"].numpy
    info = np.iinfo(dtype)
    x = np.asarray(x, np.float32)
    shape = () if axis < 0 else (-1,)
    low, high = _ends(attrs, *(np.asarray(end, np.float32).reshape(shape) for end in (min_range, max_range)))
    if attrs["mode"] == "SCALED":
        low, high, scale = _scaled(attrs, info, low, high)
        within = np.maximum(np.minimum(x, along(axis, x, high)), along(axis, x, low)) * along(axis, x, scale)
        found = np.rint(within) if attrs["round_mode"] == "HALF_TO_EVEN" else round_away(within)
    else:
        found = _steps(attrs, info, x, along(axis, x, low), along(axis, x, high))
    numbers = np.clip(found, info.min, min(float(info.max), _LAST_FLOAT_OF_INT32))
    return np.where(np.isnan(found), info.min, numbers).astype(dtype), low, high


_RANGES = ((-1.5, 3.25), (0.5, 2.0), (-3.0, -1.0), (0.25, 0.25), (-6.0, 6.0))
_MODES = (
    ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"), ("MIN_FIRST", "HALF_AWAY_FROM_ZERO"),
    ("SCALED", "HALF_AWAY_FROM_ZERO"), ("SCALED", "HALF_TO_EVEN"),
)  # fmt: skip


def _samples() -> Iterator[Sample]:
    for mode, rounding in _MODES:
        attrs = {"mode": mode, "round_mode": rounding}
        for low, high in _RANGES:
            yield Sample([Arg((2, 3, 5)), *(Arg(values=np.float32(x)) for x in (low, high))], attrs)
        ends = [Arg(values=np.float32(x)) for x in (-1.5, 3.25)]
        for shape in ((), (7,), (0, 3), (4, 67)):
            yield Sample([Arg(shape), *ends], attrs)
        yield Sample([Arg((7,)), *ends], {**attrs, "ensure_minimum_range": 2.0})
        if mode == "SCALED":
            halves = Arg(values=np.arange(-9, 10, dtype=np.float32) / 2)
            one_a_step = [Arg(values=np.float32(x)) for x in (-127, 127)]
            yield Sample([halves, *one_a_step], {**attrs, "narrow_range": True}, {"T": ("qint8",)})
        if mode != "MIN_FIRST":
            for axis, size in ((0, 2), (1, 3), (2, 5)):
                each = [Arg(values=np.linspace(x, 2 * x, size, dtype=np.float32)) for x in (-1.0, 1.5)]
                yield Sample([Arg((2, 3, 5)), *each], {**attrs, "axis": axis})


def _errors() -> Iterator[ErrorSample]:
    x, one, two = Arg((2, 3)), Arg(values=np.float32(1)), Arg(values=np.ones(2, np.float32))
    even, first = {"round_mode": "HALF_TO_EVEN"}, {"mode": "MIN_FIRST", "axis": 0}
    yield ErrorSample([x, one, one], "round_mode is HALF_TO_EVEN with mode MIN_COMBINED; it serves SCALED alone", even)
    yield ErrorSample([x, two, two], "mode is MIN_FIRST with axis 0", first, error="UnimplementedError")
    yield ErrorSample([x, one, one], "axis is 2 for an input of rank 2; it must be below the rank", {"axis": 2})
    yield ErrorSample([x, one, one], "axis is -2; -1", {"axis": -2})
    yield ErrorSample([x, two, two], r"min_range has shape \(2,\); it must be \(\)")
    yield ErrorSample([x, two, two], r"min_range has shape \(2,\); it must be \(3,\)", {"axis": 1})
    yield ErrorSample([x, one, Arg(values=np.float32(0.5))], f"min_range is 1.0 and max_range 0.5; {_ORDER}")


define_op(
    "QuantizeV2",
    inputs=["input: float", "min_range: float", "max_range: float"],
    outputs=["output: T", "output_min: float", "output_max: float"],
    attrs=[
        f"T: {QUANTIZED}",
        "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
        "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
        "narrow_range: bool = false",
        "axis: int = -1",
        "ensure_minimum_range: float = 0.01",
    ],
    doc="The integers that stand for floating numbers, and the range that all of them cover, which is min_range to "
    "max_range with 0 in it, and at least the part ensure_minimum_range of its largest end wide. Numbers outside are "
    "those of its ends. With SCALED 0 stands for 0, and the end that needs more steps decides; narrow_range leaves the "
    "least integer out. With an axis each slice has a range of its own. Every bit is determined: the arithmetic is "
    "float32's. A qint32 saturates where TensorFlow's overflows.",
    shape=_shape,
    reference=_reference,
    gradient=MissingGradient("it is constant between steps; QuantizeAndDequantizeV2 passes gradients on"),
    samples=_samples,
    errors=_errors,
)

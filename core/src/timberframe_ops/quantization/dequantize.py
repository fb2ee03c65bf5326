"""Dequantize: quantized integers as the floating numbers that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.dtypes import bfloat16
from timberframe_core.errors import UnimplementedError
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.quantization.ranges import along, check_axis


@late_errors
def _shape(c: InferenceContext) -> list[Shape]:
    shape, mode = c.shapes[0], c.attrs["mode"]
    axis = check_axis(c, shape)
    if c.attrs["dtype"] is bfloat16 and mode != "MIN_COMBINED":
        raise c.error(f"mode is {mode} with dtype bfloat16; it must be MIN_COMBINED")
    if axis >= 0 and mode == "MIN_FIRST":
        raise UnimplementedError(
            f"Dequantize '{c.name}': mode is MIN_FIRST with axis {axis}; with an axis it must be another", c.name
        )
    wanted = 1 if axis < 0 else None if shape is None else shape[axis]
    for i, name in ((1, "min_range"), (2, "max_range")):
        found = c.shapes[i]
        if found is None or None in found or wanted is None:
            continue
        if found != (wanted,) and (axis >= 0 or found != ()):
            raise c.error(f"{name} has shape {format_shape(found)}; it must be ({wanted},)" + " or ()" * (axis < 0))
    return [shape]


def _reference(attrs: Attrs, x: np.ndarray, min_range: np.ndarray, max_range: np.ndarray) -> np.ndarray:
    info, kind = np.iinfo(x.dtype), min_range.dtype.type
    low, high = (along(attrs["axis"], x, end) for end in (min_range, max_range))
    wide = x.astype(kind)
    if attrs["mode"] == "SCALED":
        least = info.min + attrs["narrow_range"]
        scale = high / kind(info.max)
        return np.asarray(wide * (scale if info.min == 0 else np.maximum(low / kind(least), scale)))
    scale = (high - low) / (kind(info.max) - kind(info.min))
    if attrs["mode"] == "MIN_COMBINED":
        half = kind(0 if info.min == 0 else (float(info.max) - info.min + 1) / 2)
        return np.asarray((wide + half) * scale + low)
    if low == high:
        return np.full(x.shape, low)
    return np.asarray((wide - kind(info.min)) * scale + np.round(low / scale) * scale)


def _error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    largest = sum(float(np.abs(x).max(initial=0)) for x in inputs[1:])
    return np.full(expected.shape, 8 * u * largest)


def _samples() -> Iterator[Sample]:
    ends = [Arg(values=np.float32(x)) for x in (-1.5, 3.25)]
    for shape in ((), (7,), (2, 3, 5), (0, 3)):
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            types = {} if mode == "MIN_COMBINED" else {"dtype": ("float32",)}
            yield Sample([Arg(shape), *ends], {"mode": mode}, types)
    yield Sample([Arg((4,)), *ends], {"mode": "SCALED", "narrow_range": True}, {"dtype": ("float32",)})
    equal = Arg(values=np.float32(2))
    yield Sample([Arg((4,)), equal, equal], {"mode": "MIN_FIRST"}, {"dtype": ("float32",)})
    ranges = [Arg(values=np.array(x, np.float32)) for x in ((-1, -2, -3), (1, 3, 2))]
    for mode in ("MIN_COMBINED", "SCALED"):
        yield Sample([Arg((2, 3, 2)), *ranges], {"mode": mode, "axis": 1}, {"dtype": ("float32",)})


def _errors() -> Iterator[ErrorSample]:
    x, one, two = Arg((2, 3)), Arg(values=np.float32(1)), Arg(values=np.array([1, 2], np.float32))
    for limits, axis, match in (
        ((one, one), -2, "axis is -2; -1"),
        ((one, one), 2, "axis is 2 for an input of rank 2; it must be below the rank"),
        ((two, one), -1, r"min_range has shape \(2,\); it must be \(1,\) or \(\)"),
        ((two, two), 1, r"min_range has shape \(2,\); it must be \(3,\)"),
        ((one, two), 0, r"min_range has shape \(\); it must be \(2,\)"),
    ):
        yield ErrorSample([x, *limits], match, {"axis": axis})
    first = {"mode": "MIN_FIRST"}
    with_axis, error = "mode is MIN_FIRST with axis 0", "UnimplementedError"
    yield ErrorSample([x, two, two], with_axis, {"axis": 0, **first}, {"dtype": ("float32",)}, error)
    yield ErrorSample([x, one, one], "mode is MIN_FIRST with dtype bfloat16", first, {"dtype": ("bfloat16",)})


define_op(
    "Dequantize",
    inputs=["input: T", "min_range: float", "max_range: float"],
    outputs=["output: dtype"],
    attrs=[
        "T: quantizedtype",
        "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
        "narrow_range: bool = false",
        "axis: int = -1",
        "dtype: {bfloat16, float} = DT_FLOAT",
    ],
    doc="The floating numbers that quantized integers stand for. The whole range of the integers stands for min_range "
    "to max_range; with MIN_FIRST moved so that 0 is exact, with SCALED 0 is 0 and only the larger end is met. With an "
    "axis each slice has a range of its own.",
    shape=_shape,
    reference=_reference,
    gradient=MissingGradient("TensorFlow has none of the ends of ranges either"),
    accuracy=Bound(_error, "each of the few operations rounds a number of the size of the range"),
    samples=_samples,
    errors=_errors,
)

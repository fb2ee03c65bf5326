"""Grayscale morphological dilation of images, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.ops.definition.accuracy import EXACT, Accumulation
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge, merge_dim
from timberframe_ops.nn.windows import (
    check_window_attr,
    output_size,
    pad_spatial,
    padding_amounts,
    unimplemented,
    widen,
    windows,
)


def _dilated(c: InferenceContext) -> tuple[int | None, ...]:
    x, filter = c.require_rank(0, 4), c.require_rank(1, 3)
    strides, rates = c.attrs["strides"], c.attrs["rates"]
    for name, values in (("strides", strides), ("rates", rates)):
        check_window_attr(c, name, values)
        if values[0] != 1 or values[3] != 1:
            raise unimplemented(c, f"{name} is {list(values)}; batch and channels allow only 1")
    if 0 in filter:
        raise c.error(f"filter has shape {format_shape(filter)}; all its sizes must be positive")
    try:
        channels = merge_dim(x[3], filter[2])
    except ValueError:
        raise c.error(f"input has {x[3]} channels; the filter takes {filter[2]}, they must agree") from None
    sizes = [output_size(c, x[i], filter[i - 1], strides[i], rates[i], c.attrs["padding"]) for i in (1, 2)]
    return (x[0], *sizes, channels)


def _gradient_shape(of: int) -> Callable[[InferenceContext], Sequence[Shape]]:
    def shape(c: InferenceContext) -> Sequence[Shape]:
        expected, grad = _dilated(c), c.require_rank(2, 4)
        try:
            merge(expected, grad)
        except ValueError:
            raise c.late_error(
                f"out_backprop has shape {format_shape(grad)}; it must have the result's, {format_shape(expected)}"
            ) from None
        return [c.shapes[of]]

    return shape


def _sums(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each output and tap the sum, the lowest number outside the image; and the number of the pixel, -1 outside."""
    lowest = np.asarray(as_dtype(input.dtype).min, input.dtype)
    kernel, strides, rates = filter.shape[:2], attrs["strides"][1:3], attrs["rates"][1:3]
    pads = [padding_amounts(input.shape[i + 1], kernel[i], strides[i], rates[i], attrs["padding"]) for i in (0, 1)]
    order = np.arange(input.size, dtype=np.int64).reshape(input.shape)
    where = windows(pad_spatial(order, pads, -1), kernel, strides, rates)
    where = where.reshape(*where.shape[:4], math.prod(kernel))
    if not input.size:
        return np.full(where.shape, lowest, input.dtype), where
    taps = filter.reshape(-1, filter.shape[2]).T
    with np.errstate(over="ignore"):
        sums = (widen(input).ravel()[np.maximum(where, 0)] + widen(taps)).astype(input.dtype)
    return np.where((where >= 0) & (sums > lowest), sums, lowest), where


def _dilation(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    return np.asarray(_sums(attrs, input, filter)[0].max(axis=-1))


def _largest(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each output the tap that gives it, the first of equals inside the image, and the pixel there."""
    sums, where = _sums(attrs, input, filter)
    tap = ((where >= 0) & (sums == sums.max(axis=-1, keepdims=True))).argmax(axis=-1)
    return tap, np.take_along_axis(where, tap[..., None], axis=-1)[..., 0]


def _input_gradient(attrs: Attrs, input: np.ndarray, filter: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    wide = widen(out_backprop)
    result = np.zeros(input.size, wide.dtype)
    np.add.at(result, _largest(attrs, input, filter)[1].ravel(), wide.ravel())
    return result.reshape(input.shape).astype(input.dtype)


def _filter_gradient(attrs: Attrs, input: np.ndarray, filter: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    wide, (tap, _) = widen(out_backprop), _largest(attrs, input, filter)
    result = np.zeros((filter.shape[0] * filter.shape[1], filter.shape[2]), wide.dtype)
    channels: Any = np.broadcast_to(np.arange(filter.shape[2]), tap.shape)
    np.add.at(result, (tap.ravel(), channels.ravel()), wide.ravel())
    return result.reshape(filter.shape).astype(filter.dtype)


def _input_magnitude(attrs: Attrs, input: np.ndarray, filter: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    return _input_gradient(attrs, input, filter, np.abs(out_backprop))


def _filter_magnitude(attrs: Attrs, input: np.ndarray, filter: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    return _filter_gradient(attrs, input, filter, np.abs(out_backprop))


# (input, filter, strides, rates, padding)
_GEOMETRIES = (
    ((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), "VALID"),
    ((2, 5, 7, 3), (3, 3), (1, 1), (1, 1), "SAME"),
    ((1, 9, 8, 4), (3, 2), (2, 3), (1, 1), "SAME"),
    ((1, 11, 10, 3), (3, 3), (1, 2), (2, 3), "SAME"),
    ((2, 7, 6, 2), (2, 3), (1, 1), (2, 1), "VALID"),
    ((1, 4, 5, 130), (2, 2), (1, 1), (1, 1), "SAME"),
    ((0, 4, 4, 3), (2, 2), (1, 1), (1, 1), "SAME"),
)


def _attrs(strides: Sequence[int], rates: Sequence[int], padding: str) -> dict[str, Any]:
    return {"strides": (1, *strides, 1), "rates": (1, *rates, 1), "padding": padding}


def _samples() -> Iterator[Sample]:
    for shape, kernel, strides, rates, padding in _GEOMETRIES:
        x, filter = Arg(shape, special=False), Arg((*kernel, shape[3]), special=False)
        yield Sample((x, filter), _attrs(strides, rates, padding))


def _gradient_samples() -> Iterator[Sample]:
    """Yields values that no rounding brings to one sum, or that are equal in every dtype."""
    for shape, kernel, strides, rates, padding in _GEOMETRIES:
        x = (np.arange(math.prod(shape)) * 7 % 23).reshape(shape)
        filter = (np.arange(math.prod(kernel) * shape[3]) * 5 % 11).reshape((*kernel, shape[3]))
        attrs = _attrs(strides, rates, padding)
        known = [None, None]
        result: Any = _dilated(InferenceContext(DILATION, "sample", attrs, [shape, filter.shape], known, [float32] * 2))
        yield Sample((Arg(values=x, fixed=True), Arg(values=filter, fixed=True), Arg(result, special=False)), attrs)


def _errors() -> Iterator[ErrorSample]:
    x, w, base = Arg((1, 4, 4, 2)), Arg((2, 2, 2)), _attrs((1, 1), (1, 1), "VALID")
    yield ErrorSample((Arg((4, 4, 2)), w), "must have rank 4", base)
    yield ErrorSample((x, Arg((2, 2))), "must have rank 3", base)
    yield ErrorSample((x, Arg((2, 2, 3))), "input has 2 channels; the filter takes 3", base)
    yield ErrorSample((x, Arg((0, 2, 2))), "sizes must be positive", base)
    yield ErrorSample((x, Arg((7, 2, 2))), "not be larger than the padded input", base)
    yield ErrorSample((x, w), "allow only 1", base | {"strides": (1, 1, 1, 2)}, error="UnimplementedError")
    yield ErrorSample((x, w), "allow only 1", base | {"rates": (2, 1, 1, 1)}, error="UnimplementedError")
    yield ErrorSample((x, w), "must have 4 values", base | {"rates": (1, 1, 1, 1, 1)})
    yield ErrorSample((x, w), "must be positive", base | {"strides": (1, 0, 1, 1)})


def _gradient_errors() -> Iterator[ErrorSample]:
    x, w, base = Arg((1, 4, 4, 2)), Arg((2, 2, 2)), _attrs((1, 1), (1, 1), "VALID")
    yield ErrorSample((x, w, Arg((1, 3, 4, 2))), "out_backprop has shape", base)
    yield ErrorSample((x, Arg((2, 2, 3)), Arg((1, 3, 3, 2))), "input has 2 channels; the filter takes 3", base)


def _gradient(op: Any, grad: Any) -> list[Any]:
    x, filter = op.inputs
    attrs = {name: op.attrs[name] for name in ("strides", "rates", "padding")}
    return [apply_op(f"Dilation2DBackprop{of}", [x, filter, grad], attrs) for of in ("Input", "Filter")]


_DECLARED = (
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
)
_NO_SECOND = MissingGradient("TensorFlow has no second derivative of dilation either")

DILATION = define_op(
    "Dilation2D",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=_DECLARED,
    doc="The largest sum of an NHWC pixel and the filter's value for it, over the taps of a filter [height, width, C].",
    shape=lambda c: [_dilated(c)],
    reference=_dilation,
    gradient=_gradient,
    accuracy=EXACT,
    samples=_samples,
    errors=_errors,
)

define_op(
    "Dilation2DBackpropInput",
    inputs=("input: T", "filter: T", "out_backprop: T"),
    outputs=("in_backprop: T",),
    attrs=_DECLARED,
    doc="The gradient of Dilation2D by its input: each value goes to the pixel of the first largest sum.",
    shape=late_errors(_gradient_shape(0)),
    reference=_input_gradient,
    gradient=_NO_SECOND,
    accuracy=Accumulation(lambda attrs, x, filter, grad: filter.shape[0] * filter.shape[1], _input_magnitude),
    samples=_gradient_samples,
    errors=_gradient_errors,
)

define_op(
    "Dilation2DBackpropFilter",
    inputs=("input: T", "filter: T", "out_backprop: T"),
    outputs=("filter_backprop: T",),
    attrs=_DECLARED,
    doc="The gradient of Dilation2D by its filter: each value goes to the tap of the first largest sum.",
    shape=late_errors(_gradient_shape(1)),
    reference=_filter_gradient,
    gradient=_NO_SECOND,
    accuracy=Accumulation(lambda attrs, x, filter, grad: grad.size // max(grad.shape[3], 1), _filter_magnitude),
    samples=_gradient_samples,
    errors=_gradient_errors,
)

"""The gradients of pooling.

The gradient of a maximum goes to the first of equal values in its window, in the order of rows; where NaN comes first,
to it. MaxPoolGrad looks for the maximum itself, as TensorFlow does: of orig_output only the shape matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32, int32
from timberframe_core.ops.definition.accuracy import EXACT, Accumulation, Accuracy
from timberframe_core.ops.definition.gradients import apply_op, constant, zeros_like
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, OpDef, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge
from timberframe_ops.nn.pooling import (
    AVG_POOL,
    MAX_POOL,
    WINDOW_ATTRS,
    image_windows,
    max_pool_samples,
    pool_attrs,
    pool_samples,
    pooled,
    window_values,
)
from timberframe_ops.nn.windows import (
    channel_axis,
    from_channels_last,
    pad_spatial,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    widen,
)

_Sizes = Sequence[int] | None


def _merge(c: InferenceContext, name: str, given: Shape, wanted: Shape) -> None:
    try:
        merge(given, wanted)
    except ValueError:
        raise c.late_error(f"{name} has shape {format_shape(given)}; it must be {format_shape(wanted)}") from None


def _max_grad_shape(c: InferenceContext, ksize: _Sizes, strides: _Sizes, second: bool) -> Sequence[Shape]:
    """second: the gradient has the shape of the input, and the result that of the output."""
    x = c.require_rank(0, 4)
    y = pooled(c, x, ksize, strides, maximum=True)
    _merge(c, "orig_output", c.require_rank(1, 4), y)
    _merge(c, "grad", c.require_rank(2, 4), x if second else y)
    return [y if second else x]


def _attr_shape(second: bool) -> Callable[[InferenceContext], Sequence[Shape]]:
    return lambda c: _max_grad_shape(c, c.attrs["ksize"], c.attrs["strides"], second)


def _input_shape(second: bool) -> Callable[[InferenceContext], Sequence[Shape]]:
    return lambda c: _max_grad_shape(c, *window_values(c, 3), second=second)


def _tap_windows(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    """Windows with their taps in one last dimension; -1 outside an image that holds no negative number."""
    taps = image_windows(attrs, x, -1)
    depth = attrs["ksize"][channel_axis(attrs["data_format"], 4)]
    return taps.reshape(*taps.shape[:3], taps.shape[3] // depth, depth * math.prod(taps.shape[4:]))


def _positions(attrs: Attrs, shape: Sequence[int]) -> np.ndarray:
    """For each output (NHWC) and tap the element of the NHWC image that is there, -1 outside."""
    order = np.arange(math.prod(shape), dtype=np.int64)
    last = to_channels_last(np.zeros(shape, np.int8), attrs["data_format"]).shape
    return _tap_windows(attrs, from_channels_last(order.reshape(last), attrs["data_format"]))


def first_maxima(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    """For each output (NHWC) the element of the NHWC image that is the window's first maximum."""
    where = _positions(attrs, x.shape)
    flat = to_channels_last(x, attrs["data_format"]).ravel()
    if not where.size:
        return np.zeros(where.shape[:4], np.int64)
    values = flat[np.maximum(where, 0)]
    lowest = np.where(where >= 0, values, values.min())
    largest = (where >= 0) & (lowest == lowest.max(axis=-1, keepdims=True))
    return np.take_along_axis(where, largest.argmax(axis=-1)[..., None], axis=-1)[..., 0]


def _max_grad(attrs: Attrs, orig_input: np.ndarray, orig_output: np.ndarray, grad: np.ndarray) -> np.ndarray:
    data_format, wide = attrs["data_format"], widen(grad)
    result = np.zeros(orig_input.size, wide.dtype)
    np.add.at(result, first_maxima(attrs, orig_input).ravel(), to_channels_last(wide, data_format).ravel())
    shape = to_channels_last(orig_input, data_format).shape
    return from_channels_last(result.reshape(shape).astype(grad.dtype), data_format)


def _max_grad_grad(attrs: Attrs, orig_input: np.ndarray, orig_output: np.ndarray, grad: np.ndarray) -> np.ndarray:
    data_format, where = attrs["data_format"], _positions(attrs, orig_input.shape)
    y = to_channels_last(orig_output, data_format)
    if not where.size:
        return np.zeros(orig_output.shape, grad.dtype)
    values = to_channels_last(orig_input, data_format).ravel()[np.maximum(where, 0)]
    equal = (where >= 0) & (values == y[..., None])
    first = np.take_along_axis(where, equal.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    taken = to_channels_last(grad, data_format).ravel()[np.maximum(first, 0)]
    result = np.where(equal.any(axis=-1), taken, np.zeros((), grad.dtype))
    return from_channels_last(result.astype(grad.dtype), data_format)


def _with_windows(reference: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Returns a reference whose ksize and strides are inputs."""

    def with_inputs(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
        *tensors, ksize, strides = inputs
        return reference({**attrs, "ksize": ksize.tolist(), "strides": strides.tolist()}, *tensors)

    return with_inputs


def _overlaps(attrs: Attrs, *inputs: np.ndarray) -> int:
    """Returns the most windows that an element lies in."""
    ksize, strides = (attrs["ksize"], attrs["strides"]) if "ksize" in attrs else (inputs[-2], inputs[-1])
    return math.prod(-(-int(k) // int(s)) for k, s in zip(ksize, strides, strict=True))


def _max_grad_magnitude(
    attrs: Attrs, x: np.ndarray, y: np.ndarray, grad: np.ndarray, *window: np.ndarray
) -> np.ndarray:
    reference = _with_windows(_max_grad) if window else _max_grad
    return reference(attrs, x, y, np.abs(grad), *window)


def _result(forward: OpDef, sample: Sample) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns shapes of the input and the output of a sample of the pooling itself."""
    (x,) = sample.inputs
    assert isinstance(x, Arg)
    attrs = {"explicit_paddings": (), "data_format": "NHWC", **sample.attrs}
    (shape,) = forward.shape(InferenceContext(forward, "sample", attrs, [x.shape], [None], [float32]))
    known: Any = shape
    return x.shape, known


def _representative(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yields those of the forward's samples that reach all of a gradient.

    Windows that overlap, that touch and that leave elements out, of space and of channels, in each layout.
    """
    for number, sample in enumerate(samples):
        (x,) = sample.inputs
        assert isinstance(x, Arg)
        ksize, strides = sample.attrs["ksize"], sample.attrs["strides"]
        sparse = any(s > k for k, s in zip(ksize, strides, strict=True))
        special = sparse or not x.shape[0] or sample.attrs["padding"] == "EXPLICIT"
        if math.prod(x.shape) < 5000 and (number % 3 == 0 or special):
            yield sample


def _max_samples(second: bool) -> Iterator[Sample]:
    for sample in _representative(max_pool_samples()):
        explicit = sample.attrs["padding"] == "EXPLICIT"
        if second and explicit:
            continue
        shape, pooled_shape = _result(MAX_POOL, sample)
        attrs = {"explicit_paddings": (), "data_format": "NHWC", **sample.attrs}
        x = (np.arange(math.prod(shape)) * 37 % 101).reshape(shape)  # with equal values in some windows
        y = _pooled_values(attrs, x, pooled_shape)
        grad = Arg(shape if second else pooled_shape, special=False)
        yield Sample((Arg(values=x, fixed=True), Arg(values=y, fixed=True), grad), sample.attrs)


def _pooled_values(attrs: Attrs, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if not math.prod(shape):
        return np.zeros(shape, np.int64)
    return from_channels_last(_tap_windows(attrs, x).max(axis=-1), attrs["data_format"])


def _max_v2_samples(second: bool) -> Iterator[Sample]:
    for sample in _max_samples(second):
        if sample.attrs["padding"] == "EXPLICIT":
            continue
        window = [Arg(values=sample.attrs[name], dtype="int32") for name in ("ksize", "strides")]
        attrs = {name: sample.attrs[name] for name in ("padding", "data_format") if name in sample.attrs}
        yield Sample((*sample.inputs, *window), attrs)


def _max_errors(second: bool) -> Iterator[ErrorSample]:
    base = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x, y = Arg((1, 4, 4, 2)), Arg((1, 2, 2, 2))
    grad = x if second else y
    yield ErrorSample((x, Arg((1, 2, 3, 2)), grad), "orig_output has shape", base)
    yield ErrorSample((x, y, Arg((1, 3, 2, 2))), "grad has shape", base)
    yield ErrorSample((Arg((4, 4, 2)), y, grad), "must have rank 4", base)
    yield ErrorSample((x, y, grad), "ksize is .*must be positive", base | {"ksize": (1, 0, 2, 1)})
    deep = base | {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 1)}
    yield ErrorSample((x, y, grad), "they must be equal", deep, error="UnimplementedError")


def _max_v2_errors(second: bool) -> Iterator[ErrorSample]:
    for sample in _max_errors(second):
        window = [Arg(values=sample.attrs[name], dtype="int32") for name in ("ksize", "strides")]
        yield ErrorSample((*sample.inputs, *window), sample.match, {"padding": "VALID"}, error=sample.error)


def _max_gradient(op: Any, grad: Any) -> list[Any]:
    """grad, seen at the positions of the maxima; orig_input and orig_output move nothing but those."""
    x, y, _, *window = op.inputs
    attrs = dict(pool_attrs(op))
    amounts = attrs.pop("explicit_paddings", ())
    result = [zeros_like(x), zeros_like(y)]
    if op.attrs["padding"] == "EXPLICIT":  # which the op for this does not have
        pairs = constant([amounts[i : i + 2] for i in range(0, 8, 2)], int32)
        x = apply_op("PadV2", [x, pairs, constant(x.dtype.min, x.dtype)])
        grad, attrs["padding"] = apply_op("Pad", [grad, pairs]), "VALID"
    suffix = "V2" if window else ""
    return [*result, apply_op(f"MaxPoolGradGrad{suffix}", [x, y, grad, *window], attrs), *[None] * len(window)]


def _max_second_gradient(op: Any, grad: Any) -> list[Any]:
    """grad, put at the positions of the maxima."""
    x, y, _, *window = op.inputs
    suffix = "V2" if window else ""
    by_grad = apply_op(f"MaxPoolGrad{suffix}", [x, y, grad, *window], pool_attrs(op))
    return [zeros_like(x), zeros_like(y), by_grad, *[None] * len(window)]


REAL_NUMBERS = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_FORMATS = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_PADDING = "padding: {'SAME', 'VALID'}"
_SUMS = Accumulation(_overlaps, _max_grad_magnitude)
_GRAD_DOC = "The gradient of {}: each window's grad goes to the position of its maximum."
_GRAD_GRAD_DOC = (
    "The gradient of {}: of each window the grad at the position of its maximum, 0 where orig_output is not found."
)


def _define_max(second: bool, inputs: bool, default: str, padding: tuple[str, ...], of: str) -> None:
    """second: MaxPoolGradGrad instead of MaxPoolGrad. inputs: ksize and strides are inputs, not attrs."""
    reference, suffix = (_max_grad_grad if second else _max_grad), ("V2" if inputs else "")
    accuracy: Accuracy = EXACT if second else _SUMS
    define_op(
        ("MaxPoolGradGrad" if second else "MaxPoolGrad") + suffix,
        inputs=("orig_input: T", "orig_output: T", "grad: T", *(("ksize: int32", "strides: int32") if inputs else ())),
        outputs=("output: T",),
        attrs=(*(() if inputs else WINDOW_ATTRS), *padding, _FORMATS, f"T: {REAL_NUMBERS}{default}"),
        doc=(_GRAD_GRAD_DOC if second else _GRAD_DOC).format(of),
        shape=late_errors(_input_shape(second) if inputs else _attr_shape(second)),
        reference=_with_windows(reference) if inputs else reference,
        gradient=_max_second_gradient if second else _max_gradient,
        constant_inputs=("orig_input", "orig_output") if second else (),
        accuracy=accuracy,
        shape_inputs=("ksize", "strides") if inputs else (),
        samples=lambda: _max_v2_samples(second) if inputs else _max_samples(second),
        errors=lambda: _max_v2_errors(second) if inputs else _max_errors(second),
    )


_EXPLICIT = ("padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []")
_define_max(False, False, " = DT_FLOAT", _EXPLICIT, "MaxPool")
_define_max(False, True, " = DT_FLOAT", (_PADDING,), "MaxPoolV2")
_define_max(True, False, "", (_PADDING,), "MaxPoolGrad")
_define_max(True, True, "", (_PADDING,), "MaxPoolGradV2")


@late_errors
def _avg_grad_shape(c: InferenceContext) -> Sequence[Shape]:
    (length,) = c.require_rank(0, 1)
    if length not in (None, 4):
        raise c.late_error(f"orig_input_shape has {length} values; it must have 4")
    sizes, grad = c.shape_value(0), c.require_rank(1, 4)
    x = (None,) * 4 if sizes is None else sizes
    _merge(c, "grad", grad, pooled(c, x, c.attrs["ksize"], c.attrs["strides"], maximum=False))
    return [x]


def _avg_grad(attrs: Attrs, orig_input_shape: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Returns each window's grad, divided by the number of its positions inside the image, added to all of them."""
    data_format, shape = attrs["data_format"], tuple(int(d) for d in orig_input_shape)
    dy, axes = to_channels_last(widen(grad), data_format), spatial_axes(data_format)
    ksize, strides = [attrs["ksize"][a] for a in axes], [attrs["strides"][a] for a in axes]
    pads = [padding_amounts(shape[a], ksize[i], strides[i], 1, attrs["padding"]) for i, a in enumerate(axes)]
    batch, height, width, channels = to_channels_last(np.zeros(shape, np.int8), data_format).shape
    padded = pad_spatial(np.zeros((batch, height, width, channels), dy.dtype), pads)
    inside = pad_spatial(np.ones((1, height, width, 1), dy.dtype), pads)
    if dy.size:
        ends = [(n - 1) * s + 1 for n, s in zip(dy.shape[1:3], strides, strict=True)]
        parts = [
            (slice(i, i + ends[0], strides[0]), slice(j, j + ends[1], strides[1]))
            for i in range(ksize[0])
            for j in range(ksize[1])
        ]
        count = sum(inside[:, y, x] for y, x in parts)
        share = dy / np.maximum(count, 1)
        for y, x in parts:
            padded[:, y, x] += share
    (top, _), (left, _) = pads
    return from_channels_last(padded[:, top : top + height, left : left + width].astype(grad.dtype), data_format)


def _avg_samples() -> Iterator[Sample]:
    for sample in _representative(pool_samples(("NHWC", "NCHW"))):
        shape, pooled_shape = _result(AVG_POOL, sample)
        yield Sample((Arg(values=shape, dtype="int32"), Arg(pooled_shape, special=False)), sample.attrs)


def _avg_errors() -> Iterable[ErrorSample]:
    base = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x, grad = Arg(values=(1, 4, 4, 2), dtype="int32"), Arg((1, 2, 2, 2))
    yield ErrorSample((x, Arg((1, 2, 3, 2))), "grad has shape", base)
    yield ErrorSample((Arg(values=(1, 4, 4), dtype="int32"), grad), "has 3 values; it must have 4", base)
    yield ErrorSample((x, Arg((2, 2, 2))), "must have rank 4", base)
    deep = base | {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2)}
    yield ErrorSample((x, grad), "pool over channels", deep, error="UnimplementedError")


define_op(
    "AvgPoolGrad",
    inputs=("orig_input_shape: int32", "grad: T"),
    outputs=("output: T",),
    attrs=(*WINDOW_ATTRS, _PADDING, _FORMATS, "T: {half, bfloat16, float, double}"),
    doc="The gradient of AvgPool by its input, whose shape is orig_input_shape.",
    shape=_avg_grad_shape,
    reference=_avg_grad,
    gradient=lambda op, grad: [None, apply_op("AvgPool", [grad], pool_attrs(op))],
    accuracy=Accumulation(lambda attrs, *inputs: _overlaps(attrs) + 2),
    shape_inputs=("orig_input_shape",),
    samples=_avg_samples,
    errors=_avg_errors,
)

"""Maxima and means over windows of an image."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition.accuracy import Accumulation, Exact
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape
from timberframe_ops.nn.windows import (
    channel_axis,
    check_window_attr,
    explicit_pairs,
    from_channels_last,
    output_size,
    pad_spatial,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    unimplemented,
    widen,
    windows,
)


def pooled(
    c: InferenceContext,
    x: Sequence[int | None],
    ksize: Sequence[int] | None,
    strides: Sequence[int] | None,
    maximum: bool,
) -> tuple[int | None, ...]:
    """Returns the shape of an image of shape x after pooling, attrs being checked; ksize and strides may be unknown."""
    data_format, padding = c.attrs.get("data_format", "NHWC"), c.attrs["padding"]
    if data_format == "NCHW_VECT_C":
        raise unimplemented(c, "data_format is NCHW_VECT_C; NHWC and NCHW are implemented")
    if ksize is None or strides is None:
        return (x[0], None, None, None)
    check_window_attr(c, "ksize", ksize)
    check_window_attr(c, "strides", strides)
    channels, (height, width) = channel_axis(data_format, 4), spatial_axes(data_format)
    if ksize[0] != 1 or strides[0] != 1:
        raise unimplemented(
            c, f"ksize {list(ksize)} and strides {list(strides)} pool over the batch; both must be 1 there"
        )
    depth = ksize[channels]
    if depth != 1 or strides[channels] != 1:
        _check_depth(c, ksize, strides, x[channels], maximum)
    pairs = explicit_pairs(c) if "explicit_paddings" in c.attrs else [(0, 0)] * 4
    for axis in (height, width):
        if max(pairs[axis]) >= ksize[axis]:
            raise c.late_error(
                f"padding {pairs[axis]} in dimension {axis} with a window of {ksize[axis]}; "
                "it must be smaller than the window"
            )
    shape = list(x)
    for axis in (height, width):
        shape[axis] = output_size(c, x[axis], ksize[axis], strides[axis], 1, padding, pairs[axis])
    count = x[channels]
    shape[channels] = None if count is None else count // depth
    return tuple(shape)


def _check_depth(
    c: InferenceContext, ksize: Sequence[int], strides: Sequence[int], count: int | None, maximum: bool
) -> None:
    """MaxPool may pool over channels instead of space, in blocks that do not overlap."""
    channels, axes = (
        channel_axis(c.attrs.get("data_format", "NHWC"), 4),
        spatial_axes(c.attrs.get("data_format", "NHWC")),
    )
    depth = ksize[channels]
    if not maximum:
        raise unimplemented(
            c, f"ksize {list(ksize)} and strides {list(strides)} pool over channels; both must be 1 there"
        )
    if any(ksize[a] != 1 for a in axes):
        raise unimplemented(c, f"ksize is {list(ksize)}; a window covers channels or space, not both")
    if depth != strides[channels]:
        raise unimplemented(
            c, f"window of {depth} channels with stride {strides[channels]}; over channels they must be equal"
        )
    if count is not None and count % depth:
        raise unimplemented(c, f"window of {depth} channels in {count}; it must divide them")


def _pool_shape(c: InferenceContext) -> Sequence[Shape]:
    maximum = c.op.name.startswith("Max")
    return [pooled(c, c.require_rank(0, 4), c.attrs["ksize"], c.attrs["strides"], maximum)]


def window_values(c: InferenceContext, first: int) -> tuple[list[int] | None, list[int] | None]:
    """ksize and strides of an op that has them as inputs `first` and the next one."""
    for i in (first, first + 1):
        (length,) = c.require_rank(i, 1)
        if length not in (None, 4):
            raise c.error(f"input {i} has {length} values; it must have 4")
    ksize, strides = c.value(first), c.value(first + 1)
    return None if ksize is None else ksize.tolist(), None if strides is None else strides.tolist()


def _max_pool_v2_shape(c: InferenceContext) -> Sequence[Shape]:
    x = c.require_rank(0, 4)
    return [pooled(c, x, *window_values(c, 1), maximum=True)]


def image_windows(attrs: Attrs, x: np.ndarray, fill: Any) -> np.ndarray:
    """Returns all windows with channels last; padded positions hold `fill`."""
    data_format, ksize, strides = attrs.get("data_format", "NHWC"), attrs["ksize"], attrs["strides"]
    axes, amounts = spatial_axes(data_format), attrs.get("explicit_paddings", ())
    pairs = [(amounts[2 * a], amounts[2 * a + 1]) if amounts else (0, 0) for a in axes]
    pads = [
        padding_amounts(x.shape[a], ksize[a], strides[a], 1, attrs["padding"], pairs[i]) for i, a in enumerate(axes)
    ]
    padded = pad_spatial(to_channels_last(x, data_format), pads, fill)
    return windows(padded, [ksize[a] for a in axes], [strides[a] for a in axes])


def _max_pool_reference(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    lowest = np.asarray(as_dtype(x.dtype).min, x.dtype)  # what a window without numbers gives in TensorFlow too
    taps = image_windows(attrs, x, lowest)
    depth = attrs["ksize"][channel_axis(attrs["data_format"], 4)]
    taps = taps.reshape(*taps.shape[:3], taps.shape[3] // depth, depth * math.prod(taps.shape[4:]))
    clean = np.where(taps > lowest, taps, lowest)  # NaN never wins
    largest = np.argmax(clean, axis=-1)[..., None]  # the first of equals, such as 0 and -0
    return from_channels_last(np.take_along_axis(clean, largest, axis=-1)[..., 0], attrs["data_format"])


def _max_pool_v2_reference(attrs: Attrs, x: np.ndarray, ksize: np.ndarray, strides: np.ndarray) -> np.ndarray:
    return _max_pool_reference({**attrs, "ksize": ksize.tolist(), "strides": strides.tolist()}, x)


def _avg_pool_reference(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    wide = widen(x)
    total = image_windows(attrs, wide, 0).sum(axis=(-2, -1))
    count = image_windows(attrs, np.ones_like(wide, shape=(1, *x.shape[1:])), 0).sum(axis=(-2, -1))
    return from_channels_last((total / np.maximum(count, 1)).astype(x.dtype), attrs["data_format"])


# (input NHWC, ksize, strides, padding)
_GEOMETRIES = (
    ((1, 1, 1, 1), (1, 1), (1, 1), "VALID"),
    ((2, 7, 9, 3), (2, 2), (2, 2), "VALID"),
    ((2, 7, 9, 3), (3, 3), (2, 2), "SAME"),
    ((1, 8, 5, 4), (3, 2), (1, 1), "SAME"),
    ((1, 11, 10, 17), (2, 3), (3, 2), "VALID"),
    ((1, 10, 11, 1), (3, 3), (3, 1), "SAME"),
    ((3, 5, 4, 64), (3, 3), (1, 1), "SAME"),
    ((1, 6, 6, 131), (2, 2), (2, 2), "VALID"),
    ((2, 5, 7, 5), (1, 1), (3, 3), "SAME"),
    ((1, 1, 5, 2), (2, 1), (1, 2), "SAME"),
    ((1, 4, 5, 2), (4, 5), (1, 1), "VALID"),
    ((1, 3, 2, 3), (5, 5), (1, 1), "SAME"),
    ((0, 4, 4, 3), (2, 2), (2, 2), "SAME"),
    ((1, 0, 4, 3), (2, 2), (2, 2), "SAME"),
    ((2, 4, 4, 0), (2, 2), (2, 2), "VALID"),
    ((1, 1, 70001, 1), (1, 2), (1, 2), "VALID"),
    ((2, 5, 6, 20), (2, 4), (1, 1), "SAME"),  # the odd pixel of even windows is padded at the end
    ((3, 7, 8, 5), (2, 2), (3, 4), "SAME"),  # strides past the window
)


def _layout(values: Sequence[int], data_format: str) -> tuple[int, ...]:
    return tuple(values) if data_format == "NHWC" else tuple(values[i] for i in (0, 3, 1, 2))


def pool_samples(formats: Sequence[str]) -> Iterator[Sample]:
    for shape, ksize, strides, padding in _GEOMETRIES:
        for data_format in formats:
            yield Sample(
                (Arg(_layout(shape, data_format)),),
                {
                    "ksize": _layout((1, *ksize, 1), data_format),
                    "strides": _layout((1, *strides, 1), data_format),
                    "padding": padding,
                    "data_format": data_format,
                },
            )


def max_pool_samples() -> Iterator[Sample]:
    yield from pool_samples(("NHWC", "NCHW"))
    explicit = {"strides": (1, 2, 1, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 1, 2, 0, 1, 0, 0)}
    yield Sample((Arg((2, 6, 5, 3)),), {"ksize": (1, 3, 3, 1), **explicit})
    explicit = {"strides": (1, 1, 2, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 0, 0, 1, 2, 0, 1)}
    yield Sample((Arg((2, 3, 6, 5)),), {"ksize": (1, 1, 3, 3), "data_format": "NCHW", **explicit})
    for shape, depth in (((2, 3, 2, 6), 2), ((1, 1, 4, 15), 3), ((1, 2, 1, 64), 64)):
        yield Sample((Arg(shape),), {"ksize": (1, 1, 1, depth), "strides": (1, 1, 1, depth), "padding": "VALID"})
    yield Sample(
        (Arg((1, 6, 2, 3)),),
        {"ksize": (1, 2, 1, 1), "strides": (1, 2, 1, 1), "padding": "VALID", "data_format": "NCHW"},
    )


def _max_pool_v2_samples() -> Iterator[Sample]:
    for sample in pool_samples(("NHWC",)):
        window, attrs = [Arg(values=sample.attrs[k], dtype="int32") for k in ("ksize", "strides")], sample.attrs
        yield Sample((*sample.inputs, *window), {"padding": attrs["padding"], "data_format": attrs["data_format"]})


def _pool_errors() -> Iterator[ErrorSample]:
    x, base = Arg((1, 4, 4, 4)), {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
    yield ErrorSample((Arg((4, 4, 2)),), "must have rank 4", base)
    yield ErrorSample((x,), "ksize is .*must be positive", base | {"ksize": (1, 0, 2, 1)})
    yield ErrorSample((x,), "strides is .*must be positive", base | {"strides": (1, 1, 0, 1)})
    yield ErrorSample((x,), "must have 4 values", base | {"ksize": (1, 2, 2, 1, 1)})
    yield ErrorSample((x,), "length must be at least 4", base | {"ksize": (1, 2, 2)})
    yield ErrorSample((x,), "pool over the batch", base | {"ksize": (2, 1, 1, 1)}, error="UnimplementedError")
    yield ErrorSample((x,), "pool over the batch", base | {"strides": (2, 1, 1, 1)}, error="UnimplementedError")
    yield ErrorSample((x,), "not be larger than the padded input", base | {"ksize": (1, 7, 2, 1)})


def _max_pool_errors() -> Iterator[ErrorSample]:
    yield from _pool_errors()
    x, base = Arg((1, 4, 4, 5)), {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "VALID"}
    yield ErrorSample((x,), "must divide them", base, error="UnimplementedError")
    yield ErrorSample((x,), "they must be equal", base | {"strides": (1, 1, 1, 1)}, error="UnimplementedError")
    yield ErrorSample((x,), "not both", base | {"ksize": (1, 2, 1, 2)}, error="UnimplementedError")
    explicit = base | {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "EXPLICIT"}
    yield ErrorSample((x,), "smaller than the window", explicit | {"explicit_paddings": (0, 0, 2, 0, 0, 0, 0, 0)})


def _avg_pool_errors() -> Iterator[ErrorSample]:
    yield from _pool_errors()
    attrs = {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "VALID"}
    yield ErrorSample((Arg((1, 4, 4, 4)),), "pool over channels", attrs, error="UnimplementedError")


_MAX_TYPES = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT"
WINDOW_ATTRS = ("ksize: list(int) >= 4", "strides: list(int) >= 4")


def pool_attrs(op: Any) -> dict[str, Any]:
    """Returns the attrs of a pooling operation that its gradients take over."""
    names = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    return {name: op.attrs[name] for name in names if name in op.attrs}


def _max_pool_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("MaxPoolGrad", [op.inputs[0], op.outputs[0], grad], pool_attrs(op))]


def _max_pool_v2_gradient(op: Any, grad: Any) -> list[Any]:
    x, ksize, strides = op.inputs
    attrs = pool_attrs(op)
    return [apply_op("MaxPoolGradV2", [x, op.outputs[0], grad, ksize, strides], attrs), None, None]


def _avg_pool_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("AvgPoolGrad", [shape_of(op.inputs[0]), grad], pool_attrs(op))]


MAX_POOL = define_op(
    "MaxPool",
    inputs=("input: T",),
    outputs=("output: T",),
    attrs=(
        _MAX_TYPES,
        *WINDOW_ATTRS,
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ),
    doc="The largest value in each window. NaN is passed over; a window without numbers gives the lowest finite value.",
    shape=_pool_shape,
    reference=_max_pool_reference,
    gradient=_max_pool_gradient,
    accuracy=Exact(signed_zero=False),
    samples=max_pool_samples,
    errors=_max_pool_errors,
)

define_op(
    "MaxPoolV2",
    inputs=("input: T", "ksize: int32", "strides: int32"),
    outputs=("output: T",),
    attrs=(_MAX_TYPES, "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"),
    doc="MaxPool whose window size and strides are tensors.",
    shape=_max_pool_v2_shape,
    reference=_max_pool_v2_reference,
    gradient=_max_pool_v2_gradient,
    accuracy=Exact(signed_zero=False),
    shape_inputs=("ksize", "strides"),
    samples=_max_pool_v2_samples,
)

AVG_POOL = define_op(
    "AvgPool",
    inputs=("value: T",),
    outputs=("output: T",),
    attrs=(
        *WINDOW_ATTRS,
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
        "T: {half, bfloat16, float, double}",
    ),
    doc="The mean of each window's positions inside the image: padding is not counted.",
    shape=_pool_shape,
    reference=_avg_pool_reference,
    gradient=_avg_pool_gradient,
    accuracy=Accumulation(lambda attrs, value: math.prod(attrs["ksize"]) + 1),
    samples=lambda: pool_samples(("NHWC", "NCHW")),
    errors=_avg_pool_errors,
)

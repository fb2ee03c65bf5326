"""The gradients of convolutions: by the input and by the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, OpDef, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge
from timberframe_ops.nn.convolution import CONV2D, DEPTHWISE_CONV2D, conv2d_samples, depthwise_samples
from timberframe_ops.nn.convolution_windows import (
    CONV_ATTRS,
    check_attrs,
    check_filter,
    conv_attrs,
    convolution_attrs,
    convolved,
    layout,
    padded_input,
    spatial_attrs,
    spatial_padding,
)
from timberframe_ops.nn.windows import (
    channel_axis,
    from_channels_last,
    input_gradient_terms,
    spatial_axes,
    to_channels_last,
    widen,
)

Sizes = Sequence[int | None]
Product = Callable[..., Any]


def _check_gradient(c: InferenceContext, depthwise: bool, x: Sizes, filter: Sizes, gradient: Sizes) -> None:
    """Raises an error unless out_backprop has the shape of the convolution of x by filter."""
    inside, depth, outside = x[channel_axis(c.attrs["data_format"], 4)], filter[2], filter[3]
    if inside is not None and depth is not None and (inside != depth if depthwise else inside % depth):
        rule = "they must agree" if depthwise else "which must divide them"
        raise c.late_error(f"input has {inside} channels; the filter takes {depth}, {rule}")
    if depthwise:
        outside = None if outside is None or depth is None else depth * outside
    expected = convolved(c, x, filter[:2], outside)
    try:
        merge(expected, tuple(gradient))
    except ValueError:
        raise c.late_error(
            f"out_backprop has shape {format_shape(tuple(gradient))}; it must have the convolution's, "
            f"{format_shape(expected)}"
        ) from None


def described_shape(c: InferenceContext, i: int, name: str, counts: tuple[int, ...]) -> Sizes:
    """Returns the shape that input i describes by one of these counts of values, the first
    one where nothing is known.
    """
    (length,) = c.require_rank(i, 1)
    if length is not None and length not in counts:
        raise c.late_error(f"{name} has {length} values; it must have {' or '.join(map(str, counts))}")
    value, sizes = c.value(i), c.shape_value(i)
    if value is not None and any(n < 0 for n in value):
        raise c.late_error(f"{name} is {value.tolist()}; sizes of 0 or more are required (tf.shape gives unknown ones)")
    return (None,) * counts[0] if sizes is None else sizes


def _input_gradient_shape(c: InferenceContext, depthwise: bool) -> Sequence[Shape]:
    check_attrs(c)
    filter, gradient = c.require_rank(1, 4), c.require_rank(2, 4)
    check_filter(c, filter)
    sizes = described_shape(c, 0, "input_sizes", (4,) if depthwise else (4, 2))
    if len(sizes) == 2:  # height and width alone
        nhwc: Any = (gradient[0], *sizes, filter[2])
        sizes = layout(nhwc, c.attrs["data_format"])
    _check_gradient(c, depthwise, sizes, filter, gradient)
    return [tuple(sizes)]


def _filter_gradient_shape(c: InferenceContext, depthwise: bool) -> Sequence[Shape]:
    check_attrs(c)
    x, gradient = c.require_rank(0, 4), c.require_rank(2, 4)
    sizes = described_shape(c, 1, "filter_sizes", (4,))
    check_filter(c, sizes)
    _check_gradient(c, depthwise, x, sizes, gradient)
    return [tuple(sizes)]


def _taps(
    attrs: Attrs, padded: np.ndarray, kernel: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[int, int, np.ndarray]]:
    """For each tap (i, j) the view of a padded NHWC array that `counts` windows have under it."""
    (sy, sx), (dy, dx) = spatial_attrs(attrs)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(i * dy, i * dy + (counts[0] - 1) * sy + 1, sy)
            yield i, j, padded[:, rows, j * dx : j * dx + (counts[1] - 1) * sx + 1 : sx]


def _input_gradient(attrs: Attrs, shape: Sequence[int], filter: np.ndarray, grad: np.ndarray, product: Product) -> Any:
    """Adds product(grad, filter[i, j]) to what the windows have under tap (i, j)."""
    w, dy = widen(filter), to_channels_last(widen(grad), attrs["data_format"])
    padded = padded_input(attrs, np.zeros(shape, w.dtype), w.shape[:2])
    if dy.size:
        for i, j, part in _taps(attrs, padded, w.shape[:2], dy.shape[1:3]):
            part += product(dy, w[i, j])
    (top, _), (left, _) = spatial_padding(attrs, shape, w.shape[:2])
    height, width = (shape[a] for a in spatial_axes(attrs["data_format"]))
    inside = padded[:, top : top + height, left : left + width].astype(filter.dtype)
    return from_channels_last(inside, attrs["data_format"])


def _filter_gradient(attrs: Attrs, input: np.ndarray, shape: Sequence[int], grad: np.ndarray, product: Product) -> Any:
    """product(what the windows have under tap (i, j), grad) for each tap."""
    dy = to_channels_last(widen(grad), attrs["data_format"])
    padded = padded_input(attrs, widen(input), shape[:2])
    result = np.zeros(shape, padded.dtype)
    if dy.size:
        for i, j, part in _taps(attrs, padded, shape[:2], dy.shape[1:3]):
            result[i, j] = product(part, dy)
    return result.astype(input.dtype)


def _groups(channels: int, filter: Sequence[int]) -> list[tuple[slice, slice]]:
    """For each group its input channels and its output channels."""
    count = max(channels // filter[2], 1)
    inside, outside = filter[2], filter[3] // count
    return [
        (slice(g * inside, (g + 1) * inside), slice(g * outside, (g + 1) * outside))
        for g in range(count if channels else 0)
    ]


def _conv2d_input(attrs: Attrs, sizes: np.ndarray, filter: np.ndarray, grad: np.ndarray) -> Any:
    shape = tuple(int(d) for d in sizes)
    if len(shape) == 2:
        shape = layout((grad.shape[0], *shape, filter.shape[2]), attrs["data_format"])
    groups = _groups(shape[channel_axis(attrs["data_format"], 4)], filter.shape)

    def product(dy: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.concatenate([dy[..., outside] @ w[:, outside].T for _, outside in groups], axis=-1)

    return _input_gradient(attrs, shape, filter, grad, product)


def _conv2d_filter(attrs: Attrs, input: np.ndarray, sizes: np.ndarray, grad: np.ndarray) -> Any:
    shape = tuple(int(d) for d in sizes)
    groups = _groups(input.shape[channel_axis(attrs["data_format"], 4)], shape)

    def product(part: np.ndarray, dy: np.ndarray) -> np.ndarray:
        pixels = ([0, 1, 2], [0, 1, 2])
        return np.concatenate(
            [np.tensordot(part[..., inside], dy[..., outside], pixels) for inside, outside in groups], axis=-1
        )

    return _filter_gradient(attrs, input, shape, grad, product)


def _depthwise_input(attrs: Attrs, sizes: np.ndarray, filter: np.ndarray, grad: np.ndarray) -> Any:
    def product(dy: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.asarray((dy.reshape(*dy.shape[:3], *w.shape) * w).sum(axis=-1))

    return _input_gradient(attrs, tuple(int(d) for d in sizes), filter, grad, product)


def _depthwise_filter(attrs: Attrs, input: np.ndarray, sizes: np.ndarray, grad: np.ndarray) -> Any:
    shape = tuple(int(d) for d in sizes)

    def product(part: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("nhwc,nhwcm->cm", part, dy.reshape(*dy.shape[:3], *shape[2:])))

    return _filter_gradient(attrs, input, shape, grad, product)


def _filter_terms(attrs: Attrs, input: np.ndarray, sizes: np.ndarray, grad: np.ndarray) -> int:
    return int(grad.size // max(grad.shape[channel_axis(attrs["data_format"], 4)], 1))


def _output(forward: OpDef, sample: Sample) -> Arg:
    """out_backprop for a sample of the convolution itself."""
    shapes = [arg.shape for arg in sample.inputs if isinstance(arg, Arg)]
    attrs = {"explicit_paddings": (), **sample.attrs}
    (shape,) = forward.shape(InferenceContext(forward, "sample", attrs, shapes, [None, None], [float32, float32]))
    known: Any = shape
    return Arg(known, special=False)


def _input_samples(forward: OpDef, samples: Iterable[Sample]) -> Iterator[Sample]:
    for sample in samples:
        x: Any
        x, filter = sample.inputs
        yield Sample((Arg(values=x.shape, dtype="int32"), filter, _output(forward, sample)), sample.attrs)
    if forward is CONV2D:
        for data_format, grad in (("NHWC", (2, 3, 4, 5)), ("NCHW", (2, 5, 3, 4))):
            sizes, filter = Arg(values=[3, 4], dtype="int32"), Arg((2, 2, 3, 5), special=False)
            yield Sample((sizes, filter, Arg(grad, special=False)), conv_attrs((1, 1), (1, 1), "SAME", data_format))
        for height, width in ((5, 7), (3, 4)):  # sizes that the strides do not divide
            sizes = Arg(values=[2, height, width, 3], dtype="int32")
            grad = (2, (height + 1) // 2, (width + 1) // 2, 5)
            yield Sample(
                (sizes, Arg((2, 2, 3, 5), special=False), Arg(grad, special=False)),
                conv_attrs((2, 2), (1, 1), "SAME", "NHWC"),
            )


def _filter_samples(forward: OpDef, samples: Iterable[Sample]) -> Iterator[Sample]:
    for sample in samples:
        x: Any
        filter: Any
        x, filter = sample.inputs
        sizes = Arg(values=filter.shape, dtype="int32")
        yield Sample((Arg(x.shape, special=False), sizes, _output(forward, sample)), sample.attrs)


def _errors(by_filter: bool, depthwise: bool) -> Iterator[ErrorSample]:
    """x is [1, 4, 4, 2], the filter [2, 2, 2, 3]."""
    outside = 6 if depthwise else 3
    base = conv_attrs((1, 1), (1, 1), "VALID", "NHWC")

    def sample(
        match: str, x: Any, filter: Any, grad: Any, attrs: Any = base, error: str = "InvalidArgumentError"
    ) -> ErrorSample:
        described, tensor = (filter, x) if by_filter else (x, filter)
        sizes = Arg(values=described, dtype="int32")
        inputs = (Arg(tensor), sizes, Arg(grad)) if by_filter else (sizes, Arg(tensor), Arg(grad))
        return ErrorSample(inputs, match, attrs, error=error)

    x, filter, grad = (1, 4, 4, 2), (2, 2, 2, 3), (1, 3, 3, outside)
    yield sample("out_backprop has shape", x, filter, (1, 3, 4, outside))
    yield sample("out_backprop has shape", x, filter, (2, 3, 3, outside))
    yield sample("out_backprop has shape", x, filter, (1, 3, 3, 4))
    yield sample("input has 3 channels; the filter takes 2", (1, 4, 4, 3), filter, grad)
    yield sample("must have rank 4", x, filter, (3, 3, outside))
    yield sample("sizes must be positive", x, (0, 2, 2, 3), grad)
    yield sample("not be larger than the padded input", x, (7, 7, 2, 3), grad)
    yield sample("strides is .*must be positive", x, filter, grad, base | {"strides": (1, 0, 1, 1)})
    only = {"strides": (2, 1, 1, 1)}
    yield sample("batch and channels allow only 1", x, filter, grad, base | only, "UnimplementedError")
    if by_filter:
        yield sample("filter_sizes has 3 values", x, filter[:3], grad)
    else:
        yield sample("input_sizes has 3 values", x[:3], filter, grad)


def _input_gradient_gradient(forward: str, filter_op: str, op: Any, grad: Any) -> list[Any]:
    _, filter, dy = op.inputs
    attrs = convolution_attrs(op)
    return [None, apply_op(filter_op, [grad, shape_of(filter), dy], attrs), apply_op(forward, [grad, filter], attrs)]


def _filter_gradient_gradient(forward: str, input_op: str, op: Any, grad: Any) -> list[Any]:
    x, _, dy = op.inputs
    attrs = convolution_attrs(op)
    return [apply_op(input_op, [shape_of(x), grad, dy], attrs), None, apply_op(forward, [x, grad], attrs)]


_REALS = "half, bfloat16, float, double"


def _define_gradients(
    forward: OpDef,
    samples: Callable[[], Iterable[Sample]],
    types: str,
    first: tuple[str, ...],
    references: Sequence[Any],
) -> None:
    """Defines the two gradients of a convolution; `types` are those by the input, `first`
    attrs before the common ones.
    """
    depthwise, name = forward is DEPTHWISE_CONV2D, forward.name
    by_input, by_filter = f"{name}BackpropInput", f"{name}BackpropFilter"
    define_op(
        by_input,
        inputs=("input_sizes: int32", "filter: T", "out_backprop: T"),
        outputs=("output: T",),
        attrs=(f"T: {{{types}}}", *first, *CONV_ATTRS),
        doc=f"The gradient of {name} by its input, whose shape is input_sizes (of Conv2D also height and width alone).",
        shape=late_errors(lambda c: _input_gradient_shape(c, depthwise)),
        reference=references[0],
        gradient=lambda op, grad: _input_gradient_gradient(name, by_filter, op, grad),
        shape_inputs=("input_sizes",),
        accuracy=Accumulation(input_gradient_terms),
        samples=lambda: _input_samples(forward, samples()),
        errors=lambda: _errors(False, depthwise),
    )
    define_op(
        by_filter,
        inputs=("input: T", "filter_sizes: int32", "out_backprop: T"),
        outputs=("output: T",),
        attrs=(f"T: {{{_REALS}}}", *first, *CONV_ATTRS),
        doc=f"The gradient of {name} by its filter, whose shape is filter_sizes.",
        shape=late_errors(lambda c: _filter_gradient_shape(c, depthwise)),
        reference=references[1],
        gradient=lambda op, grad: _filter_gradient_gradient(name, by_input, op, grad),
        shape_inputs=("filter_sizes",),
        accuracy=Accumulation(_filter_terms),
        samples=lambda: _filter_samples(forward, samples()),
        errors=lambda: _errors(True, depthwise),
    )


_define_gradients(
    CONV2D,
    conv2d_samples,
    f"{_REALS}, int32",
    ("use_cudnn_on_gpu: bool = true",),
    (_conv2d_input, _conv2d_filter),
)
_define_gradients(DEPTHWISE_CONV2D, depthwise_samples, _REALS, (), (_depthwise_input, _depthwise_filter))

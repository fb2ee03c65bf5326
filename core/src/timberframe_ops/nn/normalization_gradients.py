"""The gradients of batch normalisation and of local response normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32, int32
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, constant, reshape_like, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, merge_inputs, merge_shapes
from timberframe_core.shapes import Shape, merge_dim
from timberframe_ops.nn.normalization import LRN_ATTRS, lrn_sums
from timberframe_ops.nn.windows import CHANNELS_LAST, channel_axis, from_channels_last, to_channels_last, widen


@late_errors
def _batch_norm_shape(c: InferenceContext) -> Sequence[Shape]:
    rank = len(c.attrs["data_format"])
    x = merge_shapes(c, c.require_rank(0, rank), c.require_rank(1, rank), "y_backprop and x")
    assert x is not None
    axis = channel_axis(c.attrs["data_format"], rank)
    channels = x[axis]
    for i, name in enumerate(("scale", "reserve_space_1", "reserve_space_2"), 2):
        (count,) = c.require_rank(i, 1)
        try:
            channels = merge_dim(channels, count)
        except ValueError:
            raise c.error(f"{name} has {count} elements for {channels} channels of x; they must agree") from None
    return [x[:axis] + (channels,) + x[axis + 1 :], (channels,), (channels,), (0,), (0,)]


def _batch_norm_parts(attrs: Attrs, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dy and x - mean, both with channels last, and 1 / sqrt(variance + epsilon)."""
    dy, x, _, mean, variance = inputs[:5]
    g, wide = (to_channels_last(widen(t), attrs["data_format"]) for t in (dy, x))
    return g, wide - mean, 1 / np.sqrt(variance + attrs["epsilon"])


def _batch_norm_reference(attrs: Attrs, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    g, deviation, factor = _batch_norm_parts(attrs, inputs)
    scale, axes = inputs[2], tuple(range(g.ndim - 1))
    weighted, plain = (g * deviation).sum(axis=axes), g.sum(axis=axes)
    count = max(g.size // max(g.shape[-1], 1), 1)
    rest = plain / count + deviation * factor**2 * weighted / count if attrs["is_training"] else 0
    dx = from_channels_last(scale * factor * (g - rest), attrs["data_format"]).astype(inputs[1].dtype)
    empty = np.zeros(0, scale.dtype)
    return dx, (weighted * factor).astype(scale.dtype), plain.astype(scale.dtype), empty, empty


def _batch_norm_error(
    attrs: Attrs, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], u: float
) -> list[np.ndarray]:
    """Bounds by output; c = gamma_n for the n elements of a channel, f the factor, d the deviation.

    The sums of dy and dy d are off by c and c + 3 u of their magnitudes, f by 3 u relatively. In dx each of the three
    terms has its own error and those of at most eight roundings on its way.
    """
    g, deviation, factor = _batch_norm_parts(attrs, inputs)
    if not g.size:
        return [np.zeros_like(e) for e in expected]
    scale, axes = np.abs(inputs[2]), tuple(range(g.ndim - 1))
    n = g.size // g.shape[-1]
    gamma = n * u / (1 - n * u)
    plain, weighted = np.abs(g).sum(axis=axes), np.abs(g * deviation).sum(axis=axes)
    dx = 8 * u * np.abs(g)
    if attrs["is_training"]:
        dx = dx + (gamma + 8 * u) * (plain / n + np.abs(deviation) * factor**2 * weighted / n)
    bounds = [from_channels_last(dx * scale * factor, attrs["data_format"]), (gamma + 8 * u) * weighted * factor]
    return [*bounds, gamma * plain, np.zeros(0), np.zeros(0)]


def _batch_norm_samples(formats: Sequence[str], reserves: int) -> Iterator[Sample]:
    shapes = ((2, 3, 4, 5), (1, 1, 1, 1), (3, 7, 5, 1), (2, 5, 3, 67), (1, 1, 1, 3), (2, 9, 9, 16), (0, 2, 2, 3))
    for data_format in formats:
        for number, shape in enumerate(shapes):
            batch, *space, channels = shape
            if len(data_format) == 5:
                space.insert(0, 2)
            sizes = (batch, *space, channels) if data_format in CHANNELS_LAST else (batch, channels, *space)
            x, each = Arg(sizes, special=False), Arg((channels,), special=False)
            positive, more = Arg((channels,), low=0.1, high=4.0, special=False), [Arg((0,))] * (reserves - 2)
            for is_training in (True, False):
                attrs = {
                    "data_format": data_format,
                    "is_training": is_training,
                    "epsilon": (2.0**-13, 2.0**-7)[number % 2],
                }
                yield Sample((x, x, each, each, positive, *more), attrs)


def _batch_norm_errors(reserves: int) -> Iterator[ErrorSample]:
    x, three, two, more = Arg((2, 2, 2, 3)), Arg((3,)), Arg((2,)), [Arg((0,))] * (reserves - 2)
    yield ErrorSample((Arg((2, 2, 3)), x, three, three, three, *more), "must have rank 4")
    yield ErrorSample((Arg((2, 2, 1, 3)), x, three, three, three, *more), "y_backprop and x have shapes")
    yield ErrorSample((x, x, two, three, three, *more), "scale has 2 elements for 3 channels")
    yield ErrorSample((x, x, three, two, three, *more), "reserve_space_1 has 2 elements")
    yield ErrorSample((x, x, three, three, two, *more), "reserve_space_2 has 2 elements")


def _as_float32(x: Any) -> Any:
    """x, 16-bit floats widened."""
    return x if x.dtype == float32 else apply_op("Cast", [x], {"DstT": float32})


def _as_type_of(x: Any, like: Any) -> Any:
    """x in another tensor's dtype."""
    return x if x.dtype == like.dtype else apply_op("Cast", [x], {"DstT": like.dtype})


def _batch_norm_gradient(op: Any, *grads: Any) -> list[Any]:
    """Returns the derivative of sum(u dx) + sum(s dscale) + sum(o doffset), u, s, o being grads; like TensorFlow's,
    with the saved mean and variance as functions of x.

    With d = x - mean, f = 1 / sqrt(variance + epsilon), dy' and u' their deviations from their means over the batch,
    p, q, a the means of u d, dy d and u dy', in training the derivatives are
    by dy: scale f (u' - d f^2 p) + s f d + o;
    by x: scale f^3 (d (3 f^2 p q - a) - u' q - dy' p) + s f (dy' - d f^2 q);
    by scale: the sum of u f (dy' - d f^2 q).
    """
    data_format = op.attrs["data_format"]
    axis = channel_axis(data_format, len(data_format))
    axes = constant([i for i in range(len(data_format)) if i != axis], int32)

    def column(vector: Any) -> Any:
        sizes = [-1] + [1] * (len(data_format) - 2)
        return vector if data_format in CHANNELS_LAST else apply_op("Reshape", [vector, constant(sizes, int32)])

    def mean(x: Any) -> Any:
        return apply_op("Mean", [x, axes], {"keep_dims": True})

    g, x, u = (_as_float32(t) for t in (op.inputs[0], op.inputs[1], grads[0]))
    scale, center, variance, s, o = (column(_as_float32(t)) for t in (*op.inputs[2:5], *grads[1:3]))
    factor, d = apply_op("Rsqrt", [variance + op.attrs["epsilon"]]), x - center
    if op.attrs["is_training"]:
        square = factor * factor
        p, q, kept = mean(u * d), mean(g * d), u
        g, u = g - mean(g), u - mean(u)
        a = mean(u * g)
        slope = g - d * (square * q)
        by_y = scale * factor * (u - d * (square * p)) + d * (s * factor) + o
        by_x = scale * factor * square * (d * (3.0 * square * p * q - a) - u * q - g * p) + s * factor * slope
        by_scale = apply_op("Sum", [kept * factor * slope, axes])
    else:
        by_y, by_x = u * (scale * factor) + d * (s * factor) + o, g * (s * factor)
        by_scale = apply_op("Sum", [u * g * factor, axes])
    by_y, by_x = _as_type_of(by_y, grads[0]), _as_type_of(by_x, grads[0])
    return [by_y, by_x, by_scale, *[None] * (len(op.inputs) - 3)]


def _define_batch_norm(
    name: str, types: tuple[str, ...], formats: tuple[str, ...], scale: str, parameter: str, reserves: int
) -> None:
    listed = ", ".join(f"'{f}'" for f in formats)
    define_op(
        name,
        inputs=(
            "y_backprop: T",
            "x: T",
            f"scale: {scale}",
            *(f"reserve_space_{i}: {parameter}" for i in range(1, reserves + 1)),
        ),
        outputs=(
            "x_backprop: T",
            f"scale_backprop: {parameter}",
            f"offset_backprop: {parameter}",
            *(f"reserve_space_{i}: {parameter}" for i in range(reserves + 1, reserves + 3)),
        ),
        attrs=(
            *types,
            "epsilon: float = 0.0001",
            f"data_format: {{{listed}}} = 'NHWC'",
            "is_training: bool = true",
        ),
        doc="The gradients of FusedBatchNorm by x, scale and offset. The first two reserve spaces are its mean and "
        "variance: of the batch in training, else those that it was given. The last two outputs are empty.",
        shape=_batch_norm_shape,
        reference=_batch_norm_reference,
        gradient=_batch_norm_gradient,
        constant_inputs=("x", "reserve_space_1", "reserve_space_2"),  # x moves the mean and variance, which are inputs
        accuracy=Bound(
            _batch_norm_error, "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1"
        ),
        samples=lambda: _batch_norm_samples(formats, reserves),
        errors=lambda: _batch_norm_errors(reserves),
    )


_TYPES = ("T: {half, bfloat16, float}", "U: {float}")
_define_batch_norm("FusedBatchNormGrad", ("T: {float}",), ("NHWC", "NCHW"), "T", "T", 2)
_define_batch_norm("FusedBatchNormGradV2", _TYPES, ("NHWC", "NCHW"), "float", "U", 2)
_define_batch_norm("FusedBatchNormGradV3", _TYPES, ("NHWC", "NCHW", "NDHWC", "NCDHW"), "float", "U", 3)


def _lrn_shape(c: InferenceContext) -> Sequence[Shape]:
    for i in range(3):
        c.require_rank(i, 4)
    return [merge_inputs(c, range(3))]


def _neighbours(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    """Returns sums over the channels within depth_radius."""
    radius = min(attrs["depth_radius"], x.shape[-1])
    padded = np.pad(x, [(0, 0)] * 3 + [(radius, radius)])
    sums: np.ndarray = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis=3).sum(axis=-1)
    return sums


def _lrn_terms(attrs: Attrs, dy: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the base of the power, and the two terms of the gradient, the second in magnitudes too."""
    base = attrs["bias"] + attrs["alpha"] * lrn_sums(attrs, x)
    factor = 2 * attrs["alpha"] * attrs["beta"]
    return base, dy * base ** -attrs["beta"], factor * x * _neighbours(attrs, dy * y / base)


def _lrn_reference(
    attrs: Attrs, input_grads: np.ndarray, input_image: np.ndarray, output_image: np.ndarray
) -> np.ndarray:
    _, direct, shared = _lrn_terms(attrs, *(widen(t) for t in (input_grads, input_image, output_image)))
    result: np.ndarray = (direct - shared).astype(input_grads.dtype)
    return result


def _lrn_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    """base is off by (2 r + 4) u of its magnitudes (see LRN), the power by beta times that and 16 ULP; the sum over
    neighbours adds 2 r + 8 roundings and the error of base to each term.
    """
    dy, x, y = inputs
    radius = attrs["depth_radius"]
    base, direct, _ = _lrn_terms(attrs, dy, x, y)
    magnitude = abs(attrs["bias"]) + abs(attrs["alpha"]) * lrn_sums(attrs, x)
    relative = (2 * radius + 4) * u * magnitude / np.abs(base)
    factor = 2 * abs(attrs["alpha"] * attrs["beta"]) * np.abs(x)
    shared = factor * _neighbours(attrs, np.abs(dy * y / base) * (relative + (2 * radius + 8) * u))
    bound: np.ndarray = np.abs(direct) * (abs(attrs["beta"]) * relative + 34 * u) + shared + u * np.abs(expected)
    return bound


def _lrn_samples() -> Iterator[Sample]:
    for shape in ((1, 1, 1, 1), (2, 3, 2, 7), (1, 2, 2, 64), (0, 2, 2, 3)):
        for attrs in (
            {},
            {"depth_radius": 2, "bias": 2.0, "alpha": 2.0**-7, "beta": 0.75},
            {"depth_radius": 0, "beta": 1.0},
        ):
            yield Sample((Arg(shape, special=False),) * 3, attrs)


def _lrn_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the derivative of sum(u dx), u being grad, by dy, x and y as independent tensors.

    With N the base of the power, W sums over the neighbouring channels, t = dy y / N and k = 2 alpha beta,
    by dy: u N^-beta - k (y / N) W(u x); by y: -k (dy / N) W(u x);
    by x: -k u W(t) + 2 alpha x W(k t W(u x) / N - beta u dy N^(-beta - 1)).
    """
    u, dy, x, y = (_as_float32(t) for t in (grad, *op.inputs))
    beta, alpha, radius = op.attrs["beta"], op.attrs["alpha"], op.attrs["depth_radius"]
    channels = apply_op("GatherV2", [shape_of(x), 3, 0])
    square = apply_op("Fill", [apply_op("Pack", [[channels, channels]]), constant(1.0, float32)])
    span = apply_op("Minimum", [constant(radius, int32), channels])
    band = apply_op("MatrixBandPart", [square, span, span])

    def near(t: Any) -> Any:
        rows = apply_op("Reshape", [t, apply_op("Pack", [[-1, channels]])])
        return reshape_like(apply_op("MatMul", [rows, band]), t)

    base = op.attrs["bias"] + alpha * near(x * x)
    power, shared, share = apply_op("Pow", [base, constant(-beta, float32)]), near(u * x), dy * y / base
    k = 2.0 * alpha * beta
    by_base = k * share * shared / base - beta * u * dy * power / base
    results = [
        u * power - k * y / base * shared,
        2.0 * alpha * x * near(by_base) - k * u * near(share),
        -k * dy / base * shared,
    ]
    return [_as_type_of(t, grad) for t in results]


define_op(
    "LRNGrad",
    inputs=("input_grads: T", "input_image: T", "output_image: T"),
    outputs=("output: T",),
    attrs=LRN_ATTRS,
    doc="The gradient of LRN by its input, from its input and output.",
    shape=_lrn_shape,
    reference=_lrn_reference,
    gradient=_lrn_gradient,
    accuracy=Bound(_lrn_error, "Higham, section 3.1 for the sums; OpenCL C's 16 ULP for pow"),
    samples=_lrn_samples,
    errors=lambda: [
        ErrorSample((Arg((1, 1, 4)),) * 3, "must have rank 4"),
        ErrorSample((Arg((1, 1, 1, 4)), Arg((1, 1, 1, 4)), Arg((1, 1, 1, 3))), "inputs 0 and 2 have shapes"),
    ],
)

"""Batch normalisation and local response normalisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, merge_dim
from timberframe_ops.nn.windows import CHANNELS_LAST, channel_axis, from_channels_last, to_channels_last, widen


@late_errors
def _batch_norm_shape(c: InferenceContext) -> Sequence[Shape]:
    data_format = c.attrs["data_format"]
    x = c.require_rank(0, len(data_format))
    axis = channel_axis(data_format, len(x))
    channels = x[axis]
    names = ("scale", "offset", "mean", "variance")
    # training reads mean and variance only to blend them in, and then they may be empty
    blends = c.attrs["exponential_avg_factor"] != 1.0
    needed = names if blends or not c.attrs["is_training"] else names[:2]
    for i, name in enumerate(names, 1):
        (count,) = c.require_rank(i, 1)
        if name not in needed:
            continue
        try:
            channels = merge_dim(channels, count)
        except ValueError:
            raise c.error(f"{name} has {count} elements for {channels} channels of x; they must agree") from None
    parameters: list[Shape] = [(channels,)] * 4
    reserved: list[Shape] = [(0,)] if len(c.op.outputs) == 6 else []  # only other devices keep something there
    return [x[:axis] + (channels,) + x[axis + 1 :], *parameters, *reserved]


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    axes = tuple(range(x.ndim - 1))
    return x.mean(axis=axes), x.var(axis=axes)


def _batch_norm_reference(
    attrs: Attrs, x: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, ...]:
    wide = to_channels_last(widen(x), attrs["data_format"])
    blend, count = attrs["exponential_avg_factor"], x.size // max(wide.shape[-1], 1)
    if not x.size:
        nan = np.full(wide.shape[-1], np.nan, scale.dtype)
        results = [x, nan, nan, np.zeros_like(nan), np.zeros_like(nan)]
    else:
        training = attrs["is_training"]
        center, spread = _moments(wide) if training else (mean, variance)
        y = (wide - center) * (scale / np.sqrt(spread + attrs["epsilon"])) + offset
        unbiased = spread * (count / max(count - 1, 1)) if training else spread
        results = [from_channels_last(y, attrs["data_format"]), center, unbiased, center, spread]
        if training and blend != 1.0:
            results[1:3] = (1 - blend) * mean + blend * center, (1 - blend) * variance + blend * unbiased
        results = [results[0].astype(x.dtype), *(r.astype(scale.dtype) for r in results[1:])]
    return (*results, np.zeros(0, scale.dtype))


def _batch_norm_five(attrs: Attrs, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    return _batch_norm_reference(attrs, *inputs)[:5]


def _batch_norm_error(
    attrs: Attrs, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], u: float
) -> list[np.ndarray]:
    """Bounds by output; n elements are averaged per channel and c = gamma_n.

    mean: c mean|x|. variance of deviations from a mean that is off by e: the deviations' squares are added with c, and
    the shift adds at most e^2 + c (variance), so 2 c variance + e^2. y = (x - m) s + b: the relative error of s = scale
    / sqrt(v + epsilon) is half that of v + epsilon plus three roundings; the difference is off by e plus its rounding.
    """
    x, scale, offset, mean, variance = inputs
    wide = np.abs(to_channels_last(x, attrs["data_format"]))
    n = wide.size // max(wide.shape[-1], 1)
    if not wide.size:
        return [np.zeros_like(e) for e in expected]
    gamma = n * u / (1 - n * u)
    training, epsilon, blend = attrs["is_training"], attrs["epsilon"], attrs["exponential_avg_factor"]
    center, spread = (_moments(to_channels_last(x, attrs["data_format"]))) if training else (mean, variance)
    mean_error = gamma * wide.mean(axis=tuple(range(wide.ndim - 1))) if training else np.zeros_like(center)
    spread_error = (2 * gamma + 4 * u) * spread + mean_error**2 if training else np.zeros_like(spread)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.abs(scale) / np.sqrt(spread + epsilon)
        relative = spread_error / (2 * (spread + epsilon)) + 4 * u
        deviation = np.abs(to_channels_last(x, attrs["data_format"]) - center)
        y = factor * (mean_error + (relative + 2 * u) * (deviation + mean_error)) + u * (
            deviation * factor + 2 * np.abs(offset)
        )
    blended = [np.zeros_like(mean_error)] * 2
    if training and blend != 1.0:
        blended = [3 * u * (np.abs(old) + np.abs(new)) for old, new in ((mean, center), (variance, spread))]
    running = [mean_error + blended[0], 2 * spread_error + 3 * u * np.abs(spread) + blended[1]]
    bounds = [from_channels_last(y, attrs["data_format"]), *running, mean_error, spread_error]
    return [*bounds, np.zeros(0)][: len(expected)]


_BATCH_NORM_ACCURACY = Bound(
    _batch_norm_error,
    "two-pass variance: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.9 and problem 1.10; "
    "running errors of the affine map by its section 3.1",
)


def _batch_norm_samples(formats: Sequence[str]) -> Iterator[Sample]:
    shapes = ((2, 3, 4, 5), (1, 1, 1, 1), (3, 7, 5, 1), (2, 5, 3, 67), (1, 1, 1, 3), (2, 9, 9, 16), (0, 2, 2, 3))
    for data_format in formats:
        for shape in shapes:
            batch, *space, channels = shape
            if len(data_format) == 5:
                space.insert(0, 2)
            sizes = (batch, *space, channels) if data_format in CHANNELS_LAST else (batch, channels, *space)
            x, each = Arg(sizes, special=False), Arg((channels,), special=False)
            positive, empty = Arg((channels,), low=0.1, high=4.0, special=False), Arg((0,))
            base = {"data_format": data_format}
            yield Sample((x, each, each, empty, empty), base)
            yield Sample((x, each, each, each, positive), base | {"is_training": False, "epsilon": 1e-3})
            yield Sample((x, each, each, each, positive), base | {"exponential_avg_factor": 0.25, "epsilon": 0.01})
    large = Arg((4, 33, 33, 3), low=900.0, high=1000.0, special=False)
    yield Sample(
        (large, Arg((3,), special=False), Arg((3,), special=False), Arg((0,)), Arg((0,))), {"data_format": "NHWC"}
    )


def _batch_norm_errors() -> Iterator[ErrorSample]:
    x, three, two, none = Arg((2, 2, 2, 3)), Arg((3,)), Arg((2,)), Arg((0,))
    yield ErrorSample((Arg((2, 2, 3)), three, three, none, none), "must have rank 4")
    yield ErrorSample((x, two, three, none, none), "scale has 2 elements for 3 channels")
    yield ErrorSample((x, three, two, none, none), "offset has 2 elements for 3 channels")
    yield ErrorSample((x, three, three, none, none), "mean has 0 elements", {"is_training": False})
    yield ErrorSample((x, three, three, three, two), "variance has 2 elements", {"exponential_avg_factor": 0.5})
    yield ErrorSample((x, Arg((1, 3)), three, none, none), "must have rank 1")


_BATCH_NORM_DOC = (
    "Normalises each channel to scale * (x - mean) / sqrt(variance + epsilon) + offset, in training with the batch's "
    "own mean and variance. batch_mean and batch_variance (with Bessel's correction) are blended with the inputs by "
    "exponential_avg_factor; the reserve spaces hold the plain mean and variance. An empty batch gives NaN and zeros."
)


def _batch_norm_gradient(op: Any, *grads: Any) -> list[Any]:
    """Returns the gradient of the first output; the statistics have none, as in TensorFlow."""
    x, scale, *_, mean, variance = op.inputs
    attrs = {name: op.attrs[name] for name in ("epsilon", "data_format", "is_training")}
    saved = op.outputs[3:] if attrs["is_training"] else [mean, variance, *op.outputs[5:]]
    suffix = op.type.removeprefix("FusedBatchNorm")
    results = apply_op(f"FusedBatchNormGrad{suffix}", [grads[0], x, scale, *saved], attrs)
    return [*results[:3], None, None]


def _define_batch_norm(
    name: str, types: tuple[str, ...], formats: tuple[str, ...], parameter: str, reserves: int, **rest: Any
) -> None:
    listed = ", ".join(f"'{f}'" for f in formats)
    define_op(
        name,
        inputs=("x: T", *(f"{p}: {parameter}" for p in ("scale", "offset", "mean", "variance"))),
        outputs=(
            "y: T",
            f"batch_mean: {parameter}",
            f"batch_variance: {parameter}",
            *(f"reserve_space_{i}: {parameter}" for i in range(1, reserves + 1)),
        ),
        attrs=(
            *types,
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            f"data_format: {{{listed}}} = 'NHWC'",
            "is_training: bool = true",
        ),
        doc=_BATCH_NORM_DOC,
        shape=_batch_norm_shape,
        reference=_batch_norm_reference if reserves == 3 else _batch_norm_five,
        gradient=_batch_norm_gradient,
        constant_inputs=("mean", "variance"),
        constant_outputs=("batch_mean", "batch_variance", *(f"reserve_space_{i}" for i in range(1, reserves + 1))),
        accuracy=_BATCH_NORM_ACCURACY,
        samples=lambda: _batch_norm_samples(formats),
        errors=_batch_norm_errors,
        **rest,
    )


_define_batch_norm("FusedBatchNorm", ("T: {float}",), ("NHWC", "NCHW"), "T", 2)
_define_batch_norm("FusedBatchNormV2", ("T: {half, bfloat16, float}", "U: {float}"), ("NHWC", "NCHW"), "U", 2)
_define_batch_norm(
    "FusedBatchNormV3",
    ("T: {half, bfloat16, float}", "U: {bfloat16, float}"),
    ("NHWC", "NCHW", "NDHWC", "NCDHW"),
    "U",
    3,
    defined_for=({"U": ("float32",)},),  # as its gradient
)


def _lrn_shape(c: InferenceContext) -> Sequence[Shape]:
    return [c.require_rank(0, 4)]


def lrn_sums(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    """Sum of squares over the 2 * depth_radius + 1 nearest channels."""
    radius = min(attrs["depth_radius"], x.shape[-1])
    squares = np.pad(x * x, [(0, 0)] * 3 + [(radius, radius)])
    sums: np.ndarray = np.lib.stride_tricks.sliding_window_view(squares, 2 * radius + 1, axis=3).sum(axis=-1)
    return sums


def _lrn_reference(attrs: Attrs, input: np.ndarray) -> np.ndarray:
    x = widen(input)
    base = attrs["bias"] + attrs["alpha"] * lrn_sums(attrs, x)
    result: np.ndarray = (x * base ** -attrs["beta"]).astype(input.dtype)
    return result


def _lrn_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    """base, a sum of 2 r + 1 squares, is off by (2 r + 4) u of the magnitudes; pow takes beta times that and 16 ULP."""
    (x,) = inputs
    sums = lrn_sums(attrs, x)
    base = attrs["bias"] + attrs["alpha"] * sums
    relative = (2 * attrs["depth_radius"] + 4) * u * (abs(attrs["bias"]) + abs(attrs["alpha"]) * sums) / np.abs(base)
    bound: np.ndarray = np.abs(expected) * (abs(attrs["beta"]) * relative + 34 * u)
    return bound


def _lrn_samples() -> Iterator[Sample]:
    for shape in ((1, 1, 1, 1), (2, 3, 2, 7), (1, 2, 2, 64), (0, 2, 2, 3)):
        for attrs in (
            {},
            {"depth_radius": 2, "bias": 2.0, "alpha": 2.0**-7, "beta": 0.75},
            {"depth_radius": 0, "beta": 1.0},
        ):
            yield Sample((Arg(shape, special=False),), attrs)


LRN_ATTRS = (
    "depth_radius: int = 5",
    "bias: float = 1.0",
    "alpha: float = 1.0",
    "beta: float = 0.5",
    "T: {half, bfloat16, float} = DT_FLOAT",
)


def lrn_attrs(op: Any) -> dict[str, Any]:
    """Returns the attrs of an operation that its gradient takes over."""
    return {name: op.attrs[name] for name in ("depth_radius", "bias", "alpha", "beta")}


define_op(
    "LRN",
    inputs=("input: T",),
    outputs=("output: T",),
    attrs=LRN_ATTRS,
    doc="Divides each value by (bias + alpha * sum of squares of the channels within depth_radius) ^ beta.",
    shape=_lrn_shape,
    reference=_lrn_reference,
    gradient=lambda op, grad: [apply_op("LRNGrad", [grad, op.inputs[0], op.outputs[0]], lrn_attrs(op))],
    accuracy=Bound(_lrn_error, "Higham, section 3.1 for the sum; OpenCL C's 16 ULP for pow"),
    samples=_lrn_samples,
    errors=lambda: [ErrorSample((Arg((1, 1, 4)),), "must have rank 4")],
)

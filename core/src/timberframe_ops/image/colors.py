"""Colours of images: contrast, hue and saturation, and the change between RGB and HSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape

_COLOR = MissingGradient("TensorFlow gives changes of hue and saturation none either")
_FLOATS = "T: {half, bfloat16, float, double} = DT_FLOAT"
_HALF_AND_FLOAT = "T: {half, float} = DT_FLOAT"
_SHAPES = ((3,), (1, 3), (0, 3), (7, 13, 3), (2, 4, 5, 3))


def _rgb_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    if shape is not None and (not shape or shape[-1] not in (None, 3)):
        raise c.late_error(f"images has shape {format_shape(shape)}; its last size must be 3")
    return [shape]


def _adjusted_shape(c: InferenceContext) -> list[Shape]:
    if c.shapes[1] not in (None, ()):
        raise c.late_error(f"input 1 has shape {format_shape(c.shapes[1])}; it must be a scalar")
    return _rgb_shape(c)


def rgb_to_hsv(rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue in [0, 1), saturation and value. A. R. Smith, Color gamut transform pairs, 1978."""
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value, least = rgb.max(-1), rgb.min(-1)
    span = value - least
    with np.errstate(all="ignore"):
        saturation = np.where(value > 0, span / value, 0)
        sixth = 1 / (6 * np.where(span > 0, span, 1))
    red, green = r == value, g == value
    hue = np.where(red, sixth * (g - b), np.where(green, sixth * (b - r) + 1 / 3, sixth * (r - g) + 2 / 3))
    hue = np.where(span > 0, hue, 0)
    return np.where(hue < 0, hue + 1, hue), saturation, value


def hsv_to_rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Returns the way back."""
    turned = hue * 6
    parts = [abs(turned - 3) - 1, 2 - abs(turned - 2), 2 - abs(turned - 4)]
    chroma = [np.clip(part, 0, 1) for part in parts]
    return np.stack([((1 - saturation) + saturation * part) * value for part in chroma], -1)


def _to_hsv(attrs: Attrs, images: np.ndarray) -> np.ndarray:
    return np.stack(rgb_to_hsv(images.astype(np.float64)), -1)


def _to_rgb(attrs: Attrs, images: np.ndarray) -> np.ndarray:
    wide = images.astype(np.float64)
    return hsv_to_rgb(wide[..., 0], wide[..., 1], wide[..., 2])


def _adjust_hue(attrs: Attrs, images: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Returns the images with another hue: the largest and the smallest component stay, the middle one moves between
    them, and their channels change.
    """
    x = _wide(images)
    ordered = np.sort(x, -1)
    least, middle, most = ordered[..., 0], ordered[..., 1], ordered[..., 2]
    span = most - least
    with np.errstate(all="ignore"):
        ratio = np.where(span > 0, (middle - least) / span, 0)
    sixth = _sixth(x)
    one, six = x.dtype.type(1), x.dtype.type(6)
    hue = np.where(span > 0, sixth.astype(x.dtype) + np.where(sixth % 2 == 0, ratio, one - ratio), 0 * one)
    hue = np.mod(hue + x.dtype.type(delta) * six, six)
    sixth = np.minimum(hue.astype(np.int64), 5)
    ratio = hue - sixth.astype(x.dtype)
    middle = least + np.where(sixth % 2 == 0, ratio, one - ratio) * span
    return np.take_along_axis(np.stack([least, middle, most], -1).astype(x.dtype), _CHANNEL_ORDERS[sixth], -1)


_CHANNEL_ORDERS = np.array([(2, 1, 0), (1, 2, 0), (0, 2, 1), (0, 1, 2), (1, 0, 2), (2, 0, 1)])
"""For each sixth of the colour wheel: which of least (0), middle (1) and most (2) red, green and blue are."""


def _sixth(rgb: np.ndarray) -> np.ndarray:
    """Returns which sixth of the colour wheel a colour lies in, by the order of its components."""
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    rising = np.where(b < r, 1, np.where(b > g, 3, 2))
    falling = np.where(b < g, 0, np.where(b > r, 4, 5))
    return np.where(r < g, rising, falling)


def _wide(images: np.ndarray) -> np.ndarray:
    """In the dtype to compute in: float32 unless more is given."""
    return images if images.dtype == np.float64 else images.astype(np.float32)


def _adjust_saturation(attrs: Attrs, images: np.ndarray, scale: np.ndarray) -> np.ndarray:
    hue, saturation, value = rgb_to_hsv(images.astype(np.float64))
    return hsv_to_rgb(hue, np.clip(saturation * np.float64(scale), 0, 1), value)


def _loose(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns a dozen operations on values up to 1; hue is divided by the span of the colours,
    which the samples keep large.
    """
    return 64 * u * np.maximum(abs(expected), 1)


_ACCURACY = Bound(_loose, "about 12 rounded operations on values in [0, 1], amplified by at most the span's reciprocal")


def _colors() -> Iterator[Arg]:
    for seed, shape in enumerate(_SHAPES):
        rows = np.random.default_rng(seed).permuted(np.tile([0.125, 0.5, 0.875], (*shape[:-1], 1)), axis=-1)
        yield Arg(values=rows.reshape(shape))


def _pixel_samples() -> Iterator[Sample]:
    for images in _colors():
        yield Sample([images])


def _adjusted_samples() -> Iterator[Sample]:
    for images in _colors():
        for value in (-0.3, 0.25, 1.5):
            yield Sample([images, Arg(values=np.float32(value))])


_WRONG = r"its last size must be 3"


def _to_hsv_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the derivative of A. R. Smith's formula.

    Of equal components red counts as the largest, blue as the smallest. Nothing comes by hue where all are
    equal, and by saturation where all are 0.
    """
    x = op.inputs[0]
    of_hue, of_saturation, of_value = apply_op("Split", [-1, grad], {"num_split": 3})
    largest = apply_op("ArgMax", [x, -1])
    smallest = 2 - apply_op("ArgMin", [apply_op("ReverseV2", [x, [-1]]), -1])
    one, zero = (apply_op("Cast", [i], {"DstT": x.dtype}) for i in (1, 0))
    most, least = (apply_op("OneHot", [i, 3, one, zero]) for i in (largest, smallest))
    value, low = (apply_op(name, [x, -1], {"keep_dims": True}) for name in ("Max", "Min"))
    lit = apply_op("Cast", [value > zero], {"DstT": x.dtype})
    inverse = apply_op("DivNoNan", [lit, value])
    ahead, behind = (apply_op("Roll", [most, i, -1]) for i in (1, 2))
    span = value - low
    turn = apply_op("DivNoNan", [apply_op("Sum", [(ahead - behind) * x, -1], {"keep_dims": True}), span])
    sixth = apply_op("DivNoNan", [of_hue, span]) / apply_op("Cast", [6], {"DstT": x.dtype})
    return [
        most * (of_value + of_saturation * low * inverse * inverse)
        - least * of_saturation * inverse
        + sixth * (ahead - behind - turn * (most - least))
    ]


def _define_pixels(name: str, reference: Callable[..., np.ndarray], doc: str) -> None:
    define_op(
        name,
        inputs=["images: T"],
        outputs=["output: T"],
        attrs=[_FLOATS],
        doc=doc,
        shape=_rgb_shape,
        reference=reference,
        gradient=_to_hsv_gradient if name == "RGBToHSV" else _COLOR,
        accuracy=_ACCURACY,
        samples=_pixel_samples,
        errors=lambda: [ErrorSample([Arg((2, 4))], _WRONG), ErrorSample([Arg()], _WRONG)],
    )


def _define_adjust(name: str, value: str, reference: Callable[..., np.ndarray], doc: str) -> None:
    define_op(
        name,
        inputs=["images: T", f"{value}: float"],
        outputs=["output: T"],
        attrs=[_HALF_AND_FLOAT],
        doc=doc,
        shape=_adjusted_shape,
        reference=reference,
        gradient=_COLOR,
        accuracy=_ACCURACY,
        samples=_adjusted_samples,
        errors=lambda: [
            ErrorSample([Arg((2, 4)), Arg(values=np.float32(1))], _WRONG),
            ErrorSample([Arg((2, 3)), Arg(values=np.array([1, 2], np.float32))], "it must be a scalar"),
        ],
    )


_define_pixels(
    "RGBToHSV", _to_hsv, "Hue, saturation and value, each in [0, 1], of colours given as red, green and blue."
)
_define_pixels("HSVToRGB", _to_rgb, "Red, green and blue of colours given as hue, saturation and value.")
_define_adjust("AdjustHue", "delta", _adjust_hue, "Images with `delta` turns added to the hue of each pixel.")
_define_adjust("AdjustSaturation", "scale", _adjust_saturation, "Images with each pixel's saturation times `scale`.")


def _contrast_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    if shape is not None and len(shape) < 3:
        raise c.late_error(f"images has shape {format_shape(shape)}; it must have rank 3 or more")
    if c.shapes[1] not in (None, ()):
        raise c.late_error(f"contrast_factor has shape {format_shape(c.shapes[1])}; it must be a scalar")
    return [shape]


def _folded_mean(pixels: np.ndarray) -> np.ndarray:
    """Means over dimension -2, the halves being added to each other, as TensorFlow does, until one row is left."""
    total = pixels
    while (count := total.shape[-2]) > 1:
        half = count // 2
        total = np.concatenate(
            [total[..., :half, :] + total[..., count - half :, :], total[..., half : count - half, :]], axis=-2
        )
    return np.asarray(total[..., 0, :] / total.dtype.type(pixels.shape[-2]))


def _contrast(attrs: Attrs, images: np.ndarray, contrast_factor: np.ndarray) -> np.ndarray:
    x = _wide(images)
    if not x.size:
        return x
    mean = _folded_mean(x.reshape(*x.shape[:-3], -1, x.shape[-1]))[..., None, None, :]
    return np.asarray((x - mean) * x.dtype.type(contrast_factor) + mean)


def _contrast_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns a mean of n values, a difference, a product, a sum."""
    images, factor = inputs
    n = images.shape[-3] * images.shape[-2]
    largest = abs(images).max((-3, -2), keepdims=True, initial=0) + 0 * expected
    return (n + 8) * u * largest * (1 + 2 * abs(factor))


def _contrast_gradient(op: Any, grad: Any) -> list[Any]:
    """Of the linear map, and of the factor: what lies above the mean."""
    images, factor = op.inputs
    scale = apply_op("Cast", [factor], {"DstT": images.dtype})
    keep = {"keep_dims": True}

    def mean(x: Any) -> Any:
        return apply_op("Mean", [x, [-3, -2]], keep)

    rest = apply_op("Sub", [apply_op("OnesLike", [scale]), scale])
    above = grad * (images - mean(images))
    dimensions = apply_op("Range", [0, apply_op("Rank", [images]), 1])
    total = apply_op("Sum", [above, dimensions])
    return [grad * scale + mean(grad) * rest, apply_op("Cast", [total], {"DstT": factor.dtype})]


define_op(
    "AdjustContrastv2",
    inputs=["images: T", "contrast_factor: float"],
    outputs=["output: T"],
    attrs=[_HALF_AND_FLOAT],
    doc="Images whose distance from the mean of their channel is multiplied by contrast_factor.",
    shape=_contrast_shape,
    reference=_contrast,
    gradient=_contrast_gradient,
    accuracy=Bound(_contrast_error, "Higham, section 3.1: the error of a mean of n terms, then three operations"),
    samples=lambda: [
        Sample([Arg(shape, special=False), Arg(values=np.float32(factor))])
        for shape in ((2, 2, 3), (1, 4, 5, 1), (2, 3, 7, 4))
        for factor in (0.0, 0.5, 2.0)
    ],
    errors=lambda: [ErrorSample([Arg((2, 3)), Arg(values=np.float32(1))], "it must have rank 3 or more")],
)

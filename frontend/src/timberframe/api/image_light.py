"""`tf.image.*`: brightness, contrast and colors of images, also by chance, and images as training wants them."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.image_colors import adjust_contrast, adjust_hue, adjust_saturation, convert_image_dtype
from timberframe.api.image_geometry import image_tensor
from timberframe.api.random import random_uniform
from timberframe.api.selection import cast
from timberframe_core.dtypes import float16, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "image": (
        "adjust_brightness", "adjust_gamma", "grayscale_to_rgb", "per_image_standardization", "random_brightness",
        "random_contrast", "random_hue", "random_saturation", "rgb_to_grayscale",
    ),
}  # fmt: skip

_GRAY = [0.2989, 0.587, 0.114]  # the weights of red, green and blue (ITU-R BT.601)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """image + delta, delta being of [0, 1] also for integers, whose results are kept in their range."""
    with name_scope(None, "adjust_brightness", [image, delta]):
        given = convert_to_tensor(image, name="image")
        if given.dtype.is_floating:
            return apply_op("AddV2", [given, cast(delta, given.dtype)])  # type: ignore[no-any-return]  # a Tensor
        brighter = apply_op("AddV2", [convert_image_dtype(given, float32), cast(delta, float32)])
        return convert_image_dtype(brighter, given.dtype, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ^ gamma, the image taken as of [0, 1]; gamma must not be negative."""
    if isinstance(gamma, int | float) and gamma < 0:
        raise InvalidArgumentError(f"tf.image.adjust_gamma: gamma is {gamma}; it must not be negative")
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        given = convert_to_tensor(image, name="image")
        light = given if given.dtype in (float16, float32) else convert_image_dtype(given, float32)
        changed = apply_op("Mul", [apply_op("Pow", [light, cast(gamma, light.dtype)]), cast(gain, light.dtype)])
        return convert_image_dtype(changed, given.dtype, saturate=True)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Returns images with one channel: 0.2989 red + 0.587 green + 0.114 blue."""
    with name_scope(name, "rgb_to_grayscale", [images]):
        given = convert_to_tensor(images, name="images")
        light = convert_image_dtype(given, float32)
        gray = apply_op("Sum", [apply_op("Mul", [light, _GRAY]), [-1]])
        return convert_image_dtype(apply_op("ExpandDims", [gray, -1]), given.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Returns images of one channel with three equal ones."""
    with name_scope(name, "grayscale_to_rgb", [images]):
        given = convert_to_tensor(images, name="images")
        result: Tensor = apply_op("ConcatV2", [[given, given, given], -1])
        return result


def per_image_standardization(image: Any) -> Tensor:
    """(x - mean) / max(deviation, 1 / sqrt(elements)) for each image, as float32 where it is no float."""
    with name_scope(None, "per_image_standardization", [image]):
        given = image_tensor(image, "per_image_standardization")
        x = given if given.dtype.is_floating else cast(given, float32)
        mean = apply_op("Mean", [x, [-1, -2, -3]], {"keep_dims": True})
        variance = apply_op("Mean", [apply_op("SquaredDifference", [x, mean]), [-1, -2, -3]], {"keep_dims": True})
        sizes = apply_op("Shape", [x])
        count = apply_op("Prod", [sizes[-3:], [0]])
        least = apply_op("Rsqrt", [cast(count, x.dtype)])
        deviation = apply_op("Maximum", [apply_op("Sqrt", [variance]), least])
        result: Tensor = apply_op("RealDiv", [apply_op("Sub", [x, mean]), deviation])
        return result


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a number drawn from [-max_delta, max_delta)."""
    if max_delta < 0:
        raise InvalidArgumentError(f"tf.image.random_brightness: max_delta is {max_delta}; it must not be negative")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a number drawn from [lower, upper).

    seed: as in `tf.random_uniform`. InvalidArgumentError unless 0 <= lower < upper.
    """
    _check_range("random_contrast", lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a number drawn from [lower, upper).

    seed: as in `tf.random_uniform`. InvalidArgumentError unless 0 <= lower < upper.
    """
    _check_range("random_saturation", lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a number drawn from [-max_delta, max_delta); max_delta is in [0, 0.5]."""
    if not 0 <= max_delta <= 0.5:
        raise InvalidArgumentError(f"tf.image.random_hue: max_delta is {max_delta}; it must be in [0, 0.5]")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def _check_range(function: str, lower: float, upper: float) -> None:
    if lower < 0 or upper <= lower:
        raise InvalidArgumentError(
            f"tf.image.{function}: lower is {lower} and upper {upper}; 0 <= lower < upper is required"
        )

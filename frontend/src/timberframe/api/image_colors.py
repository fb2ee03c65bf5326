"""`tf.image.*`: colours of images, and their dtypes."""

from __future__ import annotations

from typing import Any

from timberframe.api.calls import call_op
from timberframe.api.framework import name_scope
from timberframe.api.selection import cast, saturate_cast
from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "image": ("adjust_contrast", "adjust_hue", "adjust_saturation", "convert_image_dtype", "hsv_to_rgb", "rgb_to_hsv")
}


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value of each pixel: the last dimension holds red, green and blue, all in [0, 1]."""
    result: Tensor = apply_op("RGBToHSV", [images], None, name)
    return result


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue of each pixel: the last dimension holds hue, saturation and value, all in [0, 1]."""
    result: Tensor = apply_op("HSVToRGB", [images], None, name)
    return result


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """RGB images whose hues are moved by `delta`, in [-1, 1], round the circle of colours."""
    return _adjusted("AdjustHue", "adjust_hue", image, delta, name)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """RGB images whose saturations are multiplied by a factor and kept within [0, 1]."""
    return _adjusted("AdjustSaturation", "adjust_saturation", image, saturation_factor, name)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Returns images in which each channel's distance from its mean over the image is multiplied by a factor."""
    return _adjusted("AdjustContrastv2", "adjust_contrast", images, contrast_factor, None, saturate=True)


def _adjusted(op: str, label: str, images: Any, by: Any, name: str | None, saturate: bool = False) -> Tensor:
    """Returns the op's result for the images, computed in float32 unless they are float16, in the images' dtype."""
    with name_scope(name, label):
        x = convert_to_tensor(images, name="images")
        wide = x if x.dtype.name in ("float16", "float32") else convert_image_dtype(x, float32)
        return convert_image_dtype(apply_op(op, [wide, by]), x.dtype, saturate)


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """Returns images in another dtype, whose range is taken to be [0, 1] for floating ones and 0 to
    the maximum for integers.

    saturate: values outside the new dtype's range become its nearest value; otherwise they may wrap.
    """
    wanted, to = as_dtype(dtype), saturate_cast if saturate else cast
    x = convert_to_tensor(image, name="image")
    if not (wanted.is_floating or wanted.is_integer):
        raise InvalidArgumentError(
            f"tf.image.convert_image_dtype: dtype is {wanted.name}; it must be a floating or integer one"
        )
    if wanted is x.dtype:
        return call_op("Identity", x, name=name)
    with name_scope(name, "convert_image") as scope:
        if wanted.is_floating and x.dtype.is_floating:
            return call_op("Cast", x, name=scope, DstT=wanted)
        if wanted.is_floating:
            return call_op("Mul", cast(x, wanted), 1.0 / int(x.dtype.max), name=scope)
        if x.dtype.is_floating:  # half a step more, so that each integer gets an equal part of [0, 1]
            result: Tensor = to(call_op("Mul", x, int(wanted.max) + 0.5), wanted, scope)
            return result
        return _between_integers(x, wanted, to, scope)


def _between_integers(x: Tensor, wanted: Any, to: Any, scope: str) -> Tensor:
    """Scaled by a power of two, so that scaling up and back changes nothing."""
    before, after = int(x.dtype.max), int(wanted.max)
    if before > after:
        scaled = call_op("FloorDiv", x, (before + 1) // (after + 1))
        result: Tensor = to(scaled, wanted, scope)
        return result
    return call_op("Mul", to(x, wanted), (after + 1) // (before + 1), name=scope)

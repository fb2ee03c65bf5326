"""`tf.image.*`: images of another size, and parts of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.calls import call_op
from timberframe.api.framework import name_scope
from timberframe_core.dtypes import float32, int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

NAMESPACES = {
    "image": (
        "ResizeMethod",
        "crop_and_resize",
        "draw_bounding_boxes",
        "extract_glimpse",
        "resize",
        "resize_area",
        "resize_bicubic",
        "resize_bilinear",
        "resize_images",
        "resize_nearest_neighbor",
    )
}


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """NHWC images at height and width `size`, as float32: each pixel a mean of the four around its position.

    images: [N, height, width, channels] of numbers. size: two integers. align_corners: whether the corners of both
    sides lie upon each other; half_pixel_centers: whether positions are those of the centres of pixels. Both at once
    are an error.
    """
    return _resized("ResizeBilinear", images, size, align_corners, name, half_pixel_centers)


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """NHWC images at height and width `size`: each pixel is the one that its position falls on.

    The arguments are those of `resize_bilinear`; the result has the dtype of images.
    """
    return _resized("ResizeNearestNeighbor", images, size, align_corners, name, half_pixel_centers)


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """NHWC images at height and width `size`, as float32, by cubic interpolation of the sixteen pixels around.

    The arguments are those of `resize_bilinear`.
    """
    return _resized("ResizeBicubic", images, size, align_corners, name, half_pixel_centers)


def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """NHWC images at height and width `size`, as float32: each pixel the mean of those that it covers."""
    result: Tensor = apply_op("ResizeArea", [images, size], {"align_corners": align_corners}, name)
    return result


def _resized(
    op: str, images: Any, size: Any, align_corners: bool, name: str | None, half_pixel_centers: bool
) -> Tensor:
    attrs = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    result: Tensor = apply_op(op, [images, size], attrs, name)
    return result


class ResizeMethod:
    """The methods of `resize_images`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_RESIZERS: dict[int, Callable[..., Tensor]] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
}


def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns one image or a batch of them at height and width `size`, by one of the methods of `ResizeMethod`.

    preserve_aspect_ratio: the largest size within `size` that keeps the ratio of the sides. Images that are known to
    have the size come back as they are, in their dtype.
    """
    resizer = _RESIZERS.get(method)
    if resizer is None:
        raise InvalidArgumentError(f"tf.image.resize_images: method is {method!r}; it must be one of {list(_RESIZERS)}")
    with name_scope(name, "resize"):
        given = convert_to_tensor(images, name="images")
        shape = given.static_shape
        if shape is None or len(shape) not in (3, 4):
            raise InvalidArgumentError(
                f"tf.image.resize_images: images has shape {format_shape(shape)}; its rank must be 3 or 4"
            )
        batch = given if len(shape) == 4 else call_op("ExpandDims", given, 0)
        wanted = convert_to_tensor(size, int32, name="size")
        if wanted.static_shape not in ((2,), None):
            raise InvalidArgumentError(
                f"tf.image.resize_images: size has shape {format_shape(wanted.static_shape)}; it must be (2,)"
            )
        if preserve_aspect_ratio:
            wanted = _within(batch, wanted)
        known = wanted.host_value
        if known is not None and tuple(known.tolist()) == shape[-3:-1]:
            return given
        resized = resizer(batch, wanted, align_corners=align_corners)
        return resized if len(shape) == 4 else call_op("Squeeze", resized, squeeze_dims=(0,))


resize = resize_images


def _within(images: Tensor, size: Tensor) -> Tensor:
    """Returns the largest size within `size` that keeps the ratio of height and width."""
    current = call_op("Cast", call_op("StridedSlice", call_op("Shape", images), [1], [3], [1]), DstT=float32)
    scales = call_op("RealDiv", call_op("Cast", size, DstT=float32), current)
    return call_op("Cast", call_op("Round", call_op("Mul", call_op("Min", scales, 0), current)), DstT=int32)


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Boxes cropped from NHWC images and resized to height and width `crop_size`, as float32.

    boxes: [boxes, 4], top, left, bottom and right in parts of the image's size; a reversed box flips. box_ind (or
    box_indices): the image of each. method: bilinear or nearest. Outside of an image lies extrapolation_value.
    """
    which = box_ind if box_indices is None else box_indices
    attrs = {"method": method, "extrapolation_value": extrapolation_value}
    result: Tensor = apply_op("CropAndResize", [image, boxes, which, crop_size], attrs, name)
    return result


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns a window of height and width `size` of each NHWC image at its offset (row, column).

    centered: offsets count from the centre, else from the upper left corner. normalized: they are parts of the image's
    size, else pixels. A window that exceeds its image raises UnimplementedError when it runs.
    """
    attrs = {"centered": centered, "normalized": normalized, "uniform_noise": uniform_noise}
    result: Tensor = apply_op("ExtractGlimpse", [input, size, offsets], attrs, name)
    return result


def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None, colors: Any = None) -> Tensor:
    """NHWC images with the outlines of boxes [batch, boxes, 4]: top, left, bottom and right in parts of the size.

    colors: rows of red, green, blue and alpha, used cyclically; TensorFlow's ten if there are none.
    """
    more = [] if colors is None else [colors]
    result: Tensor = apply_op(f"DrawBoundingBoxes{'V2' if more else ''}", [images, boxes, *more], None, name)
    return result

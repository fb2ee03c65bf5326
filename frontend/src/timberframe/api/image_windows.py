"""Parts of images: what sliding windows see, and random boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from timberframe.api.framework import name_scope
from timberframe.api.reduction import renamed
from timberframe_core.dtypes import float32
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = ["extract_image_patches"]

NAMESPACES = {"image": ("extract_image_patches", "extract_patches", "sample_distorted_bounding_box")}


def extract_image_patches(
    images: Any,
    ksizes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Sequence[int] | None = None,
) -> Tensor:
    """For each position of a window what it sees of images [batch, rows, columns, channels], as the last dimension.

    ksizes (sizes is its newer name), strides, rates: of the window, its steps and the distance of its pixels, each
    [1, rows, columns, 1]. padding: "SAME" or "VALID".
    """
    window = renamed("sizes", sizes, "ksizes", ksizes)
    attrs = {"ksizes": window, "strides": strides, "rates": rates, "padding": padding}
    made: Tensor = apply_op("ExtractImagePatches", [images], attrs, name)
    return made


def extract_patches(
    images: Any, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`extract_image_patches` by its newer name."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


class DistortedBoundingBox(NamedTuple):
    """Where `tf.slice` begins [3], how much it takes [3], and the box [1, 1, 4] in parts of the image."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBoundingBox:
    """Returns a random part of an image that shows enough of one of its objects, to train with.

    image_size: integers [3]: height, width, channels. bounding_boxes: float32 [batch, boxes, 4] of objects: y_min,
    x_min, y_max, x_max in [0, 1]. min_object_covered: the part of an object that must be in the box.
    aspect_ratio_range: of width to height, (0.75, 1.33) if None. area_range: parts of the image's area, (0.05, 1) if
    None. max_attempts: 100 if None; if none succeeds, the box is the whole image. use_image_if_no_bounding_boxes: the
    image counts as an object where there are none, else that is an error. The seeds are the op's alone, as in
    TensorFlow: that of the graph does not count.
    """
    with name_scope(name, "sample_distorted_bounding_box", [image_size, bounding_boxes]) as scope:
        covered = convert_to_tensor(min_object_covered, float32, "min_object_covered")
        attrs = {
            "seed": seed, "seed2": seed2, "aspect_ratio_range": aspect_ratio_range, "area_range": area_range,
            "max_attempts": max_attempts, "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
        }  # fmt: skip
        made = apply_op("SampleDistortedBoundingBoxV2", [image_size, bounding_boxes, covered], attrs, scope)
        return DistortedBoundingBox(*made)

"""`tf.image.*`: images brought to another size."""

from __future__ import annotations

from typing import Any

from timberframe.graph.apply import apply_op
from timberframe.graph.operation import Tensor

NAMESPACES = {"image": ("resize_bilinear", "resize_nearest_neighbor")}


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """NHWC images at height and width `size`, as float32: each pixel a mean of the four around its position."""
    attrs = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    result: Tensor = apply_op("ResizeBilinear", [images, size], attrs, name)
    return result


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """NHWC images at height and width `size`: each pixel is the one that its position falls on."""
    attrs = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    result: Tensor = apply_op("ResizeNearestNeighbor", [images, size], attrs, name)
    return result

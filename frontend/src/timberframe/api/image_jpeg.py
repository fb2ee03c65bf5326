"""`tf.image` functions of JPEG: whether bytes are of it, and what it loses."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.image_colors import convert_image_dtype
from timberframe.api.pictures import decode_jpeg, encode_jpeg
from timberframe_core.dtypes import uint8
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {"image": ("adjust_jpeg_quality", "is_jpeg")}


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Returns whether bytes are those of a JPEG picture, by the first three of them."""
    with name_scope(name, "is_jpeg"):
        made: Tensor = apply_op("Equal", [apply_op("Substr", [contents, 0, 3]), b"\xff\xd8\xff"])
        return made


def adjust_jpeg_quality(image: Any, jpeg_quality: int, name: str | None = None) -> Tensor:
    """Returns what is left of an image [rows, columns, 1 or 3] when it was a JPEG of a quality from 0 to 100."""
    with name_scope(name, "adjust_jpeg_quality"):
        given = convert_to_tensor(image, name="image")
        channels = given.shape.as_list()[-1]
        pixels = convert_image_dtype(given, uint8, saturate=True)
        seen = decode_jpeg(encode_jpeg(pixels, quality=jpeg_quality), channels=channels)
        return convert_image_dtype(seen, given.dtype, saturate=True)

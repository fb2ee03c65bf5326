"""`tf.image.*`: spaces of colors that keep brightness apart, and the transposition of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.contraction import tensordot
from timberframe.api.image_geometry import transpose_image
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {"image": ("rgb_to_yiq", "rgb_to_yuv", "transpose", "yiq_to_rgb", "yuv_to_rgb")}

transpose = transpose_image

_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]


def _converted(images: Any, matrix: Any) -> Tensor:
    given = convert_to_tensor(images, name="images")
    return tensordot(given, convert_to_tensor(np.array(matrix), given.dtype), 1)


def rgb_to_yuv(images: Any) -> Tensor:
    """Red, green and blue of [0, 1], in the last dimension, as Y, U and V (ITU-R BT.601)."""
    return _converted(images, _YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Y, U and V, in the last dimension, as red, green and blue."""
    return _converted(images, _FROM_YUV)


def rgb_to_yiq(images: Any) -> Tensor:
    """Red, green and blue of [0, 1], in the last dimension, as Y, I and Q (NTSC 1953)."""
    return _converted(images, _YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Y, I and Q, in the last dimension, as red, green and blue."""
    return _converted(images, _FROM_YIQ)

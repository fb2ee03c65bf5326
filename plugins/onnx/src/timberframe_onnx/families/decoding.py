"""Pictures from the bytes of files."""

from __future__ import annotations

import numpy as np

from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def _text_of(data: Tensor) -> Tensor:
    """Returns the bytes of a vector as one string: each byte's own string, joined."""
    table = np.empty(256, object)
    table[:] = [bytes([b]) for b in range(256)]
    return tf.reduce_join(tf.gather(tf.constant(table, tf.string), tf.cast(data, tf.int32)), 0)


@translates("ImageDecoder")
def _image_decoder(node: Node, data: Tensor) -> Tensor:
    """JPEG, PNG, BMP and GIF; other formats end the run with the decoder's error."""
    form = node.get("pixel_format", "RGB")
    picture = tf.image.decode_image(_text_of(data), channels=1 if form == "Grayscale" else 3, expand_animations=False)
    return tf.reverse(picture, [-1]) if form == "BGR" else picture

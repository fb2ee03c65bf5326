"""What ops of attention share: heads apart and together, and rotations by the places of a sequence."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import shape_parts
from timberframe_onnx.translation.values import Tensor


def split_heads(x: Tensor, count: int) -> Tensor:
    """[batch, places, heads * size] as [batch, heads, places, size]."""
    parts: list[Any] = shape_parts(x)
    return tf.transpose(tf.reshape(x, stacked([*parts[:2], count, parts[2] // count], tf.int32)), [0, 2, 1, 3])


def joined(x: Tensor) -> Tensor:
    """Returns the opposite of `split_heads`."""
    parts: list[Any] = shape_parts(x)
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), stacked([parts[0], parts[2], parts[1] * parts[3]], tf.int32))


def rotated(x: Tensor, places: Tensor, cosines: Tensor, sines: Tensor, interleaved: bool) -> Tensor:
    """x [batch, heads, places, size] turned by the angles of places [batch, places], as `turned` does."""
    cosine, sine = (tf.expand_dims(tf.gather(table, places), 1) for table in (cosines, sines))
    return turned(x, cosine, sine, interleaved)


def turned(x: Tensor, cosine: Tensor, sine: Tensor, interleaved: bool) -> Tensor:
    """x [batch, heads, places, size], the first 2 * half elements of it, turned by angles [batch, 1, places, half].

    A pair that turns is an element and its neighbour where they are interleaved, else one and that `half` after it.
    """
    half = shape_parts(cosine)[-1]
    size = shape_parts(x)[-1]
    whole = isinstance(half, int) and 2 * half == size
    moved = x if whole else x[..., : 2 * half]
    if interleaved:
        first, second = moved[..., ::2], moved[..., 1::2]
    else:
        first, second = moved[..., :half], moved[..., half:]
    pairs = [first * cosine - second * sine, second * cosine + first * sine]
    made = tf.reshape(tf.stack(pairs, -1), tf.shape(moved)) if interleaved else tf.concat(pairs, -1)
    return made if whole else tf.concat([made, x[..., 2 * half :]], -1)

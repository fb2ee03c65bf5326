"""Padding in all modes, and what else makes an axis longer or shorter."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import dynamic_shape
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


@translates("Pad", moves=True)
def _pad(node: Node, x: Tensor, pads: Tensor, value: Tensor = None, axes: Tensor = None) -> Tensor:
    rank = node.rank(x)
    mode = node.get("mode", "constant")
    before, after = _by_axis(node, pads, axes, rank)
    if mode == "constant":
        known = static(before), static(after)
        if any(k is None or np.any(k < 0) for k in known):
            begin = tf.maximum(-before, 0)
            x = tf.slice(x, begin, dynamic_shape(x) - begin - tf.maximum(-after, 0))
            before, after = tf.maximum(before, 0), tf.maximum(after, 0)
        filler = scalar(0, x) if value is None else tf.reshape(value, [])
        if value is None and x.dtype == tf.string:
            filler = tf.constant("")
        return tf.pad(x, tf.stack([before, after], 1), constant_values=filler)
    node.require(mode in ("edge", "reflect", "wrap"), f"its mode is '{mode}'")
    return _repeated(x, rank, mode, before, after)


def _by_axis(node: Node, pads: Tensor, axes: Tensor | None, rank: int) -> tuple[Tensor, Tensor]:
    """Returns the padding before and after each axis, int64 vectors."""
    known, chosen = static(pads), static(axes)
    if known is not None and (axes is None or chosen is not None):
        both = np.zeros((2, rank), np.int64)
        both[:, np.arange(rank) if chosen is None else chosen % max(rank, 1)] = known.reshape(2, -1)
        return tf.constant(both[0]), tf.constant(both[1])
    halves = tf.reshape(tf.cast(pads, tf.int64), [2, -1])
    if axes is None:
        return halves[0], halves[1]
    places = tf.cast(axes, tf.int64)
    places = tf.where_v2(places < 0, places + rank, places)[:, None]
    zeros = tf.zeros([rank], tf.int64)
    return tf.tensor_scatter_update(zeros, places, halves[0]), tf.tensor_scatter_update(zeros, places, halves[1])


def _repeated(x: Tensor, rank: int, mode: str, before: Tensor, after: Tensor) -> Tensor:
    """Padding by elements of the tensor itself: each place of the result says which."""
    first, last = static(before), static(after)
    for axis in range(rank):
        size = sizes(x)[axis]
        if first is not None and last is not None and first[axis] == last[axis] == 0:
            continue
        if first is not None and last is not None and size is not None:
            place: Any = np.arange(-first[axis], size + last[axis])
            x = tf.gather(x, tf.constant(_source(np, place, mode, size)), axis=axis)
        else:
            count = dynamic_shape(x)[axis]
            place = tf.range(-before[axis], count + after[axis])
            x = tf.gather(x, _source(tf, place, mode, count), axis=axis)
    return x


def _source(functions: Any, place: Any, mode: str, count: Any) -> Any:
    """Returns which element each place has, by functions of NumPy or of the graph; places
    count from the first element.
    """
    if mode == "edge":
        return functions.minimum(functions.maximum(place, 0), count - 1)
    if mode == "wrap":
        return place % count
    period = functions.maximum(2 * (count - 1), 1)
    place = place % period
    return functions.minimum(place, period - place)


@translates("CenterCropPad", moves=True)
def _center_crop_pad(node: Node, x: Tensor, shape: Tensor) -> Tensor:
    rank = node.rank(x)
    axes = [a % rank for a in node.get("axes", range(rank))]
    for i, axis in enumerate(axes):
        have, want = dynamic_shape(x)[axis], tf.cast(shape[i], tf.int64)
        cut = tf.maximum(have - want, 0) // 2
        kept = tf.range(cut, cut + tf.minimum(have, want))
        x = tf.gather(x, kept, axis=axis)
        missing = tf.maximum(want - have, 0)
        pair = tf.stack([missing // 2, missing - missing // 2])
        zero = tf.zeros([2], tf.int64)
        x = tf.pad(x, tf.stack([pair if j == axis else zero for j in range(rank)]))
    known = static(shape)
    if known is not None:
        x.set_shape([int(known[axes.index(j)]) if j in axes else d for j, d in enumerate(sizes(x))])
    return x

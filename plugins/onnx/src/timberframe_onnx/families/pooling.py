"""Pools: averages, maxima with their places, norms, over windows or over all of an image."""

from __future__ import annotations

import itertools
from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import dynamic_shape, product, stacked
from timberframe_onnx.families.windows import Windows, lowest
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def _prepared(node: Node, x: Tensor, value: Any) -> tuple[Windows, Tensor, list[Any], list[Any]]:
    """Returns the windows of a pool, the padded data, and the padding before and after."""
    windows = Windows.of(node, node.rank(x) - 2)
    before, after = windows.padding(x)
    after = windows.rounded_up(x, before, after)
    return windows, windows.padded(x, before, after, value), before, after


def _pooled(kind: str, x: Tensor, windows: Windows) -> Tensor:
    """Returns a pool of padded data by an op that has kernels: two or three spatial axes without dilation."""
    spatial = len(windows.kernel)
    narrow = spatial == 1
    if narrow:
        x = tf.expand_dims(x, 2)
    kernel, strides = (list((1,) * narrow + v) for v in (windows.kernel, windows.strides))
    if spatial == 3:
        pool = tf.nn.max_pool3d if kind == "max" else tf.nn.avg_pool3d
        rows = tf.transpose(x, [0, 2, 3, 4, 1])
        made = pool(rows, [1, *kernel, 1], [1, *strides, 1], "VALID", data_format="NDHWC")
        return tf.transpose(made, [0, 4, 1, 2, 3])
    pool = tf.nn.max_pool2d if kind == "max" else tf.nn.avg_pool2d
    made = pool(x, [1, 1, *kernel], [1, 1, *strides], "VALID", data_format="NCHW")
    return tf.squeeze(made, 2) if narrow else made


@translates("MaxPool")
def _max_pool(node: Node, x: Tensor) -> Any:
    windows, padded, before, _ = _prepared(node, x, lowest(x))
    plain = len(windows.kernel) <= 3 and set(windows.dilations) == {1}
    if plain and not node.wants(1) and x.dtype != tf.uint8:
        return _pooled("max", padded, windows)
    patches = windows.patches(padded)
    largest = tf.reduce_max(patches, -1)
    if not node.wants(1):
        return largest
    return largest, _places(node, x, windows, tf.argmax(patches, -1), before)


def _places(node: Node, x: Tensor, windows: Windows, best: Tensor, before: list[Any]) -> Tensor:
    """Returns where in the flattened input the maximum of each window is, by its place in the window."""
    spatial = len(windows.kernel)
    parts = shape_parts(x, tf.int64)
    counts = shape_parts(best, tf.int64)
    offsets = list(itertools.product(*(range(k) for k in windows.kernel)))
    places: list[Tensor] = []
    for i in range(spatial):
        table = tf.constant([o[i] * windows.dilations[i] - before[i] for o in offsets], tf.int64)
        start = tf.range(tf.cast(counts[i + 2], tf.int64)) * windows.strides[i]
        places.append(tf.gather(table, best) + tf.reshape(start, [-1 if j == i else 1 for j in range(spatial)]))
    order = list(range(spatial))
    if node.get("storage_order", 0):
        order.reverse()
    total: Any = 0
    for k, i in enumerate(order):
        total = total + places[i] * product([parts[j + 2] for j in order[k + 1 :]])
    images = tf.range(tf.cast(parts[0] * parts[1], tf.int64)) * product(parts[2:])
    return total + tf.reshape(images, stacked([parts[0], parts[1], *[1] * spatial]))


@translates("AveragePool")
def _average_pool(node: Node, x: Tensor) -> Tensor:
    windows, padded, before, after = _prepared(node, x, 0)
    plain = len(windows.kernel) <= 3 and set(windows.dilations) == {1}
    mean = _pooled("average", padded, windows) if plain else tf.reduce_mean(windows.patches(padded), -1)
    if all(isinstance(p, int) and p == 0 for p in (*before, *after)):
        return mean
    ones = tf.ones_like(x[:1, :1])
    if node.get("count_include_pad", 0):
        start, end = windows.padding(x)
        ones = windows.padded(ones, start, end, 1)
        extra = [a - b for a, b in zip(after, end, strict=True)]
        ones = windows.padded(ones, [0] * len(extra), extra, 0)
    else:
        ones = windows.padded(ones, before, after, 0)
    share = _pooled("average", ones, windows) if plain else tf.reduce_mean(windows.patches(ones), -1)
    return mean / share


@translates("LpPool")
def _lp_pool(node: Node, x: Tensor) -> Tensor:
    p = node.get("p", 2)
    windows, padded, _, _ = _prepared(node, x, 0)
    return _root(tf.reduce_sum(_power(windows.patches(padded), p), -1), p)


def _power(x: Tensor, p: int) -> Tensor:
    return tf.abs(x) if p == 1 else tf.square(x) if p == 2 else tf.pow(tf.abs(x), scalar(p, x))


def _root(x: Tensor, p: int) -> Tensor:
    return x if p == 1 else tf.sqrt(x) if p == 2 else tf.pow(x, scalar(1 / p, x))


def _image_axes(node: Node, x: Tensor) -> list[int]:
    return list(range(2, node.rank(x)))


@translates("GlobalAveragePool")
def _global_average_pool(node: Node, x: Tensor) -> Tensor:
    return tf.reduce_mean(x, _image_axes(node, x), keepdims=True)


@translates("GlobalMaxPool")
def _global_max_pool(node: Node, x: Tensor) -> Tensor:
    return tf.reduce_max(x, _image_axes(node, x), keepdims=True)


@translates("GlobalLpPool")
def _global_lp_pool(node: Node, x: Tensor) -> Tensor:
    p = node.get("p", 2)
    return _root(tf.reduce_sum(_power(x, p), _image_axes(node, x), keepdims=True), p)


@translates("MaxUnpool")
def _max_unpool(node: Node, x: Tensor, places: Tensor, shape: Tensor = None) -> Tensor:
    spatial = node.rank(x) - 2
    parts = shape_parts(x, tf.int64)
    windows = Windows.of(node, spatial)
    pads = windows.pads
    inferred = [
        (parts[i + 2] - 1) * windows.strides[i] + windows.kernel[i] - pads[i] - pads[i + spatial]
        for i in range(spatial)
    ]
    inner = stacked([*parts[:2], *inferred])
    flat = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(x, [-1]), stacked([product([*parts[:2], *inferred])]))
    made = tf.reshape(flat, inner)
    if shape is None:
        return made
    return tf.pad(made, tf.stack([tf.zeros_like(shape), shape - dynamic_shape(made)], 1))

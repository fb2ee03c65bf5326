"""Resize: each axis by itself, its places in the input first, then the elements around each place, weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.elements import Array
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor

FLOAT = tf.float64
"""Places are computed in float64, so that none falls on the other side of a whole number."""


@translates("Resize")
def _resize(node: Node, x: Tensor, roi: Tensor = None, scales: Tensor = None, wanted: Tensor = None) -> Tensor:
    rank = node.rank(x)
    axes = [a % rank for a in node.get("axes", range(rank))]
    inputs = [shape_parts(x)[a] for a in axes]
    if wanted is not None and _is_empty(wanted):
        wanted = None
    outputs, factors = _sizes_and_scales(node, inputs, scales, wanted, len(axes))
    mode = node.get("mode", "nearest")
    region = None if roi is None or _is_empty(roi) else tf.cast(roi, FLOAT)
    outside: list[tuple[int, Tensor]] = []
    dtype = x.dtype
    wide = dtype if mode == "nearest" or dtype in (tf.float32, tf.float64) else tf.float32
    made = tf.cast(x, wide)
    for i, axis in enumerate(axes):
        cropped = node.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        if not cropped and isinstance(factors[i], float) and factors[i] == 1.0 and outputs[i] == inputs[i]:
            continue
        bounds = None if region is None else (region[i], region[i + len(axes)])
        place = _places(node, inputs[i], outputs[i], factors[i], bounds)
        if cropped:
            last = tf.cast(_number(inputs[i]) - 1, FLOAT)
            outside.append((axis, tf.logical_or(place < 0, place > last)))
        made = _along(node, mode, made, axis, inputs[i], factors[i], place)
    for axis, beyond in outside:
        shaped = tf.reshape(beyond, [-1 if j == axis else 1 for j in range(rank)])
        made = tf.where_v2(shaped, scalar(node.get("extrapolation_value", 0.0), made), made)
    known = sizes(made)
    for i, axis in enumerate(axes):
        known[axis] = outputs[i] if isinstance(outputs[i], int) else known[axis]
    made.set_shape(known)
    if dtype.is_integer and wide != dtype:
        made = tf.round(made)
        limits = np.iinfo(dtype.numpy)
        made = tf.minimum(tf.maximum(made, float(limits.min)), float(limits.max))
    return tf.cast(made, dtype)


def _is_empty(x: Tensor) -> bool:
    return bool(x.shape.ndims == 1 and x.shape.as_list() == [0])


def _number(size: Any) -> Tensor:
    return size if isinstance(size, tf.Tensor) else tf.constant(size)


def _sizes_and_scales(
    node: Node, inputs: list[Any], scales: Tensor | None, wanted: Tensor | None, count: int
) -> tuple[list[Any], list[Any]]:
    """Returns sizes of the result along the axes, and by how much it is larger: numbers where they are known."""
    if wanted is not None:
        known = static(wanted)
        if known is not None and all(isinstance(n, int) for n in inputs):
            return _fitted(node, np.array(inputs), known)
        ratios = tf.cast(wanted, FLOAT) / tf.cast(tf.stack([tf.cast(n, tf.int64) for n in inputs]), FLOAT)
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        outputs = [tf.cast(wanted[i], tf.int32) for i in range(count)]
        if policy == "stretch":
            return outputs, [ratios[i] for i in range(count)]
        factor = tf.reduce_min(ratios) if policy == "not_larger" else tf.reduce_max(ratios)
        rounded = [tf.cast(tf.floor(factor * tf.cast(n, FLOAT) + 0.5), tf.int32) for n in inputs]
        return rounded, [factor] * count
    node.require(scales is not None, "it has neither scales nor sizes")
    known = static(scales)
    if known is not None and all(isinstance(n, int) for n in inputs):
        factors = [float(s) for s in known]
        return [int(np.floor(n * s)) for n, s in zip(inputs, factors, strict=True)], factors
    if known is not None:
        fixed = [float(s) for s in known]
        outputs = [
            n
            if s == 1.0
            else int(np.floor(n * s))
            if isinstance(n, int)
            else tf.cast(tf.floor(tf.cast(n, FLOAT) * s), tf.int32)
            for n, s in zip(inputs, fixed, strict=True)
        ]
        return outputs, [1.0 if s == 1.0 else tf.constant(s, FLOAT) for s in fixed]
    wide = tf.cast(scales, FLOAT)
    return [tf.cast(tf.floor(tf.cast(n, FLOAT) * wide[i]), tf.int32) for i, n in enumerate(inputs)], [
        wide[i] for i in range(count)
    ]


def _fitted(node: Node, inputs: Array, wanted: Array) -> tuple[list[Any], list[Any]]:
    """That of sizes which are asked for, by the policy on what becomes of proportions."""
    ratios = wanted / inputs
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [int(n) for n in wanted], [float(r) for r in ratios]
    factor = float(ratios.min() if policy == "not_larger" else ratios.max())
    return [int(np.floor(n * factor + 0.5)) for n in inputs], [factor] * len(inputs)


def _places(node: Node, size: Any, outputs: Any, factor: Any, bounds: tuple[Tensor, Tensor] | None) -> Tensor:
    """Returns where in the input each element of the result comes from."""
    at = tf.cast(tf.range(_number(outputs)), FLOAT)
    count = tf.cast(_number(size), FLOAT)
    scale = tf.cast(factor, FLOAT) if isinstance(factor, tf.Tensor) else tf.constant(factor, FLOAT)
    width = scale * count
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    if mode == "align_corners":
        return at * (count - 1) / _but_one(width)
    if mode == "asymmetric":
        return at / scale
    half = (at + 0.5) / scale - 0.5
    if mode == "half_pixel":
        return half
    if mode == "pytorch_half_pixel":
        return tf.where_v2(tf.equal(width, 1), tf.fill(tf.shape(at), tf.constant(-0.5, FLOAT)), half)
    if mode == "half_pixel_symmetric":
        adjustment = tf.cast(_number(outputs), FLOAT) / width
        return count / 2 * (1 - adjustment) + half
    node.require(mode == "tf_crop_and_resize" and bounds is not None, f"it has coordinates '{mode}' without a region")
    assert bounds is not None
    start, end = bounds
    step = (end - start) * (count - 1)
    inside = tf.where_v2(tf.equal(width, 1), at * 0 + step / 2, at * step / _but_one(width))
    return inside + start * (count - 1)


def _but_one(width: Tensor) -> Tensor:
    """Steps between first and last element; 1 where there is one element, whose place is 0 either way."""
    return tf.where_v2(tf.equal(width, 1), tf.ones_like(width), width - 1)


def _along(node: Node, mode: str, x: Tensor, axis: int, size: Any, factor: Any, place: Tensor) -> Tensor:
    """Returns the tensor resized along one axis."""
    last = _number(size) - 1
    if mode == "nearest":
        rounding = node.get("nearest_mode", "round_prefer_floor")
        rounded = {
            "round_prefer_floor": lambda: tf.ceil(place - 0.5),
            "round_prefer_ceil": lambda: tf.floor(place + 0.5),
            "floor": lambda: tf.floor(place),
            "ceil": lambda: tf.ceil(place),
        }[rounding]()
        return tf.gather(x, tf.minimum(tf.maximum(tf.cast(rounded, tf.int32), 0), last), axis=axis)
    whole = tf.floor(place)
    ratio = place - whole
    if node.get("antialias", 0):
        return _mixed(x, axis, *_antialiased(node, mode, factor, whole, ratio), size, node.get("exclude_outside", 0))
    if mode == "linear":
        offsets, weights = [0, 1], [1 - ratio, ratio]
    else:
        offsets, weights = [-1, 0, 1, 2], cubic_weights(ratio, node.get("cubic_coeff_a", -0.75))
    indices = [tf.cast(whole, tf.int32) + o for o in offsets]
    if node.get("exclude_outside", 0):
        inside = [tf.logical_and(i >= 0, i <= last) for i in indices]
        weights = [tf.where_v2(k, w, tf.zeros_like(w)) for k, w in zip(inside, weights, strict=True)]
        total = tf.add_n(weights)
        weights = [w / total for w in weights]
    rank = x.shape.ndims
    made: Any = None
    for index, weight in zip(indices, weights, strict=True):
        taken = tf.gather(x, tf.minimum(tf.maximum(index, 0), last), axis=axis)
        part = taken * tf.reshape(tf.cast(weight, x.dtype), [-1 if j == axis else 1 for j in range(rank)])
        made = part if made is None else made + part
    return made


def cubic_weights(ratio: Tensor, a: float) -> list[Tensor]:
    """Returns the weights of four elements around a place by cubic convolution (Keys, 1981)."""

    def near(t: Tensor) -> Tensor:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return [far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)]


def _antialiased(node: Node, mode: str, factor: Any, whole: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Indices and weights [places, elements] of windows as wide as what an element of the result stands for."""
    scale = tf.minimum(factor if isinstance(factor, tf.Tensor) else tf.constant(factor, FLOAT), 1.0)
    reach = 1.0 if mode == "linear" else 2.0
    start = tf.cast(tf.floor(-reach / scale), tf.int32) + 1
    offsets = tf.range(start, 2 - start)
    distance = (tf.cast(offsets, FLOAT) - ratio[:, None]) * scale
    if mode == "linear":
        weights = tf.maximum(1 - tf.abs(distance), 0.0)
    else:
        a = node.get("cubic_coeff_a", -0.75)
        t = tf.abs(distance)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        weights = tf.where_v2(t <= 1, near, tf.where_v2(t < 2, far, tf.zeros_like(t)))
    weights = weights / tf.reduce_sum(weights, 1, keepdims=True)
    return tf.cast(whole, tf.int32)[:, None] + offsets, weights


def _mixed(x: Tensor, axis: int, indices: Tensor, weights: Tensor, size: Any, exclude: int) -> Tensor:
    """Returns the product of an axis with a matrix that has the weights at the indices."""
    count = _number(size)
    if exclude:
        inside = tf.logical_and(indices >= 0, indices < count)
        weights = tf.where_v2(inside, weights, tf.zeros_like(weights))
        weights = weights / tf.reduce_sum(weights, 1, keepdims=True)
    kept = tf.minimum(tf.maximum(indices, 0), count - 1)
    matrix = tf.reduce_sum(tf.one_hot(kept, count, dtype=FLOAT) * weights[..., None], 1)
    rank = x.shape.ndims
    order = [*(j for j in range(rank) if j != axis), axis]
    back = [order.index(j) for j in range(rank)]
    rows = tf.transpose(x, order)
    flat = tf.matmul(tf.reshape(rows, stacked([-1, size], tf.int32)), tf.cast(matrix, x.dtype), transpose_b=True)
    shape: list[Any] = [*shape_parts(rows)[:-1], tf.shape(matrix)[0]]
    return tf.transpose(tf.reshape(flat, stacked(shape, tf.int32)), back)

"""Ops that take or write elements at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import dynamic_shape, product, stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor

FAR = np.iinfo(np.int64).max


def from_start(indices: Tensor, size: Any) -> Tensor:
    """Returns indices that count from the start: negative ones of the model count from the end."""
    known = static(indices)
    if known is not None and np.all(known >= 0):
        return indices
    return tf.where_v2(indices < 0, indices + tf.cast(size, indices.dtype), indices)


@translates("Slice", moves=True)
def _slice(node: Node, x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor = None, steps: Tensor = None) -> Tensor:
    rank = node.rank(x)
    count = sizes(starts)[0]
    if axes is None:
        node.require_known(count is not None, "the number of its starts")
        axes = tf.range(tf.constant(count, tf.int64))
    known = [static(v) for v in (starts, ends, axes, steps)]
    if all(k is not None for k in known[:3]) and (steps is None or known[3] is not None):
        return _constant_slice(x, rank, *known)
    axes = tf.cast(axes, tf.int64)
    axes = tf.where_v2(axes < 0, axes + rank, axes)[:, None]

    def spread(values: Tensor, otherwise: int) -> Tensor:
        whole = tf.constant(np.full(rank, otherwise, np.int64))
        return tf.tensor_scatter_update(whole, axes, tf.cast(values, tf.int64))

    begin, end = spread(starts, 0), spread(ends, FAR)
    stride = tf.constant(np.ones(rank, np.int64)) if steps is None else spread(steps, 1)
    return tf.strided_slice(x, begin, end, stride)


def _constant_slice(x: Tensor, rank: int, starts: Any, ends: Any, axes: Any, steps: Any) -> Tensor:
    begin, end, stride = [0] * rank, [0] * rank, [1] * rank
    whole = [True] * rank
    for i, axis in enumerate(axes.tolist()):
        axis %= rank
        begin[axis], end[axis] = int(starts[i]), int(ends[i])
        stride[axis] = 1 if steps is None else int(steps[i])
        whole[axis] = False
    mask = sum(1 << i for i, w in enumerate(whole) if w)
    index = [np.clip(np.array(v, np.int64), -(2**31) + 1, 2**31 - 1).astype(np.int32) for v in (begin, end, stride)]
    return tf.strided_slice(x, *index, begin_mask=mask, end_mask=mask)


@translates("Gather", moves=True)
def _gather(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.get("axis", 0)
    return tf.gather(x, from_start(indices, tf.shape(x)[axis]), axis=axis)


def flat_positions(data: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Returns where in the flattened data each of the indices points to, which take the place along an axis."""
    parts = shape_parts(data, tf.int64)
    rank = len(parts)
    axis %= rank
    places = dynamic_shape(indices)
    total: Any = from_start(tf.cast(indices, tf.int64), parts[axis]) * product(parts[axis + 1 :])
    for i in range(rank):
        if i != axis:
            along = tf.range(places[i]) * product(parts[i + 1 :])
            total = total + tf.reshape(along, [-1 if j == i else 1 for j in range(rank)])
    return total


@translates("GatherElements", moves=True)
def _gather_elements(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    return tf.gather(tf.reshape(x, [-1]), flat_positions(x, indices, node.get("axis", 0)))


@translates("GatherND", moves=True)
def _gather_nd(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    batch = node.get("batch_dims", 0)
    width = sizes(indices)[-1]
    node.require_known(width is not None, "the last size of its indices")
    inside = tf.shape(x, out_type=tf.int64)[batch : batch + (width or 0)]
    found = from_start(tf.cast(indices, tf.int64), inside)
    if batch:
        # Each index gets the place in the batch that it stands in before its own.
        outer = dynamic_shape(indices)[:-1]
        rank = node.rank(indices) - 1
        along = [
            tf.broadcast_to(tf.reshape(tf.range(outer[i]), [-1 if j == i else 1 for j in range(rank)]), outer)
            for i in range(batch)
        ]
        found = tf.concat([tf.stack(along, -1), found], -1)
    return tf.gather_nd(x, found)


_SCATTERS: dict[str, Callable[..., Tensor]] = {
    "none": tf.tensor_scatter_update,
    "add": tf.tensor_scatter_add,
    "max": tf.tensor_scatter_max,
    "min": tf.tensor_scatter_min,
}


def _scattered(node: Node, flat: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    """Returns rows of `flat` at `places` (a vector), replaced by or combined with the rows of `updates`."""
    reduction = node.get("reduction", "none")
    if reduction == "mul":
        return flat * tf.unsorted_segment_prod(updates, places, dynamic_shape(flat)[0])
    return _SCATTERS[reduction](flat, places[:, None], updates)


@translates("ScatterElements", "Scatter", moves=True)
def _scatter_elements(node: Node, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    places = tf.reshape(flat_positions(x, indices, node.get("axis", 0)), [-1])
    made = _scattered(node, tf.reshape(x, [-1]), places, tf.reshape(updates, [-1]))
    return tf.reshape(made, dynamic_shape(x))


@translates("ScatterND", moves=True)
def _scatter_nd(node: Node, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    width = sizes(indices)[-1]
    node.require_known(width is not None, "the last size of its indices")
    width = int(width or 0)
    parts = shape_parts(x, tf.int64)
    inside = parts[:width]
    strides = stacked([product(inside[i + 1 :]) for i in range(width)])
    known = from_start(tf.cast(indices, tf.int64), stacked(inside))
    places = tf.reshape(tf.reduce_sum(known * strides, -1), [-1])
    row = product(parts[width:])
    made = _scattered(
        node, tf.reshape(x, stacked([product(inside), row])), places, tf.reshape(updates, stacked([-1, row]))
    )
    return tf.reshape(made, dynamic_shape(x))


@translates("NonZero")
def _non_zero(node: Node, x: Tensor) -> Tensor:
    return tf.transpose(tf.where(x if x.dtype.is_bool else tf.not_equal(x, scalar(0, x))))


@translates("Compress", moves=True)
def _compress(node: Node, x: Tensor, condition: Tensor) -> Tensor:
    axis = node.get("axis")
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.gather(x, tf.where(condition)[:, 0], axis=axis)


@translates("OneHot")
def _one_hot(node: Node, indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    depth = tf.cast(tf.reshape(depth, []), tf.int32)
    found = from_start(tf.cast(indices, tf.int64), depth)
    axis = node.get("axis", -1)
    axis = axis + node.rank(indices) + 1 if axis < 0 else axis
    on = tf.one_hot(found, depth, True, False, axis=axis, dtype=tf.bool)
    return tf.where_v2(on, values[1], values[0])


@translates("TopK")
def _top_k(node: Node, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    axis, rank = node.get("axis", -1), node.rank(x)
    largest = node.get("largest", 1)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    rows = tf.transpose(x, order)
    ranked = rows if largest else _reversed_order(rows)
    known = static(k)
    count = tf.cast(tf.reshape(k, []), tf.int32) if known is None else int(known.reshape(()))
    values, found = tf.nn.top_k(ranked, count, sorted=bool(node.get("sorted", 1)))
    values = values if largest else _reversed_order(values)
    return tf.transpose(values, order), tf.cast(tf.transpose(found, order), tf.int64)


def _reversed_order(x: Tensor) -> Tensor:
    return tf.bitwise.invert(x) if x.dtype.is_integer else tf.negative(x)


@translates("TensorScatter", moves=True)
def _tensor_scatter(node: Node, cache: Tensor, update: Tensor, starts: Tensor = None) -> Tensor:
    axis = node.get("axis", -2) % node.rank(cache)
    parts, given = shape_parts(cache, tf.int64), shape_parts(update, tf.int64)
    begin = tf.zeros(stacked([parts[0]]), tf.int64) if starts is None else tf.cast(starts, tf.int64)
    places = begin[:, None] + tf.range(tf.cast(given[axis], tf.int64))
    if node.get("mode", "linear") == "circular":
        places = places % parts[axis]
    rank = len(parts)
    shaped = tf.reshape(places, stacked([parts[0] if i == 0 else given[axis] if i == axis else 1 for i in range(rank)]))
    everywhere = flat_positions(cache, tf.broadcast_to(shaped, dynamic_shape(update)), axis)
    flat = tf.tensor_scatter_update(
        tf.reshape(cache, [-1]), tf.reshape(everywhere, [-1])[:, None], tf.reshape(update, [-1])
    )
    made = tf.reshape(flat, dynamic_shape(cache))
    if starts is not None and node.get("mode", "linear") == "linear" and (rank, axis) == (4, 2):
        node.scope.translation.states.write(cache, update, starts, made)
    return made

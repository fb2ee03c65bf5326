"""What is found in a tensor: its different elements, and boxes that do not overlap."""

from __future__ import annotations

from onnx import TensorProto

from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Sequence, Tensor


@translates("Unique")
def _unique(node: Node, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    axis = node.get("axis")
    along = tf.reshape(x, [-1]) if axis is None else x
    dimension = 0 if axis is None else axis % node.rank(x)
    values, inverse, counts = tf.raw_ops.UniqueWithCountsV2(
        x=along, axis=tf.constant([dimension], tf.int64), out_idx=tf.int64
    )
    number = tf.size(counts)
    first = tf.unsorted_segment_min(tf.range(tf.size(inverse, out_type=tf.int64)), inverse, number)
    if node.get("sorted", 1):
        order = _order(values, dimension)
        places = tf.scatter_nd(order[:, None], tf.range(tf.size(order)), tf.shape(order))
        values = tf.gather(values, order, axis=dimension)
        first, counts = tf.gather(first, order), tf.gather(counts, order)
        inverse = tf.cast(tf.gather(places, inverse), tf.int64)
    return values, first, inverse, tf.cast(counts, tf.int64)


def _order(values: Tensor, axis: int) -> Tensor:
    """Returns the order of slices along an axis by their elements, the first of which counts
    most: a stable sort by each.
    """
    rank = values.shape.ndims
    if rank == 1:
        return tf.argsort(values)
    front = tf.transpose(values, [axis, *(i for i in range(rank) if i != axis)])
    rows = tf.reshape(front, tf.stack([tf.shape(front)[0], -1]))

    def step(i: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        column = tf.gather(rows[:, i], order)
        return i - 1, tf.gather(order, tf.argsort(column, stable=True))

    start = (tf.shape(rows)[1] - 1, tf.range(tf.shape(rows)[0]))
    _, order = tf.while_loop(lambda i, _: i >= 0, step, start)
    return order


@translates("NonMaxSuppression")
def _non_max_suppression(
    node: Node, boxes: Tensor, scores: Tensor, most: Tensor = None, overlap: Tensor = None, least: Tensor = None
) -> Tensor:
    """For each image and class the boxes with the best scores, as rows of image, class and box."""
    if node.get("center_point_box", 0):
        x, y, w, h = (boxes[..., i] for i in range(4))
        boxes = tf.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    else:
        low = tf.minimum(boxes[..., :2], boxes[..., 2:])
        boxes = tf.concat([low, tf.maximum(boxes[..., :2], boxes[..., 2:])], -1)
    count = tf.constant(0) if most is None else tf.cast(tf.minimum(tf.reshape(most, []), 2**31 - 1), tf.int32)
    share = tf.constant(0.0) if overlap is None else tf.reshape(overlap, [])
    floor = tf.constant(float("-inf")) if least is None else tf.reshape(least, [])
    images, classes = tf.shape(scores)[0], tf.shape(scores)[1]

    def step(i: Tensor, handle: Tensor) -> tuple[Tensor, Tensor]:
        image, kind = i // classes, i % classes
        kept = tf.image.non_max_suppression(boxes[image], scores[image, kind], count, share, floor)
        same = tf.ones_like(kept)
        rows = tf.stack([same * image, same * kind, kept], 1)
        return i + 1, Sequence(handle, TensorProto.INT32).push(rows).handle

    start = Sequence.empty(TensorProto.INT32).push(tf.zeros([0, 3], tf.int32))
    _, handle = tf.while_loop(lambda i, _: i < images * classes, step, (tf.constant(0), start.handle))
    joined = tf.raw_ops.TensorListConcatV2(
        input_handle=handle,
        element_shape=tf.constant([-1, 3]),
        leading_dims=tf.constant([], tf.int64),
        element_dtype=tf.int32,
    )[0]
    return tf.cast(joined, tf.int64)

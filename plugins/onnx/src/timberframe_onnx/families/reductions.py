"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor

Reduction = Callable[[Tensor, Tensor, bool], Tensor]


def _flags(reduce: Reduction) -> Reduction:
    """Returns a reduction that takes bool, too, as 0 and 1."""

    def reduced(x: Tensor, axes: Tensor, keepdims: bool) -> Tensor:
        if not x.dtype.is_bool:
            return reduce(x, axes, keepdims)
        return tf.cast(reduce(tf.cast(x, tf.uint8), axes, keepdims), tf.bool)

    return reduced


REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": lambda x, axes, keepdims: tf.reduce_sum(x, axes, keepdims),
    "ReduceMean": lambda x, axes, keepdims: tf.reduce_mean(x, axes, keepdims),
    "ReduceProd": lambda x, axes, keepdims: tf.reduce_prod(x, axes, keepdims),
    "ReduceMax": _flags(lambda x, axes, keepdims: tf.reduce_max(x, axes, keepdims)),
    "ReduceMin": _flags(lambda x, axes, keepdims: tf.reduce_min(x, axes, keepdims)),
    "ReduceL1": lambda x, axes, keepdims: tf.reduce_sum(tf.abs(x), axes, keepdims),
    "ReduceL2": lambda x, axes, keepdims: _root(tf.reduce_sum(x * x, axes, keepdims)),
    "ReduceSumSquare": lambda x, axes, keepdims: tf.reduce_sum(x * x, axes, keepdims),
    "ReduceLogSum": lambda x, axes, keepdims: tf.log(tf.reduce_sum(x, axes, keepdims)),
    "ReduceLogSumExp": lambda x, axes, keepdims: tf.reduce_logsumexp(x, axes, keepdims),
}
_WITHOUT_AXES = {
    "ReduceL1": tf.abs,
    "ReduceL2": tf.abs,
    "ReduceSumSquare": tf.square,
    "ReduceLogSum": tf.log,
}
"""What a reduction along no axis does to each element, where it is not nothing."""


def _root(x: Tensor) -> Tensor:
    return tf.cast(tf.sqrt(tf.cast(x, tf.float64)), x.dtype) if x.dtype.is_integer else tf.sqrt(x)


def _reduce(node: Node, x: Tensor, axes: Tensor = None) -> Tensor:
    keepdims = bool(node.get("keepdims", 1))
    known = static(axes)
    count = None if axes is None else (sizes(axes)[0] if known is None else len(known))
    if axes is None or count == 0:
        if node.get("noop_with_empty_axes", 0):
            return _WITHOUT_AXES.get(node.op, tf.identity)(x)
        return REDUCTIONS[node.op](x, None, keepdims)
    if count is None:
        node.require(not node.get("noop_with_empty_axes", 0), "it has axes of unknown number, which may be none")
        axes = tf.cond(tf.size(axes) > 0, lambda: axes, lambda: tf.range(tf.cast(tf.rank(x), axes.dtype)))
    return REDUCTIONS[node.op](x, axes if known is None else known.tolist(), keepdims)


for _op in REDUCTIONS:
    translates(_op)(_reduce)


def _arg(node: Node, x: Tensor, find: Callable[..., Tensor]) -> Tensor:
    axis = node.get("axis", 0)
    if node.get("select_last_index", 0):
        last = tf.shape(x, out_type=tf.int64)[axis] - 1
        found = last - find(tf.reverse(x, [axis]), axis, output_type=tf.int64)
    else:
        found = find(x, axis, output_type=tf.int64)
    return tf.expand_dims(found, axis) if node.get("keepdims", 1) else found


@translates("ArgMax")
def _argmax(node: Node, x: Tensor) -> Tensor:
    return _arg(node, x, tf.argmax)


@translates("ArgMin")
def _argmin(node: Node, x: Tensor) -> Tensor:
    return _arg(node, x, tf.argmin)

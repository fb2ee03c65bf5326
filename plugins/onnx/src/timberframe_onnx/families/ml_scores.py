"""Scores of classifiers and regressors: transformed, and turned into labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.strings import texts
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.values import Tensor


def class_labels(node: Node) -> Tensor | None:
    """Returns the labels of a node's classes, None where it names none."""
    for name in ("classlabels_ints", "classlabels_int64s"):
        if node.get(name):
            return tf.constant(np.array(node.get(name), np.int64))
    found = node.get("classlabels_strings")
    return texts(found) if found else None


def transformed_scores(node: Node, scores: Tensor) -> Tensor:
    """Returns the scores after the node's `post_transform`."""
    kind = node.get("post_transform", "NONE")
    if kind == "LOGISTIC":
        return tf.sigmoid(scores)
    if kind == "SOFTMAX":
        return tf.nn.softmax(scores)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(scores)
    if kind == "PROBIT":
        return scalar(np.sqrt(2), scores) * tf.math.erfinv(2 * scores - 1)
    node.require(kind == "NONE", f"its post_transform is '{kind}'")
    return scores


def _softmax_zero(scores: Tensor) -> Tensor:
    """Returns the softmax in which scores of zero stay zero."""
    largest = tf.reduce_max(scores, -1, keepdims=True)
    zero = tf.abs(scores) <= scalar(1e-7, scores)
    powers = tf.where_v2(zero, scores * tf.exp(-largest), tf.exp(scores - largest))
    total = tf.reduce_sum(powers, -1, keepdims=True)
    none = tf.equal(total, scalar(0, total))
    return tf.where_v2(none, tf.zeros_like(powers) + scalar(0.5, powers), powers / total)


def labelled(node: Node, scores: Tensor) -> Tensor:
    """Returns the label of the greatest score of each row."""
    best = tf.argmax(scores, -1)
    labels: Any = class_labels(node)
    return best if labels is None else tf.gather(labels, best)


def as_floats(x: Tensor) -> Tensor:
    """Returns features in float32, in float64 where they are that."""
    return x if x.dtype in (tf.float32, tf.float64) else tf.cast(x, tf.float32)

"""Linear models and support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.elements import Array
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.ml_scores import as_floats, class_labels, labelled, transformed_scores
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import MACHINE_LEARNING, translates
from timberframe_onnx.translation.values import Tensor


def _weights(node: Node, rows: int, x: Tensor) -> Tensor:
    matrix = np.array(node.get("coefficients"), x.dtype.numpy).reshape(rows, -1).T
    return tf.constant(np.ascontiguousarray(matrix))


@translates("LinearRegressor", domain=MACHINE_LEARNING)
def _linear_regressor(node: Node, x: Tensor) -> Tensor:
    x = as_floats(x)
    made = tf.matmul(x, _weights(node, node.get("targets", 1), x))
    if node.get("intercepts"):
        made = made + tf.constant(np.array(node.get("intercepts"), x.dtype.numpy))
    return transformed_scores(node, made)


@translates("LinearClassifier", domain=MACHINE_LEARNING)
def _linear_classifier(node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    x = as_floats(x)
    labels: Any = class_labels(node)
    width = shape_parts(x)[-1]
    node.require_known(isinstance(width, int), "the number of features")
    rows = len(node.get("coefficients")) // width
    scores = tf.matmul(x, _weights(node, rows, x))
    if node.get("intercepts"):
        scores = scores + tf.constant(np.array(node.get("intercepts"), x.dtype.numpy))
    if rows == 1 and labels is not None and shape_parts(labels)[0] == 2:
        scores = tf.concat([-scores, scores], 1)
    made = transformed_scores(node, scores)
    if rows > 1 or shape_parts(made)[-1] == 2:
        return labelled(node, made), made
    over = made[:, 0] >= scalar(0.0 if node.get("post_transform", "NONE") == "NONE" else 0.5, made)
    if labels is None:
        return tf.cast(over, tf.int64), made
    other = tf.constant("") if labels.dtype == tf.string else tf.constant(0, tf.int64)
    return tf.where_v2(over, labels[0], other), made


def _kernel(node: Node, x: Tensor, vectors: Array) -> Tensor:
    """Returns the kernel of each row with each support vector."""
    gamma, offset, degree = [*node.get("kernel_params", []), 0.0, 0.0, 0.0][:3]
    kind = node.get("kernel_type", "LINEAR")
    others = tf.constant(vectors)
    products = tf.matmul(x, others, transpose_b=True)
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        distance = tf.reduce_sum(tf.square(x[:, None] - others), -1)
        return tf.exp(scalar(-gamma, x) * distance)
    line = scalar(gamma, x) * products + scalar(offset, x)
    node.require(kind in ("POLY", "SIGMOID"), f"its kernel_type is '{kind}'")
    return tf.tanh(line) if kind == "SIGMOID" else tf.pow(line, scalar(degree, x))


@translates("SVMRegressor", domain=MACHINE_LEARNING)
def _svm_regressor(node: Node, x: Tensor) -> Tensor:
    x = as_floats(x)
    dtype = x.dtype.numpy
    weights = np.array(node.get("coefficients"), dtype)
    supports = node.get("n_supports", 0)
    if supports:
        kernel = _kernel(node, x, np.array(node.get("support_vectors"), dtype).reshape(supports, -1))
    else:
        kernel = x
    made = tf.matmul(kernel, tf.constant(weights.reshape(-1, 1))) + scalar(node.get("rho", [0.0])[0], x)
    if node.get("one_class", 0):
        return tf.where_v2(made > scalar(0, x), tf.ones_like(made), -tf.ones_like(made))
    return transformed_scores(node, made)


@translates("SVMClassifier", domain=MACHINE_LEARNING)
def _svm_classifier(node: Node, x: Tensor) -> tuple[Tensor, Tensor]:
    x = as_floats(x)
    dtype = x.dtype.numpy
    labels: Any = class_labels(node)
    classes = shape_parts(labels)[0] if labels is not None else 1
    counts = node.get("vectors_per_class")
    if not counts:
        scores = tf.matmul(x, _weights(node, classes, x)) + scalar(node.get("rho", [0.0])[0], x)
        return labelled(node, scores), transformed_scores(node, scores)
    total = sum(counts)
    kernel = _kernel(node, x, np.array(node.get("support_vectors"), dtype).reshape(total, -1))
    pairs, spread = _pairs(np.array(node.get("coefficients"), dtype).reshape(-1, total), counts)
    scores = tf.matmul(kernel, tf.constant(spread)) + tf.constant(np.array(node.get("rho"), dtype))
    wins = tf.cast(scores > scalar(0, x), x.dtype)
    first, second = np.zeros((2, len(pairs), classes), dtype)
    for k, (i, j) in enumerate(pairs):
        first[k, i] = second[k, j] = 1
    votes = tf.matmul(wins, tf.constant(first)) + tf.matmul(scalar(1, x) - wins, tf.constant(second))
    if node.get("prob_a"):
        probabilities = _probabilities(node, scores, pairs, classes)
        return labelled(node, votes if classes > 2 else probabilities), transformed_scores(node, probabilities)
    if classes == 2:
        margins = tf.concat([-scores, scores], 1)
        positive = min(node.get("coefficients")) >= 0
        floor = scalar(0.5 if positive else 0.0, x)
        second_wins = tf.reduce_max(votes, 1) >= floor if positive else votes[:, 1] > votes[:, 0]
        chosen = tf.gather(labels, tf.cast(second_wins, tf.int32))
        return chosen, transformed_scores(node, margins)
    return labelled(node, votes), transformed_scores(node, scores)


def _pairs(weights: Array, counts: list[int]) -> tuple[list[tuple[int, int]], Array]:
    """Returns the pairs of classes, and the weights of support vectors [vectors, pairs] in the
    decision between each two.
    """
    starts = np.cumsum([0, *counts])
    pairs = [(i, j) for i in range(len(counts)) for j in range(i + 1, len(counts))]
    spread = np.zeros((int(starts[-1]), len(pairs)), weights.dtype)
    for k, (i, j) in enumerate(pairs):
        spread[starts[i] : starts[i + 1], k] = weights[j - 1, starts[i] : starts[i + 1]]
        spread[starts[j] : starts[j + 1], k] = weights[i, starts[j] : starts[j + 1]]
    return pairs, spread


def _probabilities(node: Node, scores: Tensor, pairs: list[tuple[int, int]], classes: int) -> Tensor:
    """Returns probabilities of classes from those of pairs (Wu, Lin, Weng, 2004), as libsvm
    finds them: by iteration.
    """
    a = tf.constant(np.array(node.get("prob_a"), scores.dtype.numpy))
    b = tf.constant(np.array(node.get("prob_b"), scores.dtype.numpy))
    each = tf.minimum(tf.maximum(scalar(1, scores) - tf.sigmoid(scores * a + b), 1e-7), 1 - 1e-7)
    columns: list[list[Tensor]] = [[tf.zeros_like(each[:, 0])] * classes for _ in range(classes)]
    for k, (i, j) in enumerate(pairs):
        columns[i][j], columns[j][i] = each[:, k], scalar(1, scores) - each[:, k]
    r = tf.stack([tf.stack(row, 1) for row in columns], 1)
    off = -r * tf.transpose(r, [0, 2, 1])
    diagonal = tf.reduce_sum(tf.square(r), 1)
    q = tf.linalg.set_diag(off, diagonal)
    limit = 0.005 / classes

    def step(i: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        qp = tf.linalg.matvec(q, p)
        pqp = tf.reduce_sum(p * qp, 1)
        done = tf.reduce_max(tf.abs(qp - pqp[:, None]), 1) < limit
        new = p
        for t in range(classes):
            change = (pqp - qp[:, t]) / q[:, t, t]
            unit = tf.one_hot(t, classes, dtype=p.dtype)
            pqp = (pqp + change * (change * q[:, t, t] + 2 * qp[:, t])) / tf.square(1 + change)
            new = (new + change[:, None] * unit) / (1 + change)[:, None]
            qp = (qp + change[:, None] * q[:, t]) / (1 + change)[:, None]
        return i + 1, tf.where_v2(done[:, None], p, new)

    start = tf.zeros_like(r[:, 0]) + scalar(1 / classes, scores)
    _, p = tf.while_loop(lambda i, _: i < max(100, classes), step, (tf.constant(0), start))
    return p

"""Products of matrices, and what is computed of whole matrices."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


@translates("MatMul")
def _matmul(node: Node, a: Tensor, b: Tensor) -> Tensor:
    left, right = node.rank(a), node.rank(b, "second input")
    if left == 1 and right == 1:
        return tf.reduce_sum(a * b)
    if left == 1:
        return tf.squeeze(matmul(tf.expand_dims(a, 0), b), -2)
    if right == 1:
        return tf.squeeze(matmul(a, tf.expand_dims(b, -1)), -1)
    return matmul(a, b)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Returns the product of matrices. Many of them by one matrix are a single product of all their rows."""
    rank = a.shape.ndims
    if b.shape.ndims != 2 or rank is None or rank <= 2:
        return tf.matmul(a, b)
    parts: list[Any] = shape_parts(a)
    rows = tf.matmul(tf.reshape(a, stacked([-1, parts[-1]], tf.int32)), b)
    return tf.reshape(rows, stacked([*parts[:-1], shape_parts(b)[1]], tf.int32))


@translates("Gemm")
def _gemm(node: Node, a: Tensor, b: Tensor, c: Tensor = None) -> Tensor:
    made = tf.matmul(a, b, bool(node.get("transA", 0)), bool(node.get("transB", 0)))
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if alpha != 1.0:
        made = made * scalar(alpha, made)
    if c is None:
        return made
    return made + (c if beta == 1.0 else c * scalar(beta, c))


@translates("Einsum")
def _einsum(node: Node, *inputs: Tensor) -> Tensor:
    return tf.einsum(node.get("equation").replace(" ", ""), *inputs)


@translates("Det")
def _det(node: Node, x: Tensor) -> Tensor:
    return tf.linalg.det(x)

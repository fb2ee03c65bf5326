"""Random numbers. A seed gives the numbers of this graph's generators, which are not those of other runtimes."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.elements import NATIVE, element_of
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def _seed(node: Node) -> int | None:
    seed = node.get("seed")
    return None if seed is None else int(seed) & 0x7FFFFFFF


def _drawn(node: Node, shape: Any, element: int) -> Tensor:
    """Returns numbers of a shape, normal or uniform by the name of the op."""
    dtype = NATIVE[element]
    wide = dtype if dtype in (tf.float32, tf.float64) else tf.float32
    if node.op.startswith("RandomNormal"):
        made = tf.random_normal(shape, node.get("mean", 0.0), node.get("scale", 1.0), wide, _seed(node))
    else:
        made = tf.random_uniform(shape, node.get("low", 0.0), node.get("high", 1.0), wide, _seed(node))
    return tf.cast(made, dtype)


@translates("RandomNormal", "RandomUniform")
def _random(node: Node) -> Tensor:
    return _drawn(node, node.get("shape"), node.get("dtype", 1))


@translates("RandomNormalLike", "RandomUniformLike")
def _random_like(node: Node, x: Tensor) -> Tensor:
    return _drawn(node, tf.shape(x), node.get("dtype", element_of(x.dtype)))


@translates("Bernoulli")
def _bernoulli(node: Node, x: Tensor) -> Tensor:
    drawn = tf.random_uniform(tf.shape(x), seed=_seed(node))
    return tf.cast(drawn < tf.cast(x, tf.float32), NATIVE[node.get("dtype", element_of(x.dtype))])


@translates("Multinomial")
def _multinomial(node: Node, x: Tensor) -> Tensor:
    drawn = tf.multinomial(tf.cast(x, tf.float32), node.get("sample_size", 1), _seed(node))
    return tf.cast(drawn, NATIVE[node.get("dtype", 6)])

"""Steps of optimizers, as ONNX's domain of training has them: many tensors at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import TRAINING, translates
from timberframe_onnx.translation.values import Tensor


def _each(inputs: tuple[Tensor, ...], kinds: int, step: Callable[..., tuple[Tensor, ...]]) -> list[Tensor]:
    """Applies a step to each tensor with its gradient and states, which come grouped by kind, as results do."""
    count = len(inputs) // kinds
    made = [step(*(inputs[k * count + i] for k in range(kinds))) for i in range(count)]
    return [result for group in zip(*made, strict=True) for result in group]


@translates("Momentum", domain=TRAINING)
def _momentum(node: Node, rate: Tensor, step: Tensor, *inputs: Tensor) -> list[Tensor]:
    alpha, beta = node.get("alpha"), node.get("beta")
    nesterov = node.get("mode") == "nesterov"

    def update(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        g = g + scalar(node.get("norm_coefficient"), x) * x
        factor = tf.where_v2(tf.reshape(step, []) > 0, scalar(beta, x), scalar(1, x))
        new = scalar(alpha, x) * v + factor * g
        return x - rate * (g + scalar(alpha, x) * new if nesterov else new), new

    return _each(inputs, 3, update)


@translates("Adagrad", domain=TRAINING)
def _adagrad(node: Node, rate: Tensor, step: Tensor, *inputs: Tensor) -> list[Tensor]:
    decayed = rate / (1 + tf.cast(step, rate.dtype) * scalar(node.get("decay_factor", 0.0), rate))

    def update(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        g = g + scalar(node.get("norm_coefficient", 0.0), x) * x
        new = h + g * g
        return x - decayed * g / (tf.sqrt(new) + scalar(node.get("epsilon", 1e-6), x)), new

    return _each(inputs, 3, update)


@translates("Adam", domain=TRAINING)
def _adam(node: Node, rate: Tensor, step: Tensor, *inputs: Tensor) -> list[Tensor]:
    alpha, beta = node.get("alpha", 0.9), node.get("beta", 0.999)

    def update(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        g = g + scalar(node.get("norm_coefficient", 0.0), x) * x
        first = scalar(alpha, x) * v + scalar(1 - alpha, x) * g
        second = scalar(beta, x) * h + scalar(1 - beta, x) * g * g
        times: Any = tf.cast(step, x.dtype)
        corrected = rate * tf.sqrt(1 - tf.pow(scalar(beta, x), times)) / (1 - tf.pow(scalar(alpha, x), times))
        factor = tf.where_v2(times > 0, corrected, tf.zeros_like(corrected) + rate)
        new = x - factor * first / (tf.sqrt(second) + scalar(node.get("epsilon", 1e-6), x))
        return (scalar(1 - node.get("norm_coefficient_post", 0.0), x)) * new, first, second

    return _each(inputs, 4, update)


@translates("Gradient", domain=TRAINING)
def _gradient(node: Node, *inputs: Tensor) -> list[Tensor]:
    """The derivatives of a value of the graph around by others of it; the names are those of the node's attributes."""
    target = node.scope.find(node.get("y"))
    by = list(inputs[: len(node.get("xs"))])
    made = tf.gradients(target, by)
    return [tf.zeros_like(x) if g is None else g for g, x in zip(made, by, strict=True)]

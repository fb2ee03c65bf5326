"""`tf.contrib.nn`: losses whose logits come first, dropout for self-normalising networks, a softplus with a scale."""

from __future__ import annotations

import sys
from typing import Any

from timberframe.api.arrays import shape
from timberframe.api.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from timberframe.api.framework import name_scope
from timberframe.api.random import random_uniform
from timberframe.boundary import guard
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = [
    "alpha_dropout", "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits", "scaled_softplus",
]  # fmt: skip

_SELU_AT_MINUS_INFINITY = -1.7580993408473766


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: Any = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits` with the logits first."""
    return softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: Any = None) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the logits first."""
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: Any = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the logits first."""
    return sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def alpha_dropout(
    x: Any, keep_prob: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for networks with `tf.nn.selu` (Klambauer et al. 2017).

    Elements are dropped to the least value of selu, and all are scaled and shifted then. keep_prob: the probability of
    keeping one, in (0, 1]. noise_shape: broadcasts against x, as that of `tf.nn.dropout`; None means x's.
    """
    if isinstance(keep_prob, int | float) and not 0 < keep_prob <= 1:
        raise InvalidArgumentError(f"alpha_dropout: keep_prob is {keep_prob}; it must be in (0, 1]")
    with name_scope(name, "alpha_dropout", [x]):
        given = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, int | float) and keep_prob == 1:
            return given
        kept_part: Any = convert_to_tensor(keep_prob, given.dtype, name="keep_prob")
        drawn = random_uniform(shape(given) if noise_shape is None else noise_shape, dtype=given.dtype, seed=seed)
        kept = apply_op("Less", [drawn, kept_part])
        low = _SELU_AT_MINUS_INFINITY
        scale = apply_op("Rsqrt", [kept_part + low**2 * kept_part * (1 - kept_part)])
        shift = -scale * low * (1 - kept_part)
        result: Tensor = apply_op("SelectV2", [kept, given, low]) * scale + shift
        result.set_shape(given.static_shape)
        return result


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Tensor:
    """alpha log(1 + exp(x / alpha)), at most `clip` where that is given; near relu (or relu6) for small alpha."""
    with name_scope(name, "scaled_softplus", [x, alpha]):
        given: Any = convert_to_tensor(x, name="x")
        scale = convert_to_tensor(alpha, given.dtype, name="alpha")
        result: Tensor = apply_op("Softplus", [given / scale]) * scale
        if clip is not None:
            result = apply_op("Minimum", [result, convert_to_tensor(clip, given.dtype, name="clip")])
        return result


guard([sys.modules[__name__]], "tf.contrib.nn")

"""Initializers and regularizers of `tf.contrib.layers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys, add_to_collection, get_collection, name_scope
from timberframe.api.initializers import Initializer, static_sizes
from timberframe.api.random import random_uniform, truncated_normal
from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


class variance_scaling_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Random numbers of variance factor / n (He et al. 2015 with the defaults).

    mode: n is the number of a unit's inputs (FAN_IN), outputs (FAN_OUT), or their mean (FAN_AVG). uniform: else from a
    normal distribution that is cut at two deviations, whose variance the factor 1.3 restores.
    """

    def __init__(
        self,
        factor: float = 2.0,
        mode: str = "FAN_IN",
        uniform: bool = False,
        seed: int | None = None,
        dtype: Any = float32,
    ) -> None:
        if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
            raise InvalidArgumentError(
                f"variance_scaling_initializer: mode is {mode!r}; FAN_IN, FAN_OUT or FAN_AVG is required"
            )
        self.factor, self.mode, self.uniform, self.seed, self.dtype = factor, mode, uniform, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        sizes = static_sizes(shape)
        window = math.prod(sizes[:-2])
        inputs, outputs = (sizes[-2] if len(sizes) > 1 else (sizes or (1,))[-1]) * window, (sizes or (1,))[-1] * window
        n = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2}[self.mode]
        if self.uniform:
            limit = math.sqrt(3 * self.factor / n)
            return random_uniform(shape, -limit, limit, dtype or self.dtype, self.seed)
        return truncated_normal(shape, 0.0, math.sqrt(1.3 * self.factor / n), dtype or self.dtype, self.seed)


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = float32
) -> variance_scaling_initializer:
    """Glorot and Bengio 2010: variance 2 / (inputs + outputs)."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a function of weights: scale times the sum of their magnitudes; None for scale 0."""
    return _regularizer("l1_regularizer", scale, scope, lambda w: apply_op("Sum", [apply_op("Abs", [w]), _axes(w)]))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a function of weights: scale times half the sum of their squares; None for scale 0."""
    return _regularizer("l2_regularizer", scale, scope, lambda w: apply_op("L2Loss", [w]))


def _axes(weights: Any) -> list[int]:
    return list(range(convert_to_tensor(weights).shape.ndims or 0))


def _regularizer(name: str, scale: float, scope: str | None, norm: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not scale >= 0:
        raise InvalidArgumentError(f"{name}: scale is {scale}; it must not be negative")
    if scale == 0:
        return lambda weights: None

    def regularize(weights: Any) -> Any:
        with name_scope(scope, name):
            return apply_op("Mul", [norm(weights), scale])

    return regularize


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns the sum of `l1_regularizer` and `l2_regularizer`."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Any], scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a function of weights: the sum of several regularizers; those that are None are left out."""
    given = [r for r in regularizer_list if r is not None]

    def regularize(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer"):
            losses = [x for x in (r(weights) for r in given) if x is not None]
            return apply_op("AddN", [losses]) if losses else None

    return regularize


def apply_regularization(regularizer: Callable[[Any], Any], weights_list: Sequence[Any] | None = None) -> Any:
    """Returns the sum of a regularizer over variables (GraphKeys.WEIGHTS for None), added to
    the regularization losses.
    """
    weights = get_collection(GraphKeys.WEIGHTS) if weights_list is None else list(weights_list)
    with name_scope("get_regularization_penalty"):
        losses = [x for x in (regularizer(w) for w in weights) if x is not None]
        total = apply_op("AddN", [losses]) if losses else convert_to_tensor(0.0)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total

"""Batch renormalisation: batch normalisation that training, too, does by moving means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from timberframe.api.arrays import identity, stop_gradient
from timberframe.api.constants import ones_like, zeros_like
from timberframe.api.selection import clip_by_value
from timberframe.api.unary import relu, sqrt, square
from timberframe.layers.base import Layer
from timberframe.layers.switch import smart_cond
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op

_BOUNDS = ("rmin", "rmax", "dmax")


class Renormalization:
    """What a batch's mean m and deviation s become while training (Ioffe 2017): x * r + d after normalisation.

    r = s / S and d = (m - M) / S, M and S being `renorm_mean` and `renorm_stddev`, which each step moves towards m and
    s by 1 - momentum. They have no gradient. clipping: may have bounds rmin and rmax of r, and dmax of |d|.
    """

    def __init__(self, label: str, clipping: Mapping[str, Any] | None, momentum: float, epsilon: float) -> None:
        self._bounds = dict(clipping or {})
        if unknown := sorted(set(self._bounds) - set(_BOUNDS)):
            raise InvalidArgumentError(f"{label}: renorm_clipping has {unknown}; its keys are {', '.join(_BOUNDS)}")
        self._momentum, self._epsilon = momentum, epsilon

    def build(self, layer: Layer, shape: list[int], dtype: Any, mean: Any, variance: Any) -> None:
        """Makes the variables of a layer. mean, variance: initializers of its moving means."""

        def deviation(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            made = variance() if isinstance(variance, type) else variance
            return sqrt(made(shape, dtype))

        self._moving_stddev = layer.add_weight("moving_stddev", shape, dtype, deviation, trainable=False)
        self._mean = layer.add_weight("renorm_mean", shape, dtype, mean, trainable=False)
        self._stddev = layer.add_weight("renorm_stddev", shape, dtype, deviation, trainable=False)

    def correction(self, mean: Any, variance: Any, training: Any) -> tuple[Any, Any]:
        """r and d; 1 and 0 while not training."""
        largest: Any = apply_op("Maximum", [self._stddev.value(), math.sqrt(self._epsilon)])
        r, d = sqrt(variance + self._epsilon) / largest, (mean - self._mean.value()) / largest
        least, most, shift = (self._bounds.get(key) for key in _BOUNDS)
        if least is not None:
            r = apply_op("Maximum", [r, least])
        if most is not None:
            r = apply_op("Minimum", [r, most])
        if shift is not None:
            d = clip_by_value(d, -shift, shift)
        return (
            stop_gradient(smart_cond(training, lambda: r, lambda: ones_like(r))),
            stop_gradient(smart_cond(training, lambda: d, lambda: zeros_like(d))),
        )

    def updates(self, layer: Any, mean: Any, variance: Any, training: Any, move: Callable[..., Any]) -> list[Any]:
        """Returns what a step changes but for the moving mean.

        move(variable, value, momentum): moves a variable towards a value while training, and returns it.
        """
        stddev = sqrt(variance + self._epsilon)

        def squared() -> Any:
            moved = move(self._moving_stddev, stddev, layer.momentum)
            return layer.moving_variance.assign(relu(square(moved) - self._epsilon))

        return [
            smart_cond(training, squared, lambda: identity(layer.moving_variance)),
            move(self._mean, mean, self._momentum),
            move(self._stddev, stddev, self._momentum),
        ]

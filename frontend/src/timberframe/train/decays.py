"""Learning rates that change with the global step.

Each function takes the first learning rate and the step (a variable, tensor or number) and returns a tensor in the
learning rate's dtype. They compute what TensorFlow's functions of these names compute, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from timberframe.api.calls import call_op
from timberframe.api.framework import name_scope
from timberframe.api.random import random_normal
from timberframe.api.selection import cast
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


def _require_step(global_step: Any, function: str) -> None:
    if global_step is None:
        raise InvalidArgumentError(f"tf.train.{function}: global_step is None; a step is required")


def _rate(learning_rate: Any, global_step: Any, function: str) -> Any:
    """Returns the rate to begin with as a tensor; an error without a step to make it smaller by."""
    _require_step(global_step, function)
    return convert_to_tensor(learning_rate, name="learning_rate")


def _fraction(global_step: Any, decay_steps: Any, staircase: bool, rate: Any, function: str) -> Any:
    """Returns how many times `decay_steps` have passed, whole times with staircase."""
    _require_step(global_step, function)
    passed = cast(global_step, rate.dtype) / cast(decay_steps, rate.dtype)
    return call_op("Floor", passed) if staircase else passed


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate * decay_rate ^ (global_step / decay_steps); the exponent is rounded down with staircase."""
    with name_scope(name, "ExponentialDecay"):
        rate: Any = convert_to_tensor(learning_rate, name="learning_rate")
        passed = _fraction(global_step, decay_steps, staircase, rate, "exponential_decay")
        return rate * call_op("Pow", cast(decay_rate, rate.dtype), passed)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate * e ^ (-decay_rate * global_step / decay_steps), rounded down with staircase."""
    natural = call_op("Exp", call_op("Neg", convert_to_tensor(decay_rate)))
    return exponential_decay(learning_rate, global_step, decay_steps, natural, staircase, name or "NaturalExpDecay")


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """learning_rate / (1 + decay_rate * global_step / decay_steps), rounded down with staircase."""
    with name_scope(name, "InverseTimeDecay"):
        rate: Any = convert_to_tensor(learning_rate, name="learning_rate")
        passed = _fraction(global_step, decay_steps, staircase, rate, "inverse_time_decay")
        return rate / (1 + cast(decay_rate, rate.dtype) * passed)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """From learning_rate to end_learning_rate within decay_steps, along (1 - step / decay_steps) ^ power.

    cycle: once there, begins again over a multiple of decay_steps; else it stays there.
    """
    with name_scope(name, "PolynomialDecay"):
        rate = _rate(learning_rate, global_step, "polynomial_decay")
        step, steps = cast(global_step, rate.dtype), cast(decay_steps, rate.dtype)
        if cycle:
            multiple = call_op("Ceil", step / steps)
            steps = steps * call_op("SelectV2", call_op("Equal", step, 0), convert_to_tensor(1, rate.dtype), multiple)
        else:
            step = call_op("Minimum", step, steps)
        end = cast(end_learning_rate, rate.dtype)
        remaining = call_op("Pow", 1 - step / steps, cast(power, rate.dtype))
        return (rate - end) * remaining + end


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None
) -> Any:
    """From learning_rate to alpha times it within decay_steps, along half a cosine (Loshchilov and Hutter 2017)."""
    with name_scope(name, "CosineDecay"):
        rate = _rate(learning_rate, global_step, "cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        passed = call_op("Minimum", cast(global_step, rate.dtype), steps) / steps
        return rate * ((1 - alpha) * _half_cosine(passed) + alpha)


def _half_cosine(fraction: Any) -> Any:
    cosine: Any = call_op("Cos", math.pi * fraction)
    return 0.5 * (1.0 + cosine)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Any:
    """Cosine decays one after the other, each t_mul times as long and beginning m_mul times as high.

    Loshchilov and Hutter 2017, SGDR: stochastic gradient descent with warm restarts. t_mul and m_mul are numbers.
    """
    with name_scope(name, "SGDRDecay"):
        rate = _rate(learning_rate, global_step, "cosine_decay_restarts")
        passed = cast(global_step, rate.dtype) / cast(first_decay_steps, rate.dtype)
        if t_mul == 1.0:
            restart = call_op("Floor", passed)
            fraction = passed - restart
        else:  # the lengths are a geometric series: the number of restarts is a logarithm
            logarithm: Any = call_op("Log", 1.0 - passed * (1.0 - t_mul))
            restart = call_op("Floor", logarithm / math.log(t_mul))
            grown: Any = call_op("Pow", convert_to_tensor(t_mul, rate.dtype), restart)
            fraction = (passed - (1.0 - grown) / (1.0 - t_mul)) / grown
        height = call_op("Pow", convert_to_tensor(m_mul, rate.dtype), restart)
        return rate * ((1 - alpha) * (height * _half_cosine(fraction)) + alpha)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """((alpha + a straight fall to 0) * num_periods of a cosine + beta) * learning_rate, within decay_steps.

    Bello et al. 2017, Neural optimizer search with reinforcement learning.
    """
    with name_scope(name, "LinearCosineDecay"):
        rate = _rate(learning_rate, global_step, "linear_cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        passed = call_op("Minimum", cast(global_step, rate.dtype), steps) / steps
        return rate * ((alpha + 1.0 - passed) * _half_cosine(2.0 * num_periods * passed) + beta)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """`linear_cosine_decay` with normal noise on the straight fall, of variance initial_variance / (1 + step)^decay.

    variance_decay: that power. Bello et al. 2017, Neural optimizer search with reinforcement learning.
    """
    with name_scope(name, "NoisyLinearCosineDecay"):
        rate = _rate(learning_rate, global_step, "noisy_linear_cosine_decay")
        steps = cast(decay_steps, rate.dtype)
        step: Any = call_op("Minimum", cast(global_step, rate.dtype), steps)
        shrunk: Any = call_op("Pow", 1.0 + step, variance_decay)
        passed, variance = step / steps, initial_variance / shrunk
        fall = 1.0 - passed + random_normal([], stddev=call_op("Sqrt", variance), dtype=rate.dtype)
        return rate * ((alpha + fall) * _half_cosine(2.0 * num_periods * passed) + beta)


def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Any:
    """values[0] while x <= boundaries[0], values[i] while boundaries[i-1] < x <= boundaries[i], the last one above.

    Raises InvalidArgumentError unless there is one value more than boundaries.
    """
    if len(boundaries) != len(values) - 1:
        raise InvalidArgumentError(
            f"tf.train.piecewise_constant: {len(boundaries)} boundaries and {len(values)} values given; "
            "there must be one value more"
        )
    with name_scope(name, "PiecewiseConstant"):
        at = convert_to_tensor(x)
        chosen = convert_to_tensor(values[-1], name="value")
        for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
            limit = cast(convert_to_tensor(boundary), at.dtype)
            below = call_op("LessEqual", at, limit)
            chosen = call_op("SelectV2", below, convert_to_tensor(value, chosen.dtype), chosen)
        return chosen


piecewise_constant_decay = piecewise_constant

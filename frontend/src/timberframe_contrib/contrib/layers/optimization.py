"""`tf.contrib.layers.optimize_loss`: a training step in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe import summary, train
from timberframe.api.arrays import identity
from timberframe.api.composites import clip_by_global_norm, global_norm
from timberframe.api.framework import GraphKeys, control_dependencies, convert_to_tensor, get_collection
from timberframe.api.initializers import constant_initializer
from timberframe.api.random import random_normal
from timberframe.api.variable_collections import trainable_variables
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "Momentum": lambda learning_rate: train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}
"""Optimizers by the names that `optimize_loss` knows them by."""

OPTIMIZER_SUMMARIES = [
    "learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm",
]  # fmt: skip
"""What `optimize_loss` can write as summaries."""


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    variables: Sequence[Any] | None = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """Returns the loss, whose evaluation makes a training step.

    global_step: the global one if None. learning_rate: a number, for which there is the variable `learning_rate`, or a
    scalar tensor; learning_rate_decay_fn(rate, global_step) makes another one of it. optimizer: a name of
    OPTIMIZER_CLS_NAMES, a class, an object, or a function of the rate. gradient_noise_scale: the deviation of noise
    that is added to gradients. gradient_multipliers: factors by variables or their names. clip_gradients: the greatest
    global norm, or a function of pairs (gradient, variable). update_ops: run before, GraphKeys.UPDATE_OPS if None.
    variables: what is trained. summaries: names of OPTIMIZER_SUMMARIES; the loss, the rate and the norm if None. The
    scope is `OptimizeLoss`.
    """
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        step = train.get_global_step() if global_step is None else global_step
        before = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
        with control_dependencies(before):
            value = identity(convert_to_tensor(loss)) if before else convert_to_tensor(loss)
        rate = _rate(learning_rate, learning_rate_decay_fn, step)
        chosen = _optimizer(optimizer, rate)
        wanted = ["learning_rate", "loss", "global_gradient_norm"] if summaries is None else summaries
        unknown = [s for s in wanted if s not in OPTIMIZER_SUMMARIES]
        if unknown:
            raise InvalidArgumentError(
                f"optimize_loss: summaries are {unknown}; {', '.join(OPTIMIZER_SUMMARIES)} are possible"
            )
        pairs = chosen.compute_gradients(
            value,
            trainable_variables() if variables is None else list(variables),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        pairs = [(g, v) for g, v in pairs if g is not None]
        if gradient_noise_scale is not None:
            pairs = [(_noisy(convert_to_tensor(g), gradient_noise_scale), v) for g, v in pairs]
        if gradient_multipliers is not None:
            pairs = [(_times(g, v, gradient_multipliers), v) for g, v in pairs]
        _write_norm(wanted, "gradient_norm", pairs)
        pairs = _clipped(pairs, clip_gradients)
        _write(wanted, value, rate, pairs)
        if clip_gradients is not None:
            _write_norm(wanted, "clipped_gradient_norm", pairs)
        applied = chosen.apply_gradients(pairs, global_step=step if increment_global_step else None, name="train")
        with control_dependencies([applied]):
            return identity(value)


def _rate(given: Any, decay: Callable[[Any, Any], Any] | None, step: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, int | float):
        if given < 0:
            raise InvalidArgumentError(f"optimize_loss: learning_rate is {given}; it must not be negative")
        rate: Any = get_variable("learning_rate", [], float32, constant_initializer(given), trainable=False)
    else:
        rate = given
    if decay is None:
        return rate
    if step is None:
        raise InvalidArgumentError("optimize_loss: learning_rate_decay_fn is given without a global step; it needs one")
    return decay(rate, step)


def _optimizer(given: Any, rate: Any) -> Any:
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise InvalidArgumentError(
                f"optimize_loss: optimizer is {given!r}; {', '.join(OPTIMIZER_CLS_NAMES)} are known"
            )
        given = OPTIMIZER_CLS_NAMES[given]
    elif not callable(given):
        if not isinstance(given, train.Optimizer):
            raise InvalidArgumentError(f"optimize_loss: optimizer is {given!r}; an optimizer is required")
        return given
    elif not isinstance(given, type):
        return given(rate) if rate is not None else given()
    if rate is None:
        raise InvalidArgumentError("optimize_loss: learning_rate is None; an optimizer that is to be made needs it")
    return given(learning_rate=rate)


def _noisy(gradient: Any, scale: float) -> Any:
    noise: Any = random_normal(gradient.shape.as_list(), dtype=gradient.dtype)
    return gradient + scale * noise


def _times(gradient: Any, variable: Any, factors: Mapping[Any, Any]) -> Any:
    factor = next((f for key, f in factors.items() if key is variable or key == variable.name), None)
    return gradient if factor is None else convert_to_tensor(gradient) * factor


def _clipped(pairs: list[Any], clip: Any) -> list[Any]:
    if clip is None:
        return pairs
    if callable(clip):
        return list(clip(pairs))
    clipped, _ = clip_by_global_norm([g for g, _ in pairs], clip)
    return list(zip(clipped, [v for _, v in pairs], strict=True))


def _write(wanted: Sequence[str], loss: Any, rate: Any, pairs: Sequence[Any]) -> None:
    """Writes the summaries of a step."""
    if "loss" in wanted:
        summary.scalar("loss", loss)
    if "learning_rate" in wanted and rate is not None:
        summary.scalar("learning_rate", rate)
    for gradient, variable in pairs:
        name = variable.name.replace(":", "_")
        if "gradients" in wanted:
            summary.histogram(f"gradients/{name}", gradient.values if isinstance(gradient, IndexedSlices) else gradient)
        if "gradient_norm" in wanted:
            summary.scalar(f"gradient_norm/{name}", global_norm([gradient]))


def _write_norm(wanted: Sequence[str], name: str, pairs: Sequence[Any]) -> None:
    if "global_gradient_norm" in wanted or "gradient_norm" in wanted:
        summary.scalar(f"global_norm/{name}", global_norm([g for g, _ in pairs]))

"""The loss of sequences of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import reshape, shape
from timberframe.api.cross_entropy import sparse_softmax_cross_entropy_with_logits
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.reduction import count_nonzero, reduce_sum
from timberframe.api.selection import cast
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the weighted cross entropy of sequences.

    logits: [batch, time, classes]. targets: the right classes, [batch, time]. weights: of each step, [batch, time].
    Along time, and along the batch, the losses are averaged (the sum divided by the sum of the weights), summed (and
    divided by the number of weights that are not zero, as TensorFlow does), or kept; over both axes the same is done.
    softmax_loss_function: called with labels and logits by name, in place of the cross entropy.
    """
    _check(logits, targets, weights)
    _check_reduction("timesteps", average_across_timesteps, sum_over_timesteps)
    _check_reduction("batch", average_across_batch, sum_over_batch)
    if (average_across_batch and sum_over_timesteps) or (sum_over_batch and average_across_timesteps):
        raise InvalidArgumentError(
            "tf.contrib.seq2seq.sequence_loss: one axis is averaged and the other one summed; reduce both in one way"
        )
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        logits, weights = convert_to_tensor(logits), convert_to_tensor(weights)
        sizes = shape(logits)
        flat, labels = reshape(logits, [-1, sizes[2]]), reshape(targets, [-1])
        losses: Any = (softmax_loss_function or sparse_softmax_cross_entropy_with_logits)(labels=labels, logits=flat)
        losses = reshape(losses * reshape(weights, [-1]), sizes[:2])
        axes = [
            axis
            for axis, reduced in (
                (0, average_across_batch or sum_over_batch),
                (1, average_across_timesteps or sum_over_timesteps),
            )
            if reduced
        ]
        if not axes:
            return convert_to_tensor(losses)
        averaged = average_across_timesteps or average_across_batch
        parts = reduce_sum(weights, axes) if averaged else cast(count_nonzero(weights, axes), losses.dtype)
        averages: Tensor = apply_op("DivNoNan", [reduce_sum(losses, axes), parts])
        return averages


def _check(logits: Any, targets: Any, weights: Any) -> None:
    wanted = {"logits": (logits, 3), "targets": (targets, 2), "weights": (weights, 2)}
    for what, (given, rank) in wanted.items():
        found = convert_to_tensor(given).static_shape
        if found is not None and len(found) != rank:
            raise InvalidArgumentError(
                f"tf.contrib.seq2seq.sequence_loss: {what} has shape {format_shape(found)}; rank {rank} is required"
            )


def _check_reduction(axis: str, averaged: bool, summed: bool) -> None:
    if averaged and summed:
        raise InvalidArgumentError(
            f"tf.contrib.seq2seq.sequence_loss: average_across_{axis} and sum_over_{axis} are set; set one of them"
        )

"""Losses of lists of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.arithmetic import add_n
from timberframe.api.arrays import reshape, shape
from timberframe.api.cross_entropy import sparse_softmax_cross_entropy_with_logits
from timberframe.api.framework import name_scope
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe_core.errors import InvalidArgumentError


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted cross entropy of each sequence, [batch].

    logits: for each step [batch, classes]. targets: for each the right classes, [batch]. weights: for each [batch];
    average_across_timesteps: the sum of the losses is divided by that of the weights.
    """
    if not len(targets) == len(logits) == len(weights):
        raise InvalidArgumentError(
            f"tf.contrib.legacy_seq2seq: {len(logits)} logits, {len(targets)} targets and {len(weights)} weights; as "
            "many of each are required"
        )
    with name_scope(name, "sequence_loss_by_example"):
        function = softmax_loss_function or _cross_entropy
        losses: Any = add_n(
            [
                function(labels=labels, logits=x) * weight
                for x, labels, weight in zip(logits, targets, weights, strict=True)
            ]
        )
        if not average_across_timesteps:
            return losses
        total: Any = add_n(list(weights))
        return losses / (total + 1e-12)  # without weights the loss is 0


def _cross_entropy(labels: Any, logits: Any) -> Any:
    return sparse_softmax_cross_entropy_with_logits(labels=reshape(labels, [-1]), logits=logits)


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the sum of `sequence_loss_by_example`, with average_across_batch divided by the number of sequences."""
    with name_scope(name, "sequence_loss"):
        losses: Any = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        total: Any = reduce_sum(losses)
        return total / cast(shape(targets[0])[0], total.dtype) if average_across_batch else total

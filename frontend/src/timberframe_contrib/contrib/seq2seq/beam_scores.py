"""Scores of a beam search's continuations (Wu et al. 2016, section 7)."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import expand_dims, reshape, shape, stack
from timberframe.api.constants import ones_like
from timberframe.api.framework import convert_to_tensor
from timberframe.api.indexing import one_hot
from timberframe.api.reduction import reduce_mean, reduce_sum
from timberframe.api.selection import cast, where_v2
from timberframe_contrib.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor


def only_end_after_end(log_probs: Any, end_token: Any, finished: Tensor) -> Any:
    """Logarithms of probabilities [batch, beams, classes], where finished beams can have but end_token."""
    least = float(log_probs.dtype.min)
    row = one_hot(end_token, shape(log_probs)[2], 0.0, least, dtype=log_probs.dtype)
    return where_v2(expand_dims(finished, 2), reshape(row, [1, 1, -1]), log_probs)


def lengths_after(lengths: Tensor, finished: Tensor, end_token: Any, classes: Any) -> Any:
    """Returns the length of each continuation [batch, beams, classes]: end_token does not count."""
    added = one_hot(end_token, classes, 0, 1, dtype=int64)
    going_on = cast(apply_op("LogicalNot", [finished]), int64)
    new: Any = expand_dims(going_on, 2)
    return expand_dims(lengths, 2) + new * reshape(added, [1, 1, -1])


def scores(
    log_probs: Any, lengths: Tensor, length_weight: Any, coverage_weight: Any, finished: Tensor, watched: Any
) -> Any:
    """Returns what continuations are chosen by.

    The logarithm of the probability over ((5 + length) / 6) ** length_weight; for finished beams more for what they
    watched of the memory. watched: [batch, beams, memory], the sums of a beam's weights.
    """
    result = log_probs
    if not _is_zero(length_weight):
        power = cast(convert_to_tensor(length_weight), log_probs.dtype)
        result = result / apply_op("Pow", [(5.0 + cast(lengths, log_probs.dtype)) / 6.0, power])
    if watched is None:
        return result
    # What nothing looked at at all is past the end of its row.
    within = where_v2(apply_op("Equal", [watched, 0.0]), ones_like(watched), watched)
    penalty = reduce_sum(apply_op("Log", [apply_op("Minimum", [within, 1.0])]), 2) * cast(finished, log_probs.dtype)
    weighted: Any = expand_dims(penalty * coverage_weight, 2)
    return result + weighted


def attention_weights(state: Any, coverage_weight: Any) -> Any:
    """Returns the weights of the memory in a cell's state, the mean of all that it has; None
    without a coverage penalty.
    """
    if _is_zero(coverage_weight):
        return None
    found = _weights_in(state)
    if not found:
        raise InvalidArgumentError(
            "BeamSearchDecoder: coverage_penalty_weight is set and the cell's state has no alignments; the cell must "
            "be an AttentionWrapper"
        )
    return found[0] if len(found) == 1 else reduce_mean(stack(found), 0)


def _weights_in(state: Any) -> list[Any]:
    if isinstance(state, AttentionWrapperState):
        weights = state.alignments
        return [reduce_mean(stack(list(weights)), 0)] if isinstance(weights, list | tuple) else [weights]
    if isinstance(state, list | tuple):
        return [found for part in state for found in _weights_in(part)]
    return []


def _is_zero(weight: Any) -> bool:
    return isinstance(weight, int | float) and weight == 0

"""`tf.contrib.crf`: linear chains of tags as conditional random fields (Lafferty, McCallum and Pereira 2001).

The score of a sequence of tags is the sum of the score of each step's tag (`inputs`, [batch, steps, tags]) and of each
pair of tags that follow each other (`transition_params`, [from, to]). What is past a row's length does not count.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from timberframe.api.arrays import concat, expand_dims, shape, squeeze, stack
from timberframe.api.constants import zeros_like
from timberframe.api.framework import convert_to_tensor
from timberframe.api.indexing import gather, gather_nd, reverse_sequence, sequence_mask
from timberframe.api.reduction import argmax, reduce_logsumexp, reduce_max, reduce_sum
from timberframe.api.selection import cast, where
from timberframe.api.variable_scope import get_variable
from timberframe.boundary import guard
from timberframe.recurrent.base import UnitsCell
from timberframe.recurrent.dynamic import dynamic_rnn
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

__all__ = [
    "CrfDecodeBackwardRnnCell", "CrfDecodeForwardRnnCell", "CrfForwardRnnCell", "crf_binary_score", "crf_decode",
    "crf_log_likelihood", "crf_log_norm", "crf_multitag_sequence_score", "crf_sequence_score", "crf_unary_score",
    "viterbi_decode",
]  # fmt: skip


class _ForwardCell(UnitsCell):
    """Base of cells that go along a sequence, whose state is a number for each tag. transition_params: [tags, tags]."""

    def __init__(self, transition_params: Any) -> None:
        self._transitions: Any = expand_dims(transition_params, 0)
        super().__init__(_number_of_tags(self._transitions))


class CrfForwardRnnCell(_ForwardCell):
    """A step of the forward algorithm: log of the summed exp(score) of all beginnings that end in each tag.

    The state is [batch, tags], and the output is the next state.
    """

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the next sums, from the scores of a step's tags and the sums so far."""
        sums = inputs + reduce_logsumexp(expand_dims(state, 2) + self._transitions, [1])
        return sums, sums


class CrfDecodeForwardRnnCell(_ForwardCell):
    """A step of Viterbi's algorithm: the best score of the beginnings that end in each tag.

    The state is these scores, [batch, tags]; the output the tag before each tag in its best beginning, int32.
    """

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the best tags before, and the next scores."""
        pairs = expand_dims(state, 2) + self._transitions
        return cast(argmax(pairs, 1), int32), inputs + reduce_max(pairs, [1])


class CrfDecodeBackwardRnnCell(UnitsCell):
    """A step back along the best sequence: from a tag, [batch, 1], to the one before it.

    The inputs are what `CrfDecodeForwardRnnCell` put out, the last step first. num_tags is TensorFlow's and changes
    nothing.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__(1)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the tag before, as output and as state."""
        before = gather(inputs, state, axis=1, batch_dims=1)
        return before, before


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """Returns the sum of the scores of the steps' tags, [batch]. tag_indices: [batch, steps]."""
    scores = _scores(inputs, "crf_unary_score")
    mask = _mask(sequence_lengths, scores)
    tags = _tags(tag_indices) * cast(mask, int32)
    chosen = squeeze(gather(scores, expand_dims(tags, 2), axis=2, batch_dims=2), [2])
    return reduce_sum(where(mask, chosen, zeros_like(chosen)), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """Returns the sum of the scores of the pairs of tags that follow each other, [batch].

    tag_indices: [batch, steps].
    """
    tags = _tags(tag_indices)
    mask = _mask(sequence_lengths, tags)
    counted = tags * cast(mask, int32)
    pairs = stack([counted[:, :-1], counted[:, 1:]], -1)
    chosen = gather_nd(transition_params, pairs)
    return reduce_sum(where(mask[:, 1:], chosen, zeros_like(chosen)), 1)


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """Returns the scores of sequences of tags, [batch]; 0 for rows of length 0."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    pairs = crf_binary_score(tag_indices, sequence_lengths, transition_params)
    result: Tensor = apply_op("AddV2", [unary, pairs])
    return result


def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """log of the summed exp(score) of all sequences of allowed tags, [batch].

    tag_bitmap: whether each step may have each tag, bool [batch, steps, tags].
    """
    scores = _scores(inputs, "crf_multitag_sequence_score")
    forbidden = apply_op("Fill", [shape(scores), cast(-np.inf, scores.dtype)])
    return crf_log_norm(where(convert_to_tensor(tag_bitmap), scores, forbidden), sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """log of the summed exp(score) of all sequences of tags, [batch]; 0 for rows of length 0."""
    scores = _scores(inputs, "crf_log_norm")
    lengths = _lengths(sequence_lengths)
    cell = CrfForwardRnnCell(transition_params)
    _, last = dynamic_rnn(cell, _after_first(scores), _without_first(lengths), scores[:, 0], scores.dtype)
    norm = reduce_logsumexp(last, [1])
    return where(apply_op("LessEqual", [lengths, 0]), zeros_like(norm), norm)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """Returns the log-likelihood of sequences of tags, [batch], and the scores of pairs of tags, [tags, tags].

    transition_params: those scores; if None, a variable `transitions`.
    """
    scores = _scores(inputs, "crf_log_likelihood")
    if transition_params is None:
        transition_params = get_variable("transitions", [_number_of_tags(scores)] * 2, scores.dtype)
    score = crf_sequence_score(scores, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(scores, sequence_lengths, transition_params)
    return apply_op("Sub", [score, norm]), transition_params


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    """Returns the best sequences of tags, int32 [batch, steps], and their scores, [batch].

    Tags past a row's length are 0.
    """
    scores = _scores(potentials, "crf_decode")
    lengths = _lengths(sequence_length)
    steps = _without_first(lengths)
    forward = CrfDecodeForwardRnnCell(transition_params)
    before, last = dynamic_rnn(forward, _after_first(scores), steps, scores[:, 0], int32)
    end = expand_dims(cast(argmax(last, 1), int32), 1)
    backward = CrfDecodeBackwardRnnCell(_number_of_tags(scores))
    tags, _ = dynamic_rnn(backward, reverse_sequence(before, steps, 1), steps, end, int32)
    decoded = reverse_sequence(concat([end, squeeze(tags, [2])[:, :-1]], 1), lengths, 1)
    return decoded, reduce_max(last, 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """Returns the best sequence of tags of one row of scores, [steps, tags], and its score;
    computed by NumPy at once.
    """
    scores, transitions = np.asarray(score), np.asarray(transition_params)
    if scores.ndim != 2 or not len(scores) or transitions.shape != (scores.shape[1],) * 2:
        raise InvalidArgumentError(
            f"tf.contrib.crf.viterbi_decode: score has shape {list(scores.shape)} and transition_params "
            f"{list(transitions.shape)}; [steps, tags] and [tags, tags] are required"
        )
    best, before = scores[0], []
    for step in scores[1:]:
        pairs = best[:, None] + transitions
        before.append(pairs.argmax(0))
        best = step + pairs.max(0)
    path = [int(best.argmax())]
    for tags in reversed(before):
        path.append(int(tags[path[-1]]))
    return path[::-1], best.max()


def _scores(inputs: Any, function: str) -> Tensor:
    scores = convert_to_tensor(inputs)
    known = scores.static_shape
    if known is not None and (len(known) != 3 or known[2] is None):
        raise InvalidArgumentError(
            f"tf.contrib.crf.{function}: inputs are {format_shape(known)}; [batch, steps, tags] with a known number of "
            "tags is required"
        )
    return scores


def _number_of_tags(scores: Tensor) -> int:
    size: int = scores.shape[-1].value
    return size


def _tags(tag_indices: Any) -> Tensor:
    tags: Tensor = cast(convert_to_tensor(tag_indices), int32)
    return tags


def _lengths(sequence_lengths: Any) -> Tensor:
    lengths: Tensor = cast(convert_to_tensor(sequence_lengths), int32)
    return lengths


def _after_first(scores: Tensor) -> Tensor:
    """Returns the steps after the first, and one that no length reaches: a loop without a
    step has no outputs to stack.
    """
    return concat([scores[:, 1:], scores[:, :1]], 1)


def _without_first(lengths: Tensor) -> Tensor:
    """Returns the number of steps after the first."""
    result: Tensor = apply_op("Maximum", [apply_op("Sub", [lengths, 1]), 0])
    return result


def _mask(sequence_lengths: Any, steps: Tensor) -> Tensor:
    """Returns whether a row has a step. steps: [batch, steps, ...]."""
    return sequence_mask(_lengths(sequence_lengths), shape(steps)[1])


guard([sys.modules[__name__]], "tf.contrib.crf")

"""Attention that never goes back in its memory (Raffel et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.arrays import concat, shape, transpose
from timberframe.api.constants import ones, zeros
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.functional import scan
from timberframe.api.indexing import one_hot
from timberframe.api.initializers import constant_initializer
from timberframe.api.random import random_normal
from timberframe.api.reduction import cumprod, cumsum
from timberframe.api.selection import cast, clip_by_value
from timberframe.api.unary import exp, log, sigmoid
from timberframe.api.variable_scope import get_variable
from timberframe_contrib.contrib.seq2seq.mechanisms import (
    BahdanauAttention,
    LuongAttention,
    Probability,
    ScoredAttention,
)
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError

_MODES = ("recursive", "parallel", "hard")


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`tf.cumprod` of numbers in [0, 1], by the sum of their logarithms, which underflows later."""
    with name_scope(None, "SafeCumprod", [x]):
        values = convert_to_tensor(x)
        least = float(np.finfo(values.dtype.as_numpy_dtype).tiny)
        return exp(cumsum(log(clip_by_value(values, least, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """Returns the weights of a memory's steps, which never go back.

    p_choose_i: [batch, time], the probability of stopping at each step. previous_attention: [batch, time], the weights
    before. mode: "recursive" is exact and takes a loop; "parallel" takes none, and is inexact for long memories and for
    probabilities next to 0 and 1; "hard" is for probabilities that are 0 or 1.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"monotonic_attention: mode is {mode!r}; {', '.join(_MODES)} are possible")
    choosing: Any = convert_to_tensor(p_choose_i)
    before: Any = convert_to_tensor(previous_attention)
    if mode == "hard":
        reached = choosing * cumsum(before, axis=1)
        return reached * cumprod(1 - reached, axis=1, exclusive=True)
    if mode == "parallel":
        passing = safe_cumprod(1 - choosing, axis=1, exclusive=True)
        return choosing * passing * cumsum(before / clip_by_value(passing, 1e-10, 1.0), axis=1)
    known = choosing.shape.as_list()[0]
    batch = shape(choosing)[0] if known is None else known
    passing = concat([ones([batch, 1], choosing.dtype), 1 - choosing[:, :-1]], 1)
    arriving = scan(
        lambda x, given: given[0] * x + given[1],
        [transpose(passing), transpose(before)],
        zeros([batch], choosing.dtype),
    )
    return choosing * transpose(arriving)


def _probability(noise: float, seed: int | None, mode: str) -> Probability:
    """Returns weights of scores; noise: the deviation of what is added to the scores at random."""

    def weigh(scores: Any, before: Any) -> Any:
        if noise > 0:
            added: Any = random_normal(shape(scores), dtype=scores.dtype, seed=seed)
            scores = scores + noise * added
        # A hard choice is made of the scores themselves: those above 0.
        choosing = cast(scores > 0, scores.dtype) if mode == "hard" else sigmoid(scores)
        return monotonic_attention(choosing, before, mode)

    return weigh


class _MonotonicAttention(ScoredAttention):
    """A mechanism that starts at the memory's first step; attention_score_bias is added to its scores."""

    def _set_weights(self, noise: float, seed: int | None, mode: str, bias: float) -> None:
        self._weigh, self._bias = _probability(noise, seed, mode), bias

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns all weight on the first step, for each row."""
        return one_hot(zeros([batch_size], int32), self.alignments_size, dtype=dtype)

    def score(self, query: Any) -> Any:
        scores = super().score(query)
        return scores + get_variable("attention_score_bias", [], scores.dtype, constant_initializer(self._bias))


class BahdanauMonotonicAttention(_MonotonicAttention, BahdanauAttention):
    """`BahdanauAttention` with weights of `monotonic_attention`.

    sigmoid_noise: the deviation of noise that is added to the scores. score_bias_init: the first value of the variable
    attention_score_bias, which is added, too. mode: that of `monotonic_attention`.
    """

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, normalize: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0, mode: str = "parallel", dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, memory, memory_sequence_length, normalize, score_mask_value=score_mask_value, dtype=dtype,
            name=name,
        )  # fmt: skip
        self._set_weights(sigmoid_noise, sigmoid_noise_seed, mode, score_bias_init)


class LuongMonotonicAttention(_MonotonicAttention, LuongAttention):
    """`LuongAttention` with weights of `monotonic_attention`; arguments as of `BahdanauMonotonicAttention`."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None, scale: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0, mode: str = "parallel", dtype: Any = None, name: str = "LuongMonotonicAttention",
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, memory, memory_sequence_length, scale, score_mask_value=score_mask_value, dtype=dtype, name=name
        )
        self._set_weights(sigmoid_noise, sigmoid_noise_seed, mode, score_bias_init)

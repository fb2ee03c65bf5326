"""Attention mechanisms: which steps of a memory fit a query, as weights that add up to one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import reshape, shape
from timberframe.api.assertions import assert_equal, assert_positive
from timberframe.api.constants import zeros
from timberframe.api.framework import control_dependencies, convert_to_tensor, name_scope
from timberframe.api.indexing import one_hot, sequence_mask
from timberframe.api.initializers import constant_initializer, ones_initializer, zeros_initializer
from timberframe.api.reduction import argmax, reduce_sum
from timberframe.api.selection import where
from timberframe.api.softmax import softmax
from timberframe.api.unary import rsqrt, square, tanh
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe.layers.base import Layer
from timberframe.layers.core import Dense
from timberframe_core import nest
from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

Probability = Callable[[Any, Any], Any]
"""Weights made of (scores, weights of the step before)."""


class AttentionMechanism:
    """Base of attention mechanisms: ``alignments, next_state = mechanism(query, state)``."""

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state, which is that of the alignments."""
        return self.alignments_size


class ScoredAttention(AttentionMechanism):
    """A mechanism whose weights are a function of scores of the memory's steps.

    memory: [batch, time, ...]. memory_sequence_length: the number of steps of each row; those after have weight 0.
    query_layer and memory_layer make queries and keys of one size. score_mask_value: the score of steps that have none,
    by default minus infinity. custom_key_value_fn(keys, values) returns others.
    """

    _scope: str | None = None
    """Where the variables of the scores are."""

    def __init__(
        self,
        query_layer: Layer | None,
        memory: Any,
        probability_fn: Probability,
        memory_sequence_length: Any = None,
        memory_layer: Layer | None = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str | None = None,
    ) -> None:
        kind = type(self).__name__
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise InvalidTypeError(f"{kind}: {what} is {layer!r}; a tf.layers.Layer is required")
        if not callable(probability_fn):
            raise InvalidTypeError(f"{kind}: probability_fn is {probability_fn!r}; a function is required")
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self._weigh = probability_fn
        self._masked_score = -math.inf if score_mask_value is None else score_mask_value
        with name_scope(name, "BaseAttentionMechanismInit"):
            given = nest.map_structure(lambda m: convert_to_tensor(m, name="memory"), memory)
            if check_inner_dims_defined:
                nest.map_structure(lambda m: _check_inner_sizes(kind, m), given)
            self._lengths = None if memory_sequence_length is None else _lengths(memory_sequence_length, given)
            self.values: Any = nest.map_structure(self._masked, given)
            self.keys: Any = self.values if memory_layer is None else memory_layer(self.values)
            if custom_key_value_fn is not None:
                self.keys, self.values = custom_key_value_fn(self.keys, self.values)
            first = nest.flatten(self.keys)[0]
            known, sizes = (first.static_shape or (None, None))[:2], shape(first)
            self.batch_size: Any = sizes[0] if known[0] is None else known[0]
            self._alignments_size: Any = sizes[1] if known[1] is None else known[1]

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    def _masked(self, memory: Any) -> Any:
        """Returns a memory with zeros for the steps that a row does not have."""
        if self._lengths is None:
            return memory
        mask = sequence_mask(self._lengths, shape(memory)[1], memory.dtype)
        ones = [1] * ((memory.shape.ndims or 2) - 2)
        return memory * reshape(mask, apply_op("ConcatV2", [[shape(mask), convert_to_tensor(ones, "int32")], 0]))

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the weights before the first step: zeros [batch_size, alignments_size]."""
        result = zeros([batch_size, self._alignments_size], dtype)
        result.set_shape([n if isinstance(n, int) else None for n in (batch_size, self._alignments_size)])
        return result

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the state before the first step: the initial alignments."""
        return self.initial_alignments(batch_size, dtype)

    def score(self, query: Any) -> Any:
        """Returns how well each step of the memory fits a query [batch, size]: [batch, alignments_size]."""
        raise NotImplementedError

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments for a query, and the next state, which they are."""
        with variable_scope(None, self._scope):
            scores = self.score(convert_to_tensor(query))
        alignments = self._probability_fn(scores, state)
        return alignments, alignments

    def _probability_fn(self, scores: Any, before: Any) -> Any:
        """Returns weights made of scores, 0 for steps that a row does not have; classes of
        programs call it by this name.
        """
        if self._lengths is not None:
            has = sequence_mask(self._lengths, shape(scores)[1])
            scores = where(has, scores, apply_op("OnesLike", [scores]) * self._masked_score)
        return self._weigh(scores, before)


def _check_inner_sizes(kind: str, memory: Tensor) -> None:
    sizes = memory.static_shape
    if sizes is None or None in sizes[2:]:
        raise InvalidArgumentError(
            f"{kind}: memory '{memory.name}' has shape {format_shape(sizes)}; all sizes after time must be known"
        )


def _lengths(given: Any, memory: Any) -> Any:
    """Returns the lengths of a memory's rows, checked in the run: one for each row, all above zero."""
    lengths = convert_to_tensor(given, name="memory_sequence_length")
    first = nest.flatten(memory)[0]
    checks = [
        assert_equal(
            shape(lengths)[0],
            shape(first)[0],
            message="memory_sequence_length: one for each row of memory is required",
        ),
        assert_positive(lengths, message="memory_sequence_length must be above zero"),
    ]
    with control_dependencies(checks):
        return apply_op("Identity", [lengths])


class LuongAttention(ScoredAttention):
    """Scores are products of query and keys (Luong et al. 2015).

    num_units: the size of the keys, which must be that of the queries. scale: the scores are times the variable
    attention_g. probability_fn: weights of scores, softmax by default. The keys are made by `memory_layer/kernel`.
    """

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=as_dtype(dtype or float32))
        super().__init__(
            None, memory, _of_scores(probability_fn), memory_sequence_length, layer,
            score_mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip
        self._scale = scale

    def score(self, query: Any) -> Any:
        """query . keys along their last axis: [batch, time]."""
        depth, units = query.shape.as_list()[-1], self.keys.shape.as_list()[-1]
        if depth is None or depth != units:
            raise InvalidArgumentError(
                f"{type(self).__name__}: query '{query.name}' has size {depth} and the keys have size {units}; "
                "num_units must be the size of the query"
            )
        row = apply_op("ExpandDims", [query, 1])
        product = apply_op("BatchMatMulV2", [row, self.keys], {"adj_y": True})
        scores = apply_op("Squeeze", [product], {"squeeze_dims": [1]})
        return get_variable("attention_g", [], query.dtype, ones_initializer()) * scores if self._scale else scores


class BahdanauAttention(ScoredAttention):
    """Scores are attention_v . tanh(keys + query), both made by layers of num_units (Bahdanau et al. 2015).

    normalize: attention_v has the length of the variable attention_g, and attention_b is added inside of tanh.
    probability_fn: weights of scores, softmax by default. The variables of the layers are `query_layer/kernel` and
    `memory_layer/kernel`.
    """

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        queries, keys = (
            Dense(num_units, name=layer, use_bias=False, dtype=as_dtype(dtype or float32))
            for layer in ("query_layer", "memory_layer")
        )
        super().__init__(
            queries, memory, _of_scores(probability_fn), memory_sequence_length, keys,
            score_mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip
        self._normalize = normalize

    def score(self, query: Any) -> Any:
        """attention_v . tanh(keys + query) along the last axis: [batch, time]."""
        row = apply_op("ExpandDims", [query if self.query_layer is None else self.query_layer(query), 1])
        units = self.keys.shape.as_list()[2]
        v = get_variable("attention_v", [units], row.dtype)
        if not self._normalize:
            return reduce_sum(v * tanh(self.keys + row), [2])
        g = get_variable("attention_g", [], row.dtype, constant_initializer(math.sqrt(1 / units)))
        b = get_variable("attention_b", [units], row.dtype, zeros_initializer())
        return reduce_sum(g * v * rsqrt(reduce_sum(square(v))) * tanh(self.keys + row + b), [2])


def _of_scores(given: Callable[[Any], Any] | None) -> Probability:
    function = softmax if given is None else given
    return lambda scores, _: function(scores)


def hardmax(logits: Any, name: str | None = None) -> Any:
    """1 for the first greatest value along the last axis, 0 for the others."""
    with name_scope(name, "Hardmax", [logits]):
        values = convert_to_tensor(logits)
        known = values.shape.as_list()[-1]
        return one_hot(argmax(values, -1), shape(values)[-1] if known is None else known, dtype=values.dtype)

"""Decoders that run a cell along lists of steps, with embeddings and with attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.arrays import concat, reshape, shape, stack, stop_gradient
from timberframe.api.composites import embedding_lookup
from timberframe.api.constants import zeros
from timberframe.api.framework import convert_to_tensor
from timberframe.api.nn import conv2d, xw_plus_b
from timberframe.api.reduction import argmax, reduce_sum
from timberframe.api.softmax import softmax
from timberframe.api.unary import tanh
from timberframe.api.variable_scope import get_variable, get_variable_scope, variable_scope
from timberframe.layers.base import known_size
from timberframe_contrib.contrib.linear import linear
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Returns a cell called once for each of a list of inputs: the list of its outputs, and its last state.

    loop_function(output, index): makes the inputs after the first from the output before. The variables are in scope
    `rnn_decoder`, unless `scope` says another.
    """
    with variable_scope(scope or "rnn_decoder") as opened:
        state = initial_state
        outputs: list[Any] = []
        for index, given in enumerate(decoder_inputs):
            if index:
                opened.reuse_variables()
            if outputs and loop_function is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], index)
            output, state = cell(given, state)
            outputs.append(output)
    return outputs, state


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` of symbols, numbers [batch] below num_symbols; the cell gets their rows of variable `embedding`.

    feed_previous: each step after the first gets the best symbol of the output before, of outputs . W + B where
    output_projection is (W, B). update_embedding_for_previous: whether the rows of those symbols have gradients.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as opened:
        check_projection("embedding_rnn_decoder", output_projection, num_symbols, opened.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        inputs = [embedding_lookup(embedding, symbols) for symbols in decoder_inputs]
        best = best_symbol(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return rnn_decoder(inputs, initial_state, cell, best)


def check_projection(function: str, projection: Any, symbols: int, dtype: Any) -> None:
    """Raises InvalidArgumentError unless a projection is None or the matrix and the vector for some symbols."""
    if projection is None:
        return
    kernel, bias = (convert_to_tensor(part, dtype) for part in projection)
    if not (kernel.shape.is_compatible_with([None, symbols]) and bias.shape.is_compatible_with([symbols])):
        raise InvalidArgumentError(
            f"tf.contrib.legacy_seq2seq.{function}: output_projection has shapes {kernel.shape} and {bias.shape}; "
            f"(?, {symbols}) and ({symbols},) are required"
        )


def best_symbol(embedding: Any, projection: Any, updates: bool) -> Callable[[Any, int], Any]:
    """Returns a loop function: the row of an embedding for the best symbol of an output; updates: with a gradient."""

    def following(output: Any, _: int) -> Any:
        scores: Any = output if projection is None else xw_plus_b(output, projection[0], projection[1])
        row = embedding_lookup(embedding, argmax(scores, 1))
        return row if updates else stop_gradient(row)

    return following


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` whose cell sees what a query of its state finds in attention_states (Vinyals et al. 2015).

    attention_states: [batch, length, size], its size known. The cell gets linear(input, what was found); an output is
    linear(the cell's output, what its state finds), [batch, output_size], by default of the cell's size. num_heads:
    how many queries. initial_state_attention: the first step sees what initial_state finds, else zeros. The variables
    are in scope `attention_decoder`, unless `scope` says another.
    """
    seen = convert_to_tensor(attention_states)
    if not decoder_inputs or num_heads < 1 or seen.shape.ndims != 3 or seen.shape.as_list()[2] is None:
        raise InvalidArgumentError(
            f"tf.contrib.legacy_seq2seq.attention_decoder: {len(decoder_inputs)} inputs, {num_heads} heads and "
            f"attention states of shape {seen.shape}; one or more inputs and heads, and a shape (?, ?, size) are "
            "required"
        )
    size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as opened:
        heads = [_Head(seen, number) for number in range(num_heads)]
        state = initial_state
        if initial_state_attention:
            found = [head(state) for head in heads]
        else:
            found = [_nothing(decoder_inputs[0], seen, opened.dtype) for _ in heads]
        outputs: list[Any] = []
        for index, given in enumerate(decoder_inputs):
            if index:
                opened.reuse_variables()
            if outputs and loop_function is not None:
                with variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], index)
            given = convert_to_tensor(given)
            joined = linear([given, *found], known_size(opened.name, given.shape, 1))
            output, state = cell(joined, state)
            with variable_scope(get_variable_scope(), reuse=True if initial_state_attention else None):
                found = [head(state) for head in heads]
            with variable_scope("AttnOutputProjection"):
                outputs.append(linear([output, *found], size))
    return outputs, state


def _nothing(first: Any, seen: Any, dtype: Any) -> Any:
    size = seen.shape.as_list()[2]
    none: Any = zeros(stack([shape(first)[0], size]), dtype)
    none.set_shape([None, size])
    return none


class _Head:
    """What a query finds in states [batch, length, size]: their mean by weights softmax(v . tanh(W state + query))."""

    def __init__(self, seen: Any, number: int) -> None:
        length, size = seen.shape.as_list()[1], seen.shape.as_list()[2]
        self._length, self._size, self._number = shape(seen)[1] if length is None else length, size, number
        self._steps = reshape(seen, [-1, self._length, 1, size])
        kernel = get_variable(f"AttnW_{number}", [1, 1, size, size])
        self._hidden: Any = conv2d(self._steps, kernel, [1, 1, 1, 1], "SAME")
        self._direction = get_variable(f"AttnV_{number}", [size])

    def __call__(self, state: Any) -> Any:
        query = concat(nest.flatten(state), 1) if nest.is_nested(state) else state
        with variable_scope(f"Attention_{self._number}"):
            wanted: Any = reshape(linear([query], self._size), [-1, 1, 1, self._size])
            direction: Any = self._direction
            weights: Any = softmax(reduce_sum(direction * tanh(self._hidden + wanted), [2, 3]))
            columns: Any = reshape(weights, [-1, self._length, 1, 1])
            found = reduce_sum(columns * self._steps, [1, 2])
            return reshape(found, [-1, self._size])


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`attention_decoder` of symbols, which are embedded and fed as by `embedding_rnn_decoder`."""
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype) as opened:
        check_projection("embedding_attention_decoder", output_projection, num_symbols, opened.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        inputs = [embedding_lookup(embedding, symbols) for symbols in decoder_inputs]
        best = best_symbol(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return attention_decoder(
            inputs, initial_state, attention_states, cell, output_size, num_heads, best,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip

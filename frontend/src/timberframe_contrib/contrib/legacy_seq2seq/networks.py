"""Networks from lists of steps to lists of steps: an encoder, and a decoder that begins with its last state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.api.arrays import concat, reshape
from timberframe.api.composites import embedding_lookup
from timberframe.api.control_flow import cond
from timberframe.api.framework import name_scope
from timberframe.api.variable_scope import get_variable, get_variable_scope, variable_scope
from timberframe.recurrent.static import static_rnn
from timberframe.recurrent.steps import check_cell
from timberframe_contrib.contrib.legacy_seq2seq.decoders import (
    best_symbol,
    check_projection,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from timberframe_contrib.contrib.legacy_seq2seq.losses import sequence_loss, sequence_loss_by_example
from timberframe_contrib.contrib.wrapped_cells import EmbeddingWrapper, OutputProjectionWrapper
from timberframe_core import nest
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError

_Decoder = Callable[[bool, bool], tuple[list[Any], Any]]


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, dtype: Any = float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """Makes a copy of a cell read the encoder's inputs, and `rnn_decoder` goes on with the
    cell: outputs and last state.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`basic_rnn_seq2seq` whose encoder and decoder have the same variables; loop_function is `rnn_decoder`'s."""
    with variable_scope("combined_tied_rnn_seq2seq") as opened:
        inner = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=inner)
        opened.reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, inner)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Makes a copy of a cell read embedded symbols, and `embedding_rnn_decoder` goes on: outputs and last state.

    The inputs are numbers [batch]. Without output_projection the outputs are [batch, num_decoder_symbols], of an
    `OutputProjectionWrapper`, else the cell's. feed_previous: a bool, or a scalar tensor that decides in each run; then
    the symbols that are fed have no gradients.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as opened:
        if dtype is not None:
            opened.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        decoding = cell if output_projection is not None else OutputProjectionWrapper(cell, num_decoder_symbols)

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs, state, decoding, num_decoder_symbols, embedding_size, output_projection, feeds, updates
            )

        return _decided(feed_previous, decoder, state)


def _decided(feed_previous: Any, decoder: _Decoder, like: Any) -> tuple[list[Any], Any]:
    """Outputs and last state of a decoder for a bool; for a tensor those of a branch, which share their variables.

    like: a state of the same structure.
    """
    if isinstance(feed_previous, bool):
        return decoder(feed_previous, True)
    counts: list[int] = []

    def branch(feeds: bool) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=None if feeds else True):
            outputs, state = decoder(feeds, False)
        counts.append(len(outputs))
        return [*outputs, *nest.flatten(state)]

    made: Any = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    return list(made[: counts[0]]), nest.pack_sequence_as(like, list(made[counts[0] :]))


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`embedding_rnn_seq2seq` whose encoder and decoder have the same embedding and the same cell.

    num_decoder_symbols: of the outputs, num_symbols by default.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as opened:
        check_projection("embedding_tied_rnn_seq2seq", output_projection, num_symbols, opened.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size], opened.dtype)
        encoded, decoded = (
            [embedding_lookup(embedding, x) for x in given] for given in (encoder_inputs, decoder_inputs)
        )
        tied = cell
        if output_projection is None:
            tied = OutputProjectionWrapper(cell, num_symbols if num_decoder_symbols is None else num_decoder_symbols)

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            best = best_symbol(embedding, output_projection, updates) if feeds else None
            return tied_rnn_seq2seq(encoded, decoded, tied, best, opened.dtype)

        return _decided(feed_previous, decoder, cell.state_size)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    encoder_cell: Any = None,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`embedding_rnn_seq2seq` whose decoder has attention to the encoder's outputs, as `attention_decoder` has.

    encoder_cell: a copy of `cell` by default.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as opened:
        reading = copy.deepcopy(cell) if encoder_cell is None else encoder_cell
        encoder = EmbeddingWrapper(reading, num_encoder_symbols, embedding_size)
        encoded, state = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        seen = concat([reshape(x, [-1, 1, cell.output_size]) for x in encoded], 1)
        decoding, size = cell, None
        if output_projection is None:
            decoding, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs, state, seen, decoding, num_decoder_symbols, embedding_size, num_heads, size,
                output_projection, feeds, updates, initial_state_attention=initial_state_attention,
            )  # fmt: skip

        return _decided(feed_previous, decoder, state)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[str, Sequence[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """`embedding_rnn_seq2seq` with several decoders (Luong et al. 2016): dicts of outputs and of last states."""
    check_cell("one2many_rnn_seq2seq", enc_cell, "tf.contrib.legacy_seq2seq")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise InvalidArgumentError(
            f"tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq: cells for {sorted(dec_cells_dict)} and inputs for "
            f"{sorted(decoder_inputs_dict)}; the same names are required"
        )
    outputs: dict[str, list[Any]] = {}
    states: dict[str, Any] = {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        for name, inputs in decoder_inputs_dict.items():
            check_cell("one2many_rnn_seq2seq", dec_cells_dict[name], "tf.contrib.legacy_seq2seq")
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)
                decoder = _decoder_of(inputs, state, cell, symbols, embedding_size)
                outputs[name], states[name] = _decided(feed_previous, decoder, state)
    return outputs, states


def _decoder_of(inputs: Sequence[Any], state: Any, cell: Any, symbols: int, embedding_size: int) -> _Decoder:
    def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
        return embedding_rnn_decoder(
            inputs, state, cell, symbols, embedding_size, feed_previous=feeds, update_embedding_for_previous=updates
        )

    return decoder


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, Any]],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """Returns a network for each of several pairs of lengths, all with the same variables: outputs and losses of each.

    buckets: numbers of steps of inputs and of outputs, the longest ones last. seq2seq(encoder_inputs, decoder_inputs):
    returns outputs and states. The losses are those of `sequence_loss`; with per_example_loss, [batch], those of
    `sequence_loss_by_example`.
    """
    for what, steps, longest in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]), ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):  # fmt: skip
        if len(steps) < longest:
            raise InvalidArgumentError(
                f"tf.contrib.legacy_seq2seq.model_with_buckets: {what} has {len(steps)} steps and the last bucket "
                f"{longest}; as many at least are required"
            )
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with name_scope(name, "model_with_buckets"):
        for index, (read, written) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if index else None):
                made, _ = seq2seq(encoder_inputs[:read], decoder_inputs[:written])
                outputs.append(made)
                losses.append(
                    loss(made, targets[:written], weights[:written], softmax_loss_function=softmax_loss_function)
                )
    return outputs, losses

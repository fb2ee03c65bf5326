"""BeamSearchDecoder: keeps the likeliest sequences of each row."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from timberframe.api.arrays import concat, reshape, shape, tile
from timberframe.api.constants import zeros
from timberframe.api.control_flow import cond
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.indexing import batch_gather, one_hot
from timberframe.api.reduction import reduce_all, reduce_max
from timberframe.api.search import top_k
from timberframe.api.selection import cast
from timberframe.api.softmax import log_softmax
from timberframe.api.tensor_array import TensorArray
from timberframe.layers.base import Layer
from timberframe.recurrent.steps import check_cell
from timberframe_contrib.contrib.seq2seq import beam_scores
from timberframe_contrib.contrib.seq2seq.basic_decoder import checked_layer
from timberframe_contrib.contrib.seq2seq.beams import gather_tree, gather_tree_from_array
from timberframe_contrib.contrib.seq2seq.decoding import Decoder
from timberframe_contrib.contrib.seq2seq.helpers import embedding_function, end_token_of, vector_of
from timberframe_core import nest
from timberframe_core.dtypes import bool_, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class BeamSearchDecoderState(NamedTuple):
    """State of a beam search: the cell's, and of each beam [batch, beams] the logarithm of its probability, whether it
    is finished, its length, and the sum of its weights of the memory where there is a coverage penalty.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """A step of a beam search, [batch, beams] each: scores, what was chosen, and from which beam it came."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """A beam search: the whole sequences [batch, time, beams], the likeliest first, and the outputs of its steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


class BeamSearchDecoder(Decoder):
    """A decoder that keeps the beam_width likeliest sequences of each row.

    embedding: a function of class numbers, or a table of their embeddings. start_tokens: the first class of each row.
    end_token: the class that finishes a sequence. initial_state: of the cell, for batch * beam_width rows: see
    `tile_batch`. output_layer: makes logits of outputs. length_penalty_weight: the power of the length by which scores
    are divided; coverage_penalty_weight: of parts of the memory that nothing looked at (Wu et al. 2016).
    reorder_tensor_arrays: arrays in the state, such as a history of alignments, follow the sequences that won.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Layer | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        check_cell("BeamSearchDecoder", cell, "tf.contrib.seq2seq")
        self._cell, self._output_layer = cell, checked_layer("BeamSearchDecoder", output_layer)
        self._embedding_fn = embedding_function(embedding)
        tokens = vector_of("BeamSearchDecoder", "start_tokens", convert_to_tensor(start_tokens, int32))
        self._end_token = end_token_of("BeamSearchDecoder", end_token)
        self._known_batch = (tokens.static_shape or (None,))[0]
        self._batch_size: Any = shape(tokens)[0] if self._known_batch is None else self._known_batch
        self._beam_width = beam_width
        self._length_penalty_weight, self._coverage_penalty_weight = length_penalty_weight, coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._initial_cell_state = nest.map_structure(self._split, initial_state)
        self._start_inputs = self._embedding_fn(tile(apply_op("ExpandDims", [tokens, 1]), [1, beam_width]))
        first = zeros([self._batch_size], int32)
        self._finished = one_hot(first, beam_width, on_value=False, off_value=True, dtype=bool_)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        beams = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(self._dtype, int32, int32)

    @property
    def _dtype(self) -> Any:
        return nest.flatten(self._initial_cell_state)[0].dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        first = zeros([self._batch_size], int32)
        watched = beam_scores.attention_weights(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            # All beams of a row are equal before the first step, so that but one of them goes on.
            log_probs=one_hot(first, self._beam_width, on_value=0.0, off_value=-math.inf, dtype=self._dtype),
            finished=self._finished,
            lengths=zeros([self._batch_size, self._beam_width], int64),
            accumulated_attention_probs=() if watched is None else watched,
        )
        return self._finished, self._start_inputs, state

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        longest = cast(reduce_max(final_state.lengths, axis=1), int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            cell_state = nest.map_structure(
                lambda x: self._reordered(x, outputs.parent_ids, final_state.lengths), final_state.cell_state
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _reordered(self, x: Any, parents: Tensor, lengths: Tensor) -> Any:
        """Returns an array of the state as a tensor [time, batch * beams, ...] in which each beam has its own way."""
        if not isinstance(x, TensorArray) or not x.element_shape.ndims:
            return x
        values = x.stack()
        sizes = shape(values)
        apart = reshape(values, concat([[sizes[0], self._batch_size, self._beam_width], sizes[2:]], 0))
        result = reshape(gather_tree_from_array(apart, parents, lengths), sizes)
        result.set_shape(values.static_shape)
        return result

    def _split(self, x: Any) -> Any:
        """[batch * beams, ...] as [batch, beams, ...]; scalars and arrays stay."""
        if isinstance(x, TensorArray) or convert_to_tensor(x).shape.ndims == 0:
            return x
        tensor = convert_to_tensor(x)
        known = tensor.static_shape
        if known is None:
            raise InvalidArgumentError(f"BeamSearchDecoder: '{tensor.name}' has an unknown rank; it must be known")
        if known[0] is not None and self._known_batch is not None and known[0] != self._known_batch * self._beam_width:
            raise InvalidArgumentError(
                f"BeamSearchDecoder: '{tensor.name}' has {known[0]} rows for {self._known_batch} start tokens and "
                f"{self._beam_width} beams; tile the state by tf.contrib.seq2seq.tile_batch"
            )
        result = reshape(tensor, concat([[self._batch_size, self._beam_width], shape(tensor)[1:]], 0))
        result.set_shape([self._known_batch, self._beam_width, *known[1:]])
        return result

    def _merge(self, x: Any) -> Any:
        """[batch, beams, ...] as [batch * beams, ...]; scalars and arrays stay."""
        if isinstance(x, TensorArray) or x.shape.ndims == 0:
            return x
        result = reshape(x, concat([[self._batch_size * self._beam_width], shape(x)[2:]], 0))
        known = None if self._known_batch is None else self._known_batch * self._beam_width
        result.set_shape([known, *x.static_shape[2:]])
        return result

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with name_scope(name, "BeamSearchDecoderStep"):
            rows, cell_state = nest.map_structure(self._merge, (inputs, state.cell_state))
            outputs, cell_state = self._cell(rows, cell_state)
            outputs, cell_state = nest.map_structure(self._split, (outputs, cell_state))
            logits = outputs if self._output_layer is None else self._output_layer(outputs)
            output, after = self._chosen(logits, cell_state, state)
            following = cond(
                reduce_all(after.finished), lambda: self._start_inputs, lambda: self._embedding_fn(output.predicted_ids)
            )
        return output, after, following, after.finished

    def _chosen(self, logits: Tensor, cell_state: Any, before: Any) -> tuple[Any, Any]:
        """Returns the best continuations of all beams, and the state after them."""
        finished = before.finished
        own = beam_scores.only_end_after_end(log_softmax(logits), self._end_token, finished)
        total = apply_op("ExpandDims", [before.log_probs, 2]) + own
        known = logits.shape.as_list()[-1]
        classes: Any = shape(logits)[2] if known is None else known
        watched = beam_scores.attention_weights(cell_state, self._coverage_penalty_weight)
        if watched is not None:
            going_on = cast(apply_op("LogicalNot", [finished]), watched.dtype)
            watched = before.accumulated_attention_probs + watched * apply_op("ExpandDims", [going_on, 2])
        scores = beam_scores.scores(
            total,
            beam_scores.lengths_after(before.lengths, finished, self._end_token, classes),
            self._length_penalty_weight,
            self._coverage_penalty_weight,
            finished,
            watched,
        )
        flat = [self._batch_size, self._beam_width * classes]
        best, index = top_k(reshape(scores, flat), k=self._beam_width)
        ids, parents = apply_op("FloorMod", [index, classes]), apply_op("FloorDiv", [index, classes])
        was_finished = batch_gather(finished, parents)
        state = BeamSearchDecoderState(
            cell_state=nest.map_structure(lambda x: self._followed(x, parents), cell_state),
            log_probs=batch_gather(reshape(total, flat), index),
            finished=apply_op("LogicalOr", [was_finished, apply_op("Equal", [ids, self._end_token])]),
            lengths=batch_gather(before.lengths, parents) + cast(apply_op("LogicalNot", [was_finished]), int64),
            accumulated_attention_probs=() if watched is None else self._followed(watched, parents),
        )
        for x in (best, ids, parents, state.log_probs, state.finished, state.lengths):
            x.set_shape([self._known_batch, self._beam_width])
        return BeamSearchDecoderOutput(best, ids, parents), state

    def _followed(self, x: Any, parents: Tensor) -> Any:
        """Returns a part of the state for the beams from which the chosen continuations came."""
        if isinstance(x, TensorArray) or x.shape.ndims == 0:
            return x
        result = batch_gather(x, parents)
        result.set_shape(x.static_shape)
        return result

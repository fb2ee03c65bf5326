"""BasicDecoder: a cell whose inputs a helper chooses."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe.api.framework import name_scope
from timberframe.layers.base import Layer
from timberframe.recurrent.steps import check_cell
from timberframe_contrib.contrib.seq2seq.decoding import Decoder
from timberframe_contrib.contrib.seq2seq.helpers import Helper
from timberframe_core import nest
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.tensor_shape import TensorShape


class BasicDecoderOutput(NamedTuple):
    """Outputs of a `BasicDecoder`: those of its cell (and output layer), and what its helper sampled from them."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A decoder that samples from its cell's outputs; the samples, or what the helper has, are the next inputs.

    initial_state: of the cell. output_layer: applied to the outputs before the helper samples from them.
    """

    def __init__(self, cell: Any, helper: Helper, initial_state: Any, output_layer: Layer | None = None) -> None:
        check_cell("BasicDecoder", cell, "tf.contrib.seq2seq")
        if not isinstance(helper, Helper):
            raise InvalidTypeError(f"tf.contrib.seq2seq.BasicDecoder: helper is {helper!r}; a Helper is required")
        self._cell, self._helper, self._initial_state = cell, helper, initial_state
        self._output_layer = checked_layer("BasicDecoder", output_layer)

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(
            output_size_of(self._cell, self._output_layer), TensorShape(self._helper.sample_ids_shape)
        )

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = nest.flatten(self._initial_state)[0].dtype
        outputs = nest.map_structure(lambda _: dtype, output_size_of(self._cell, self._output_layer))
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    @property
    def most_steps(self) -> Any:
        return self._helper.most_steps

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with name_scope(name, "BasicDecoderStep"):
            outputs, after = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=after)
            finished, following, after = self._helper.next_inputs(
                time=time, outputs=outputs, state=after, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), after, following, finished


def checked_layer(decoder: str, layer: Any) -> Layer | None:
    """Returns the output layer of a decoder; InvalidTypeError for what is none."""
    if layer is not None and not isinstance(layer, Layer):
        raise InvalidTypeError(f"{decoder}: output_layer is {layer!r}; a tf.layers.Layer is required")
    return layer


def output_size_of(cell: Any, layer: Layer | None) -> Any:
    """Returns the sizes of a cell's outputs after an output layer, without the batch."""

    def after_layer(size: Any) -> Any:
        shape = TensorShape([None]).concatenate(TensorShape([size] if isinstance(size, int) else size))
        return TensorShape(shape if layer is None else layer.compute_output_shape(shape))[1:]

    return cell.output_size if layer is None else nest.map_structure(after_layer, cell.output_size)

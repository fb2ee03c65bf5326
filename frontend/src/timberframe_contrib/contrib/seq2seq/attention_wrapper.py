"""AttentionWrapper: a cell that at each step looks at a memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from timberframe.api.arrays import concat, identity, shape
from timberframe.api.assertions import assert_equal
from timberframe.api.constants import zeros
from timberframe.api.framework import control_dependencies, convert_to_tensor, name_scope
from timberframe.api.tensor_array import TensorArray
from timberframe.layers.base import Layer
from timberframe.layers.core import Dense
from timberframe.recurrent.base import RNNCell, zeros_for
from timberframe.recurrent.steps import check_cell
from timberframe_contrib.contrib.seq2seq.mechanisms import AttentionMechanism
from timberframe_core import nest
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.tensor_shape import TensorShape


class AttentionWrapperState(NamedTuple):
    """State of an `AttentionWrapper`: that of its cell, the last attention, the number of steps, the last weights of
    the memory, the weights of all steps (a TensorArray for each mechanism that keeps them), and the mechanisms' states.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """Returns the state with other parts, those given by name; they must have the shapes
        of those that they replace.
        """

        def checked(old: Any, new: Any) -> Any:
            if isinstance(old, TensorArray) or isinstance(new, TensorArray):
                return new
            before, after = convert_to_tensor(old), convert_to_tensor(new)
            if before.dtype != after.dtype or not after.shape.is_compatible_with(before.shape):
                raise InvalidArgumentError(
                    f"AttentionWrapperState.clone: '{after.name}' is {after.dtype.name} {after.shape} and replaces "
                    f"{before.dtype.name} {before.shape}; dtype and shape must agree"
                )
            after.set_shape(before.static_shape)
            return after

        return nest.map_structure(checked, self, self._replace(**kwargs))  # type: ignore[no-any-return]  # of this class


class AttentionWrapper(RNNCell):
    """A cell whose inputs are joined with an attention, which is made of its output and a memory.

    attention_mechanism: one, or a list; then `alignments` and all like them are tuples, and the attentions are side by
    side. attention_layer_size: size of what the layer `attention_layer/kernel` makes of output and context (one for
    each mechanism); None: the attention is the context, the weighted sum of the memory's values. attention_layer: such
    layers themselves. alignment_history: the state keeps the weights of all steps. cell_input_fn(inputs, attention):
    the cell's inputs, joined along the last axis by default. output_attention: the output is the attention, else the
    cell's. initial_cell_state: part of what `zero_state` gives. attention_fn: in place of `attention_of`.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        check_cell("AttentionWrapper", cell, "tf.contrib.seq2seq")
        self._cell = cell
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._mechanisms: tuple[Any, ...] = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise InvalidTypeError(
                    f"AttentionWrapper: attention_mechanism is {mechanism!r}; an AttentionMechanism is required"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise InvalidTypeError(f"AttentionWrapper: cell_input_fn is {cell_input_fn!r}; a function is required")
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: concat([inputs, attention], -1))
        self._attention_fn = attention_fn or attention_of
        self._output_attention, self._keeps_history = output_attention, alignment_history
        self._attention_layers = self._layers(attention_layer_size, attention_layer, dtype)
        self._attention_size = self._size_of_attention()
        self._initial_cell_state = None
        if initial_cell_state is not None:
            given = nest.map_structure(convert_to_tensor, initial_cell_state)
            self._initial_cell_state = self._checked(given, shape(nest.flatten(given)[-1])[0], "initial_cell_state")

    def _layers(self, sizes: Any, given: Any, dtype: Any) -> Sequence[Any]:
        """Returns the attention layer of each mechanism, None where it has none."""
        if sizes is not None and given is not None:
            raise InvalidArgumentError(
                "AttentionWrapper: attention_layer_size and attention_layer are given; give one of them"
            )
        chosen = sizes if sizes is not None else given
        if chosen is None:
            return [None] * len(self._mechanisms)
        each = list(chosen) if isinstance(chosen, list | tuple) else [chosen]
        if len(each) != len(self._mechanisms):
            raise InvalidArgumentError(
                f"AttentionWrapper: {len(each)} attention layers for {len(self._mechanisms)} mechanisms; one for each "
                "is required"
            )
        if given is not None:
            return each
        return [Dense(size, name="attention_layer", use_bias=False, dtype=dtype) for size in each]

    def _size_of_attention(self) -> int:
        total = 0
        for mechanism, layer in zip(self._mechanisms, self._attention_layers, strict=True):
            values = mechanism.values.shape.as_list()
            if layer is None:
                total += values[-1]
            else:
                joined = TensorShape([None, int(self._cell.output_size) + values[-1]])
                total += layer.compute_output_shape(joined).as_list()[-1]
        return total

    def _checked(self, state: Any, batch_size: Any, what: str) -> Any:
        """Returns a cell's state, checked in the run to have as many rows as the memories."""
        checks = [
            assert_equal(
                batch_size,
                mechanism.batch_size,
                message=f"AttentionWrapper: the batch size of {what} is not that of the memory; with beam search, tile "
                "both by tf.contrib.seq2seq.tile_batch",
            )
            for mechanism in self._mechanisms
        ]
        with control_dependencies(checks):
            return nest.map_structure(lambda s: identity(s, name="checked_cell_state"), state)

    def _of_each(self, parts: Any) -> Any:
        """Returns a part for each mechanism: a tuple, or the part of the only one."""
        parts = tuple(parts)
        return parts if self._is_multi else parts[0]

    def _each(self, parts: Any) -> Any:
        return parts if self._is_multi else (parts,)

    @property
    def output_size(self) -> Any:
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        sizes = self._of_each(m.alignments_size for m in self._mechanisms)
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_size,
            time=TensorShape([]),
            alignments=sizes,
            alignment_history=self._of_each(m.alignments_size if self._keeps_history else () for m in self._mechanisms),
            attention_state=self._of_each(m.state_size for m in self._mechanisms),
        )

    @property
    def variables(self) -> list[Any]:
        layers = [layer for layer in self._attention_layers if isinstance(layer, Layer)]
        return [*self._cell.variables, *super().variables, *(v for layer in layers for v in layer.variables)]

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        with name_scope(f"{type(self).__name__}ZeroState"):
            state = self._initial_cell_state
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            return AttentionWrapperState(
                cell_state=self._checked(state, batch_size, "zero_state"),
                attention=zeros_for(batch_size, self._attention_size, dtype),
                time=zeros([], int32),
                alignments=self._of_each(alignments),
                alignment_history=self._of_each(
                    TensorArray(dtype, 0, dynamic_size=True, element_shape=a.shape) if self._keeps_history else ()
                    for a in alignments
                ),
                attention_state=self._of_each(m.initial_state(batch_size, dtype) for m in self._mechanisms),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """Returns the attention, or the cell's output, and the next state."""
        if not isinstance(state, AttentionWrapperState):
            raise InvalidTypeError(
                f"AttentionWrapper: state is {state!r}; an AttentionWrapperState, which zero_state gives, is required"
            )
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        attentions, alignments, states, histories = [], [], [], []
        parts = zip(
            self._mechanisms,
            self._attention_layers,
            self._each(state.attention_state),
            self._each(state.alignment_history),
            strict=True,
        )
        for mechanism, layer, before, history in parts:
            attention, weights, after = self._attention_fn(mechanism, output, before, layer)
            attentions.append(attention)
            alignments.append(weights)
            states.append(after)
            histories.append(history.write(state.time, weights) if self._keeps_history else ())
        attention = attentions[0] if len(attentions) == 1 else concat(attentions, 1)
        following = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=apply_op("AddV2", [state.time, 1]),
            alignments=self._of_each(alignments),
            alignment_history=self._of_each(histories),
            attention_state=self._of_each(states),
        )
        return (attention if self._output_attention else output), following


def attention_of(mechanism: Any, cell_output: Any, state: Any, layer: Any) -> tuple[Any, Any, Any]:
    """(attention, weights of the memory, next state) for a cell's output."""
    weights, after = mechanism(cell_output, state=state)
    row = apply_op("ExpandDims", [weights, 1])
    context = apply_op("Squeeze", [apply_op("BatchMatMulV2", [row, mechanism.values])], {"squeeze_dims": [1]})
    return (context if layer is None else layer(concat([cell_output, context], 1))), weights, after

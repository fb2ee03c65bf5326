"""Cells that TensorFlow computes by one op each: here they are the cells of `tf.nn.rnn_cell`, by other names."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat, expand_dims, reverse, shape, stack, transpose, unstack
from timberframe.api.constants import range as number_range
from timberframe.api.framework import convert_to_tensor
from timberframe.api.indexing import gather_nd, reverse_sequence, sequence_mask
from timberframe.api.initializers import constant_initializer, zeros_initializer
from timberframe.api.selection import cast
from timberframe.layers.base import InputSpec, Layer
from timberframe.recurrent.base import input_depth, zeros_for
from timberframe.recurrent.cells import GRUCell, LSTMCell, LSTMStateTuple
from timberframe.recurrent.dynamic import dynamic_rnn
from timberframe.recurrent.static import static_rnn
from timberframe.recurrent.steps import check_cell
from timberframe_core.dtypes import int32, int64
from timberframe_core.errors import InvalidArgumentError


class LSTMBlockCell(LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell` without a projection; use_peephole: with peepholes."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(
            num_units, use_peephole, _clip(cell_clip), forget_bias=forget_bias, reuse=reuse, name=name, dtype=dtype
        )


def _clip(given: float | None) -> float | None:
    """Returns a bound of |c|; TensorFlow's fused ops take numbers up to 0 for none."""
    return given if given is not None and given > 0 else None


class GRUBlockCellV2(GRUCell):
    """`tf.nn.rnn_cell.GRUCell`."""

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: Any = None, name: str = "gru_cell"
    ) -> None:
        size = num_units if num_units is not None else cell_size
        if size is None or (num_units is not None and cell_size is not None):
            raise InvalidArgumentError(
                f"{type(self).__name__}: num_units is {num_units} and cell_size {cell_size}; give one of them"
            )
        super().__init__(size, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """`tf.nn.rnn_cell.GRUCell` with variables w_ru, b_ru, w_c and b_c."""

    def build(self, inputs_shape: Any) -> None:
        units = self._num_units
        depth = input_depth(self, inputs_shape) + units
        self._gate_kernel = self.add_weight("w_ru", [depth, 2 * units])
        self._gate_bias = self.add_weight("b_ru", [2 * units], initializer=constant_initializer(1.0))
        self._candidate_kernel = self.add_weight("w_c", [depth, units])
        self._candidate_bias = self.add_weight("b_c", [units], initializer=zeros_initializer)
        self.built = True


class LSTMBlockWrapper(Layer):
    """Base of LSTMs along time: ``outputs, state = cell(inputs, initial_state, dtype, sequence_length)``.

    inputs: [time, batch, size]. The state is an `LSTMStateTuple`. A class of the user's own says `num_units` and has a
    method `_call_cell(inputs, c, h, dtype, sequence_length)` that returns c and h of all steps, [time, batch, units].
    """

    @property
    def num_units(self) -> int:
        """The number of units."""
        raise NotImplementedError

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs [time, batch, units], zero after the end of a row, and the
        state at the ends of the rows.
        """
        self._check_given(initial_state, dtype)
        steps = convert_to_tensor(inputs)
        count, batch = shape(steps)[0], shape(steps)[1]
        first = LSTMStateTuple(*initial_state) if initial_state is not None else self._zeros(batch, dtype)
        lengths = None if sequence_length is None else convert_to_tensor(sequence_length)
        c, h = self._call_cell(steps, first.c, first.h, dtype or first.c.dtype, lengths)
        if lengths is None:
            return h, LSTMStateTuple(c[-1], h[-1])
        h = h * expand_dims(transpose(sequence_mask(lengths, count, h.dtype)), 2)
        at = stack([cast(lengths, int32), number_range(batch)], 1)
        ends = (gather_nd(concat([expand_dims(a, 0), b], 0), at) for a, b in zip(first, (c, h), strict=True))
        return h, LSTMStateTuple(*ends)

    def _zeros(self, batch: Any, dtype: Any) -> LSTMStateTuple:
        none = zeros_for(batch, self.num_units, dtype)
        return LSTMStateTuple(none, none)

    def _check_given(self, initial_state: Any, dtype: Any) -> None:
        if initial_state is None and dtype is None:
            raise InvalidArgumentError(f"cell '{self.name}': initial_state and dtype are None; give one of them")

    def _call_cell(self, inputs: Any, c: Any, h: Any, dtype: Any, sequence_length: Any) -> tuple[Any, Any]:
        raise NotImplementedError


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM along time, called as `LSTMBlockWrapper` is, with the variables of `LSTMBlockCell` in its own scope."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self.input_spec = InputSpec(ndim=3)
        self._cell = _SharedCell(self, num_units, use_peephole, _clip(cell_clip), forget_bias=forget_bias)

    @property
    def num_units(self) -> int:
        return self._cell.output_size

    def build(self, input_shape: Any) -> None:
        self._cell.build(input_shape)
        self.built = self._cell.built

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs [time, batch, units], and the last state."""
        self._check_given(initial_state, dtype)
        steps = convert_to_tensor(inputs)
        return dynamic_rnn(self._cell, steps, sequence_length, initial_state, dtype, time_major=True)


class FusedRNNCell:
    """Base of networks along time: ``outputs, state = cell(inputs, initial_state, dtype, sequence_length, scope)``.

    inputs: [time, batch, size], or a list of tensors [batch, size].
    """

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs [time, batch, size], or a list of them, and the last state."""
        raise NotImplementedError


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell along time, called as `LSTMBlockFusedCell` is.

    use_dynamic_rnn: by a loop of the graph, else with nodes for each step, whose number must be known.
    """

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        check_cell("FusedRNNCellAdaptor", cell, "tf.contrib.rnn")
        self._cell, self._dynamic = cell, use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs [time, batch, size], and the last state."""
        if self._dynamic:
            return dynamic_rnn(self._cell, inputs, sequence_length, initial_state, dtype, time_major=True, scope=scope)
        steps = inputs if isinstance(inputs, list) else unstack(convert_to_tensor(inputs))
        outputs, state = static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return (outputs if isinstance(inputs, list) else stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A network called as `LSTMBlockFusedCell` is, run from the end of each row; its outputs keep the order of time."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs [time, batch, size], and the state at the beginning of the rows."""
        backwards = _reversed(convert_to_tensor(inputs), sequence_length)
        outputs, state = self._cell(backwards, initial_state, dtype, sequence_length, scope=scope)
        return _reversed(outputs, sequence_length), state


def _reversed(steps: Any, lengths: Any) -> Any:
    """Steps, time first, from the end of each row."""
    if lengths is None:
        return reverse(steps, [0])
    return reverse_sequence(steps, cast(convert_to_tensor(lengths), int64), seq_axis=0, batch_axis=1)


class _SharedCell(LSTMCell):
    """An LSTM cell whose variables are those of a layer."""

    def __init__(self, owner: Layer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owner = owner

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        return self._owner.add_weight(*args, **kwargs)

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        return self.call(inputs, state)

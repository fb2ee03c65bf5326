"""Cells of `tf.contrib.rnn` that run along the frequencies of their inputs, too."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import concat, pad, shape, split
from timberframe.api.constants import zeros
from timberframe.api.initializers import zeros_initializer
from timberframe.api.unary import sigmoid, tanh
from timberframe.recurrent.base import RNNCell, affine, input_depth
from timberframe.recurrent.cells import clipped
from timberframe_contrib.contrib.cell_bases import joined_rows, sharded_weight
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError


class TimeFreqLSTMCell(RNNCell):
    """An LSTM that sees windows of its inputs one after the other (Li et al. 2015).

    The windows have feature_size values and begin frequency_skip apart. Each step has c and h of its own, and sees h of
    the window before. The state is [batch, 2 num_units windows] with c and h of each window; the output
    [batch, num_units windows]. `state_size` and `output_size` are those of one window, as in TensorFlow. The variables
    are W_0, ..., one for each of num_unit_shards, B, and with use_peepholes W_F_diag, W_I_diag and W_O_diag. cell_clip:
    bound of |c|.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._initializer, self._shards, self._forget_bias = initializer, num_unit_shards, forget_bias
        self._windows = _Windows("TimeFreqLSTMCell", feature_size, frequency_skip)

    @property
    def state_size(self) -> int:
        return 2 * self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        units, start = self._num_units, self._initializer
        self._count = self._windows.count(input_depth(self, inputs_shape))
        rows = self._windows.size + 2 * units
        self._kernel = sharded_weight(self, "W", [rows, 4 * units], self._shards, start)
        self._bias = self.add_weight("B", [4 * units], initializer=zeros_initializer)
        if self._use_peepholes:
            self._of_f, self._of_i, self._of_o = (
                self.add_weight(f"W_{gate}_diag", [units], initializer=start) for gate in "FIO"
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        before: Any = split(state, 2 * self._count, 1)
        kernel = joined_rows(self._kernel)
        lower = zeros([shape(inputs)[0], self._num_units], inputs.dtype)
        outputs, after = [], []
        for x, c, h in zip(self._windows.cut(inputs, 0, self._count), before[::2], before[1::2], strict=True):
            gates: Any = split(affine([x, h, lower], kernel, self._bias), 4, 1)
            c, lower = self._step(gates, c)
            outputs.append(lower)
            after += [c, lower]
        return concat(outputs, 1), concat(after, 1)

    def _step(self, gates: Any, c: Any) -> tuple[Any, Any]:
        i, j, f, o = gates
        f = f + self._forget_bias
        if self._use_peepholes:
            i, f = i + c * self._of_i, f + c * self._of_f
        c = clipped(sigmoid(f) * c + sigmoid(i) * tanh(j), self._cell_clip)
        return c, sigmoid(o + c * self._of_o if self._use_peepholes else o) * tanh(c)


class _Windows:
    """Windows of `size` values, `skip` apart, along the last axis of a cell's inputs."""

    def __init__(self, cell: str, size: int | None, skip: int | None) -> None:
        if not size or not skip or size < 1 or skip < 1:
            raise InvalidArgumentError(
                f"{cell}: feature_size is {size} and frequency_skip {skip}; two numbers above zero are required"
            )
        self.size, self._skip = size, skip

    def count(self, length: int) -> int:
        """Returns how many windows are in `length` values."""
        return (length - self.size) // self._skip + 1

    def cut(self, inputs: Any, start: int, count: int) -> list[Any]:
        """Returns the windows from `start` on."""
        begins = [start + i * self._skip for i in range(count)]
        return [inputs[:, begin : begin + self.size] for begin in begins]


class _Weights:
    """Kernel, bias and peepholes of the LSTM along one direction of a grid: frequency or time.

    The peepholes of gates I, F and O are pairs: to c along frequency, and to c along time; a gate may have none.
    """

    def __init__(self, kernel: list[Any], bias: Any, peepholes: dict[str, tuple[Any, Any]]) -> None:
        self._kernel, self._bias, self._peepholes = kernel, bias, peepholes

    def gates(self, parts: list[Any], count: int) -> list[Any]:
        """Returns the gates before their activation."""
        made: Any = split(affine(parts, joined_rows(self._kernel), self._bias), count, 1)
        return list(made)

    def opened(self, gate: str, x: Any, along: Any, across: Any) -> Any:
        """Returns a gate's activation; along, across: c of frequency and of time, for its peepholes."""
        if gate not in self._peepholes:
            return sigmoid(x)
        to_along, to_across = self._peepholes[gate]
        return sigmoid(x + to_along * along + to_across * across)


class GridLSTMCell(RNNCell):
    """LSTMs along time and along the frequencies of the inputs, which see each other (Kalchbrenner et al. 2015).

    The inputs are cut into windows of feature_size values, frequency_skip apart, in blocks with weights of their own:
    num_frequency_blocks says how many windows each block has, start_freqindex_list and end_freqindex_list where it
    begins and ends; without them there is one block of all. share_time_frequency_weights: both LSTMs have the same
    weights. couple_input_forget_gates: the forget gate is 1 - the input gate. use_peepholes: the gates see c of both.
    cell_clip: bound of |c|.

    The state has c and h of each window along time, in a named tuple of type `state_tuple_type` (state_is_tuple), or
    side by side. The output, [batch, 2 num_units windows], has h along time and h along frequency of each window. For
    block number n the variables are W_f_n_0, ..., B_f_n, W_t_n_0, ..., B_t_n, W_I_diag_freqf_n and the like.
    """

    _directions: tuple[str, ...] = ("",)
    _tuple_name = "GridLSTMStateTuple"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        label = type(self).__name__
        starts, ends = list(start_freqindex_list or ()), list(end_freqindex_list or ())
        blocks = None if num_frequency_blocks is None else list(num_frequency_blocks)
        if not blocks or not len(starts) == len(ends) or len(blocks) != (len(starts) or 1):
            raise InvalidArgumentError(
                f"{label}: num_frequency_blocks is {blocks}, start_freqindex_list {starts} and end_freqindex_list "
                f"{ends}; one number of windows, one start and one end for each block are required"
            )
        self._num_units, self._use_peepholes, self._shared = num_units, use_peepholes, share_time_frequency_weights
        self._cell_clip, self._initializer, self._shards = cell_clip, initializer, num_unit_shards
        self._forget_bias, self._coupled, self._state_is_tuple = forget_bias, couple_input_forget_gates, state_is_tuple
        self._windows = _Windows(label, feature_size, frequency_skip)
        self._blocks, self._starts, self._ends = blocks, starts, ends
        self._count = sum(blocks) * len(self._directions)
        self._tuple_type = _tuple_type(self._tuple_name, self._fields()) if state_is_tuple else None

    def _fields(self) -> list[str]:
        prefixes = [f"{d}_state" if d else "state" for d in self._directions]
        return [
            f"{prefix}_f{frequency:02d}_b{block:02d}_{part}"
            for prefix in prefixes for block, count in enumerate(self._blocks) for frequency in range(count)
            for part in "cm"
        ]  # fmt: skip

    @property
    def state_tuple_type(self) -> Any:
        """The type of the state, None where it is a tensor."""
        return self._tuple_type

    @property
    def state_size(self) -> Any:
        sizes = [self._num_units] * (2 * self._count)
        return sum(sizes) if self._tuple_type is None else self._tuple_type(*sizes)

    @property
    def output_size(self) -> int:
        return 2 * self._num_units * self._count

    def build(self, inputs_shape: Any) -> None:
        self._check_blocks(input_depth(self, inputs_shape))
        self._weights: dict[tuple[str, int], tuple[_Weights, _Weights]] = {}
        for direction in self._directions:
            scope = f"{direction}/" if direction else ""
            for block in range(len(self._blocks)):
                frequency = self._weights_of(scope, "f", "freq", block)
                time = frequency if self._shared else self._weights_of(scope, "t", "time", block)
                self._weights[direction, block] = frequency, time
        self.built = True

    def _check_blocks(self, length: int) -> None:
        starts, ends = self._starts or [0], self._ends or [length]
        for count, start, end in zip(self._blocks, starts, ends, strict=True):
            found = self._windows.count(end - start)
            if found != count:
                raise InvalidArgumentError(
                    f"cell '{self.name}': num_frequency_blocks is {self._blocks}, and the inputs' values from {start} "
                    f"to {end} have {found} windows of {self._windows.size}; as many are required"
                )

    def _weights_of(self, scope: str, short: str, name: str, block: int) -> _Weights:
        units, start, gates = self._num_units, self._initializer, 3 if self._coupled else 4
        rows = self._windows.size + 2 * units
        kernel = sharded_weight(self, f"{scope}W_{short}_{block}", [rows, gates * units], self._shards, start)
        bias = self.add_weight(f"{scope}B_{short}_{block}", [gates * units], initializer=zeros_initializer)
        peepholes = {}
        if self._use_peepholes:
            for gate in "IO" if self._coupled else "FIO":
                to_both = [f"{scope}W_{gate}_diag_{name}{to}_{block}" for to in "ft"]
                peepholes[gate] = tuple(self.add_weight(n, [units], initializer=start) for n in to_both)
        return _Weights(kernel, bias, peepholes)  # type: ignore[arg-type]  # pairs: one for each of "ft"

    def call(self, inputs: Any, state: Any) -> Any:
        before: Any = nest.flatten(state) if self._state_is_tuple else split(state, 2 * self._count, 1)
        left, outputs, after = list(before), [], []
        for direction in self._directions:
            for block, windows in enumerate(self._cut(inputs, direction)):
                own, left = left[: 2 * len(windows)], left[2 * len(windows) :]
                made, states = self._along(windows, own, *self._weights[direction, block])
                outputs += made
                after += states
        return concat(outputs, 1), concat(after, 1) if self._tuple_type is None else self._tuple_type(*after)

    def _cut(self, inputs: Any, direction: str) -> list[list[Any]]:
        """Returns the windows of each block."""
        starts = self._starts or [0]
        return [self._windows.cut(inputs, start, n) for start, n in zip(starts, self._blocks, strict=True)]

    def _along(
        self, windows: list[Any], before: list[Any], frequency: _Weights, time: _Weights
    ) -> tuple[list[Any], list[Any]]:
        """Returns the outputs and the next state of a block, window by window."""
        h_along = c_along = zeros([shape(windows[0])[0], self._num_units], windows[0].dtype)
        outputs, after = [], []
        for x, c, h in zip(windows, before[::2], before[1::2], strict=True):
            parts, count = [x, h, h_along], 3 if self._coupled else 4
            gates = frequency.gates(parts, count)
            gates_of_time = gates if self._shared else time.gates(parts, count)
            next_along = self._remembered(frequency, gates, c_along, c_along, c)
            c = self._remembered(time, gates_of_time, c, c_along, c)
            c_along = next_along
            h_along = frequency.opened("O", gates[-1], c_along, c) * tanh(c_along)
            h = time.opened("O", gates_of_time[-1], c_along, c) * tanh(c)
            outputs += [h, h_along]
            after += [c, h]
        return outputs, after

    def _remembered(self, weights: _Weights, gates: list[Any], own: Any, along: Any, across: Any) -> Any:
        """Returns the next c of one direction, of its own before and of those of both for the peepholes."""
        i = weights.opened("I", gates[0], along, across)
        f = 1 - i if self._coupled else weights.opened("F", gates[2] + self._forget_bias, along, across)
        return clipped(f * own + i * tanh(gates[1]), self._cell_clip)


def _tuple_type(name: str, fields: list[str]) -> Any:
    return namedtuple(name, fields)


class BidirectionalGridLSTMCell(GridLSTMCell):
    """`GridLSTMCell` that runs along the frequencies both ways, with weights in scopes fwd and bwd.

    backward_slice_offset: how much further up the windows of the way back begin; a negative number moves them down. The
    output has the parts of the way forth, then those of the way back.
    """

    _directions = ("fwd", "bwd")
    _tuple_name = "BidirectionalGridLSTMStateTuple"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: Any = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer, num_unit_shards,
            forget_bias, feature_size, frequency_skip, num_frequency_blocks, start_freqindex_list,
            end_freqindex_list, couple_input_forget_gates, True, reuse,
        )  # fmt: skip
        self._offset = int(backward_slice_offset)

    def _cut(self, inputs: Any, direction: str) -> list[list[Any]]:
        if direction == "fwd":
            return super()._cut(inputs, direction)
        offset = self._offset
        padded = pad(inputs, [[0, 0], [max(-offset, 0), max(offset, 0)]]) if offset else inputs
        moved = padded[:, offset:] if offset > 0 else padded
        return [windows[::-1] for windows in super()._cut(moved, direction)]

"""Cells around other cells: stacks, dropout, residuals, devices."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.arrays import concat, split
from timberframe.api.dropout import dropout
from timberframe.api.framework import device
from timberframe.api.random import random_uniform
from timberframe.api.unary import floor
from timberframe.api.variable_scope import variable_scope
from timberframe.recurrent.base import RNNCell
from timberframe.recurrent.cells import LSTMStateTuple
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor


class MultiRNNCell(RNNCell):
    """Cells one after the other, each with the output of the one before as its inputs.

    state_is_tuple: the state is a tuple of the cells' states, else all of them side by side along axis 1.
    """

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, Sequence):
            raise InvalidTypeError(f"MultiRNNCell: cells is {cells!r}; a list of cells is required")
        self._cells = list(cells)
        if not self._cells or not all(isinstance(c, RNNCell) for c in self._cells):
            raise InvalidArgumentError(f"MultiRNNCell: cells is {cells!r}; a list of cells, one at least, is required")
        if not state_is_tuple and any(nest.is_nested(c.state_size) for c in self._cells):
            raise InvalidArgumentError(
                "MultiRNNCell: state_is_tuple is False and a cell's state is a tuple; the cells need it False, too"
            )
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = tuple(c.state_size for c in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    @property
    def variables(self) -> list[Any]:
        return [v for c in self._cells for v in c.variables]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(c.zero_state(batch_size, dtype) for c in self._cells)

    def call(self, inputs: Any, state: Any) -> Any:
        if self._state_is_tuple and len(state) != len(self._cells):
            raise InvalidArgumentError(
                f"MultiRNNCell: {len(state)} states for {len(self._cells)} cells; one for each is required"
            )
        states = state if self._state_is_tuple else split(state, [c.state_size for c in self._cells], 1)
        current, after = inputs, []
        for i, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{i}"):
                current, new = cell(current, own)
            after.append(new)
        return current, tuple(after) if self._state_is_tuple else concat(after, 1)


class CellWrapper(RNNCell):
    """Base of cells around one other cell, with whose variables and sizes they are."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        if not isinstance(cell, RNNCell):
            raise InvalidArgumentError(f"{type(self).__name__}: cell is {cell!r}; an RNNCell is required")
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    @property
    def variables(self) -> list[Any]:
        return self._cell.variables

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        return self.call(inputs, state, scope)  # no scope of its own: the variables are the inner cell's

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        raise NotImplementedError


class DropoutWrapper(CellWrapper):
    """Dropout of a cell's inputs, states and outputs; the probabilities are those of keeping a value.

    variational_recurrent: the same values are dropped in all steps of a run (Gal and Ghahramani 2016); it needs dtype,
    and input_size where inputs are dropped. dropout_state_filter_visitor: a function of each part of the state that
    says whether values of it are dropped; by default all are but the c of an LSTM.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(cell)
        self._keep = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for what, keep in self._keep.items():
            if isinstance(keep, int | float) and not 0 < keep <= 1:
                raise InvalidArgumentError(f"DropoutWrapper: {what}_keep_prob is {keep}; it must be in (0, 1]")
        self._seed, self._filter = seed, dropout_state_filter_visitor or _not_memory
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise InvalidArgumentError("DropoutWrapper: variational_recurrent is set and dtype None; give it")
            self._draw_once(input_size, dtype)

    def _draw_once(self, input_size: Any, dtype: Any) -> None:
        sizes = {"input": input_size, "state": self._cell.state_size, "output": self._cell.output_size}
        for what, keep in self._keep.items():
            if isinstance(keep, int | float) and keep >= 1:
                continue
            if sizes[what] is None:
                raise InvalidArgumentError(
                    "DropoutWrapper: variational_recurrent with input_keep_prob needs input_size; it is None"
                )
            leaves = nest.flatten(sizes[what])
            drawn = [
                random_uniform([1, *([n] if isinstance(n, int) else n)], seed=self._seed_of(what, i), dtype=dtype)
                for i, n in enumerate(leaves)
            ]
            self._noise[what] = nest.pack_sequence_as(sizes[what], drawn)

    def _seed_of(self, what: str, index: int) -> int | None:
        """Returns a seed for each part, as TensorFlow makes them from the one given."""
        if self._seed is None:
            return None
        text = f"{self._seed}{what}_{index}"
        return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _dropped(self, what: str, values: Any, dropped: Callable[[Any], Any]) -> Any:
        keep = self._keep[what]
        if isinstance(keep, int | float) and keep >= 1:
            return values
        leaves, chosen = nest.flatten(values), nest.flatten(dropped(values))
        noise = nest.flatten(self._noise[what]) if self._noise else [None] * len(leaves)
        made = [
            x if not drops else self._one(x, keep, drawn, self._seed_of(what, i))
            for i, (x, drops, drawn) in enumerate(zip(leaves, chosen, noise, strict=True))
        ]
        return nest.pack_sequence_as(values, made)

    def _one(self, value: Any, keep: Any, drawn: Any, seed: int | None) -> Any:
        if drawn is None:
            return dropout(value, keep_prob=keep, seed=seed)
        x = convert_to_tensor(value)
        result = x / keep * floor(drawn + keep)
        result.set_shape(x.static_shape)
        return result

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        inputs = self._dropped("input", inputs, _everything)
        output, after = self._cell(inputs, state, scope)
        after = self._dropped("state", after, lambda s: _chosen(s, self._filter))
        return self._dropped("output", output, _everything), after


def _everything(values: Any) -> Any:
    return nest.map_structure(lambda _: True, values)


def _not_memory(part: Any) -> Any:
    """Returns all parts of a state but what an LSTM remembers: without it, it forgets at
    random (TensorFlow's default).
    """
    return LSTMStateTuple(c=False, h=True) if isinstance(part, LSTMStateTuple) else True


def _chosen(state: Any, visit: Callable[[Any], Any]) -> Any:
    """For each tensor of a state whether values of it are dropped."""
    if isinstance(state, LSTMStateTuple) or not nest.is_nested(state):
        answer = visit(state)
        return answer if nest.is_nested(answer) else nest.map_structure(lambda _: answer, state)
    if isinstance(state, dict):
        return {key: _chosen(x, visit) for key, x in state.items()}
    return [_chosen(x, visit) for x in state]


class ResidualWrapper(CellWrapper):
    """Adds a cell's inputs to its outputs, or what residual_fn makes of (inputs, outputs)."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(cell)
        self._residual_fn = residual_fn

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        output, after = self._cell(inputs, state, scope)
        if self._residual_fn is not None:
            return self._residual_fn(inputs, output), after
        return nest.map_structure(_sum, inputs, output), after


def _sum(x: Any, y: Any) -> Any:
    added, to = convert_to_tensor(x), convert_to_tensor(y)
    added.shape.assert_is_compatible_with(to.shape)
    return apply_op("AddV2", [added, to])


class DeviceWrapper(CellWrapper):
    """Puts a cell on a device, a name or a function of operations."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with device(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        with device(self._device):
            return self._cell(inputs, state, scope)

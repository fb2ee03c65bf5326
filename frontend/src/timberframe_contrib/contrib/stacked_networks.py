"""Stacks of networks that run both ways along time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.variable_scope import variable_scope
from timberframe.recurrent.dynamic import bidirectional_dynamic_rnn
from timberframe.recurrent.static import static_bidirectional_rnn
from timberframe_core.errors import InvalidArgumentError


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """`tf.nn.bidirectional_dynamic_rnn` layer by layer, each on both outputs of the one before, side by side.

    Returns (outputs of the last layer side by side, last states of all layers forwards, last states backwards). The
    variables are in scopes cell_0, cell_1, ... of `stack_bidirectional_rnn`.
    """
    states_fw, states_bw = _checked("stack_bidirectional_dynamic_rnn", cells_fw, cells_bw, initial_states_fw,
                                    initial_states_bw)  # fmt: skip
    last_fw, last_bw, layer = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw, state_fw, state_bw) in enumerate(zip(cells_fw, cells_bw, states_fw, states_bw, strict=True)):
            with variable_scope(f"cell_{i}"):
                outputs, (after_fw, after_bw) = bidirectional_dynamic_rnn(
                    fw, bw, layer, sequence_length, state_fw, state_bw, dtype, time_major=time_major
                )
                layer = concat(list(outputs), 2)
            last_fw.append(after_fw)
            last_bw.append(after_bw)
    return layer, tuple(last_fw), tuple(last_bw)


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Sequence[Any],
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:
    """`stack_bidirectional_dynamic_rnn` of a list of inputs, by `tf.nn.static_bidirectional_rnn`."""
    states_fw, states_bw = _checked("stack_bidirectional_rnn", cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    last_fw, last_bw, layer = [], [], list(inputs)
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw, state_fw, state_bw) in enumerate(zip(cells_fw, cells_bw, states_fw, states_bw, strict=True)):
            with variable_scope(f"cell_{i}"):
                layer, after_fw, after_bw = static_bidirectional_rnn(
                    fw, bw, layer, state_fw, state_bw, dtype, sequence_length
                )
            last_fw.append(after_fw)
            last_bw.append(after_bw)
    return layer, tuple(last_fw), tuple(last_bw)


def _checked(function: str, fw: Any, bw: Any, states_fw: Any, states_bw: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Returns the first states of all layers, None where none are given."""
    if not isinstance(fw, list | tuple) or not isinstance(bw, list | tuple) or len(fw) != len(bw) or not fw:
        raise InvalidArgumentError(
            f"tf.contrib.rnn.{function}: cells_fw is {fw!r}, cells_bw {bw!r}; two lists of equal length are required"
        )
    for what, given in (("initial_states_fw", states_fw), ("initial_states_bw", states_bw)):
        if given is not None and (not isinstance(given, list | tuple) or len(given) != len(fw)):
            raise InvalidArgumentError(
                f"tf.contrib.rnn.{function}: {what} is {given!r}; a state for each of {len(fw)} layers is required"
            )
    none = [None] * len(fw)
    return states_fw or none, states_bw or none

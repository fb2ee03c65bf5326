"""Networks that run a cell along time in a loop of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import reverse, shape
from timberframe.api.framework import convert_to_tensor
from timberframe.api.indexing import reverse_sequence
from timberframe.api.selection import cast, where
from timberframe.api.tensor_array import TensorArray
from timberframe.api.variable_scope import variable_scope
from timberframe.api.while_loops import while_loop
from timberframe.recurrent.base import RNNCell, zeros_for
from timberframe.recurrent.steps import (
    check_cell,
    check_rank,
    ends,
    first_state,
    kept,
    lengths_of,
    transpose_batch_time,
)
from timberframe_core import nest
from timberframe_core.dtypes import as_dtype, int32, int64
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


def dynamic_rnn(
    cell: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Returns a cell's outputs for all steps, and its last state.

    inputs: [batch, time, ...], or [time, batch, ...] if time_major; or a structure of such tensors. sequence_length:
    the number of steps of each row; after them its outputs are zero and its state stays. initial_state: zeros of
    `dtype` if None. dtype: of the outputs; that of the state if None. The outputs are [batch, time, *output_size], or
    time first. parallel_iterations and swap_memory are TensorFlow's and change nothing. The variables are in scope
    `rnn`, unless `scope` says another.
    """
    check_cell("dynamic_rnn", cell)
    with variable_scope(scope or "rnn"):
        given = nest.map_structure(convert_to_tensor, inputs)
        check_rank(given, time_major)
        steps = given if time_major else nest.map_structure(transpose_batch_time, given)
        first = nest.flatten(steps)[0]
        sizes = shape(first)
        known = first.static_shape
        count: Any = sizes[0] if known is None or known[0] is None else known[0]
        batch: Any = sizes[1] if known is None or known[1] is None else known[1]
        lengths = lengths_of(sequence_length, batch)
        state = first_state(cell, initial_state, batch, dtype, "dynamic_rnn")
        of_outputs = nest.flatten(state)[0].dtype if dtype is None else as_dtype(dtype).base_dtype
        outputs, last = _run(cell, steps, count, batch, lengths, state, of_outputs)
    return outputs if time_major else nest.map_structure(transpose_batch_time, outputs), last


def _run(
    cell: Any, steps: Any, count: Any, batch: Any, lengths: Tensor | None, state: Any, dtype: Any
) -> tuple[Any, Any]:
    leaves = nest.flatten(steps)
    arrays = [TensorArray(x.dtype, count, element_shape=x.shape[1:]).unstack(x) for x in leaves]
    known_batch = batch if isinstance(batch, int) else None
    sizes = [TensorShape(s) if not isinstance(s, int) else TensorShape([s]) for s in nest.flatten(cell.output_size)]
    made = [TensorArray(dtype, count, element_shape=[known_batch, *s.as_list()]) for s in sizes]

    def step(time: Any, outputs: list[TensorArray], before: Any) -> Any:
        now = []
        for array, x in zip(arrays, leaves, strict=True):
            value = array.read(time)
            value.set_shape(x.shape[1:])
            now.append(value)
        output, after = cell(nest.pack_sequence_as(steps, now), before)
        nest.assert_same_structure(before, after, check_types=False)
        output, after = ends(time, lengths, output, before, after)
        written = [a.write(time, y) for a, y in zip(outputs, nest.flatten(output), strict=True)]
        return apply_op("AddV2", [time, 1]), written, after

    _, made, last = while_loop(
        lambda time, *_: apply_op("Less", [time, count]),
        step,
        (convert_to_tensor(0, int32), made, state),
        maximum_iterations=count,
    )
    results = [a.stack() for a in made]
    known_count = count if isinstance(count, int) else None
    for result, s in zip(results, sizes, strict=True):
        result.set_shape([known_count, known_batch, *s.as_list()])
    return nest.pack_sequence_as(cell.output_size, results), last


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns two `dynamic_rnn`, the second from the end of each row: ((outputs, outputs), (last state, last state)).

    The outputs of both are in the order of time. The variables are in scopes `fw` and `bw` of `bidirectional_rnn`.
    """
    check_cell("bidirectional_dynamic_rnn", cell_fw)
    check_cell("bidirectional_dynamic_rnn", cell_bw)
    along, across = (0, 1) if time_major else (1, 0)

    def reversed_(x: Any) -> Any:
        if sequence_length is None:
            return reverse(x, [along])
        return reverse_sequence(x, cast(convert_to_tensor(sequence_length), int64), seq_axis=along, batch_axis=across)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            outputs_fw, last_fw = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope=forward
            )
        with variable_scope("bw") as backward:
            backwards = nest.map_structure(lambda x: reversed_(convert_to_tensor(x)), inputs)
            outputs, last_bw = dynamic_rnn(
                cell_bw, backwards, sequence_length, initial_state_bw, dtype, time_major=time_major, scope=backward
            )
    return (outputs_fw, nest.map_structure(reversed_, outputs)), (last_fw, last_bw)


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Returns a cell whose inputs, states and end a function decides: (outputs as TensorArrays,
    last state, last loop state).

    loop_fn(time, cell_output, cell_state, loop_state) returns (finished, next_input, next_state, emit_output,
    next_loop_state). At time 0 cell_output and cell_state are None; emit_output is then an example of what is written
    (None for outputs of the cell's size). finished: [batch] of bool; rows that have finished emit zeros and keep their
    state. loop_state may be None.
    """
    check_cell("raw_rnn", cell)
    with variable_scope(scope or "rnn"):
        zero = convert_to_tensor(0, int32)
        finished, now, state, example, extra = loop_fn(zero, None, None, None)
        first = nest.map_structure(convert_to_tensor, now)
        batch_size = shape(nest.flatten(first)[0])[0]
        dtype = nest.flatten(state)[0].dtype
        if example is None:
            emitted = nest.map_structure(lambda n: zeros_for(batch_size, n, dtype), cell.output_size)
        else:
            emitted = nest.map_structure(lambda x: _zeros_of(batch_size, convert_to_tensor(x)), example)
        arrays = [TensorArray(x.dtype, 0, True, element_shape=x.shape) for x in nest.flatten(emitted)]
        loop = [] if extra is None else [extra]

        def step(time: Any, done: Any, outputs: Any, inputs: Any, before: Any, loop: Any) -> Any:
            output, after = cell(inputs, before)
            over, following, after, emit, more = loop_fn(
                apply_op("AddV2", [time, 1]), output, after, loop[0] if loop else None
            )
            emit = output if emit is None else emit
            emit = nest.map_structure(lambda y: where(done, apply_op("ZerosLike", [y]), y), emit)
            after = nest.map_structure(lambda old, new: kept(done, old, new), before, after, check_types=False)
            written = [a.write(time, y) for a, y in zip(outputs, nest.flatten(emit), strict=True)]
            following_state = (loop if more is None else [more]) if loop else []
            all_done = apply_op("LogicalOr", [done, over])
            return apply_op("AddV2", [time, 1]), all_done, written, following, after, following_state

        _, _, arrays, _, last, loop = while_loop(
            lambda time, done, *_: apply_op("LogicalNot", [apply_op("All", [done, [0]])]),
            step,
            (zero, convert_to_tensor(finished), arrays, first, nest.map_structure(convert_to_tensor, state), loop),
        )
    return nest.pack_sequence_as(emitted, arrays), last, loop[0] if loop else None


def _zeros_of(batch: Any, example: Tensor) -> Tensor:
    """Returns zeros of the shape and dtype of an example of one row."""
    return zeros_for(batch, example.shape, example.dtype)

"""Networks that run a cell along a list of steps, each of which has nodes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import identity, shape
from timberframe.api.framework import control_dependencies, convert_to_tensor
from timberframe.api.indexing import reverse_sequence
from timberframe.api.selection import cast
from timberframe.api.variable_scope import variable_scope
from timberframe.recurrent.base import RNNCell
from timberframe.recurrent.steps import check_cell, ends, first_state, lengths_of
from timberframe_core import nest
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Returns a cell called once for each of a list of inputs [batch, ...]: the list of its
    outputs, and its last state.

    sequence_length: the number of steps of each row; after them its outputs are zero and its state stays.
    """
    check_cell("static_rnn", cell)
    if not isinstance(inputs, list | tuple) or not inputs:
        raise InvalidArgumentError(
            f"tf.nn.static_rnn: inputs is {inputs!r}; a list of tensors, one at least, is required"
        )
    with variable_scope(scope or "rnn") as opened:
        steps = [nest.map_structure(convert_to_tensor, x) for x in inputs]
        first = nest.flatten(steps[0])[0]
        known = (first.static_shape or (None,))[0]
        batch = shape(first)[0] if known is None else known
        lengths = lengths_of(sequence_length, batch)
        state = first_state(cell, initial_state, batch, dtype, "static_rnn")
        outputs = []
        for time, x in enumerate(steps):
            if time:
                opened.reuse_variables()
            output, after = cell(x, state)
            output, state = ends(time, lengths, output, state, after)
            outputs.append(output)
    return outputs, state


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`static_rnn` whose state goes on from one batch to the next.

    state_saver: an object with methods `state(name)`, which returns a state, and `save_state(name, value)`, which
    returns an operation that keeps it. state_name: a name, or for a state of several tensors a tuple of as many names.
    The last output and the returned state wait for the states to be kept.
    """
    check_cell("static_state_saving_rnn", cell)
    nested = nest.is_nested(cell.state_size)
    names = nest.flatten(state_name)
    if nested != nest.is_nested(state_name) or len(names) != len(nest.flatten(cell.state_size)):
        raise InvalidArgumentError(
            f"tf.nn.static_state_saving_rnn: state_name is {state_name!r} for a state of sizes {cell.state_size}; a "
            "name for each tensor of the state is required"
        )
    first = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, first, sequence_length=sequence_length, scope=scope)
    kept = [state_saver.save_state(name, x) for name, x in zip(names, nest.flatten(state), strict=True)]
    with control_dependencies(kept):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        return outputs, nest.map_structure(identity, state)


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Returns two `static_rnn`, the second from the end: outputs side by side along the last
    axis, and both last states.
    """
    check_cell("static_bidirectional_rnn", cell_fw)
    check_cell("static_bidirectional_rnn", cell_bw)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            fw, last_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward)
        with variable_scope("bw") as backward:
            backwards = _reversed(list(inputs), sequence_length)
            bw, last_bw = static_rnn(cell_bw, backwards, initial_state_bw, dtype, sequence_length, backward)
    pairs = zip(fw, _reversed(bw, sequence_length), strict=True)
    outputs = [nest.map_structure(lambda a, b: apply_op("ConcatV2", [[a, b], -1]), x, y) for x, y in pairs]
    return outputs, last_fw, last_bw


def _reversed(steps: list[Any], lengths: Any) -> list[Any]:
    """Returns a list of steps from each row's end."""
    if lengths is None:
        return steps[::-1]
    flat = [nest.flatten(x) for x in steps]
    turned = []
    for series in zip(*flat, strict=True):
        stacked = apply_op("Pack", [[convert_to_tensor(x) for x in series]], {"axis": 0})
        back = reverse_sequence(stacked, cast(convert_to_tensor(lengths), int64), seq_axis=0, batch_axis=1)
        turned.append(apply_op("Unpack", [back], {"num": len(steps), "axis": 0}))
    return [nest.pack_sequence_as(steps[0], list(x)) for x in zip(*turned, strict=True)]

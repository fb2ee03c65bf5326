"""What networks along time share: checks, first states, rows that are over."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import shape, transpose
from timberframe.api.framework import convert_to_tensor
from timberframe.api.selection import cast, where
from timberframe.recurrent.base import RNNCell
from timberframe_core import nest
from timberframe_core.arguments import brief
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape


def check_cell(function: str, cell: Any, module: str = "tf.nn") -> None:
    """Raises InvalidArgumentError for what is no cell."""
    if not isinstance(cell, RNNCell) and not (callable(cell) and hasattr(cell, "state_size")):
        raise InvalidArgumentError(f"{module}.{function}: cell is {cell!r}; an RNNCell is required")


def check_rank(inputs: Any, time_major: bool) -> None:
    """Raises InvalidArgumentError for inputs of `dynamic_rnn` that have no axis besides time and batch."""
    for tensor in nest.flatten(inputs):
        if tensor.static_shape is not None and len(tensor.static_shape) < 3:
            axes = "[time, batch, features]" if time_major else "[batch, time, features]"
            raise InvalidArgumentError(
                f"tf.nn.dynamic_rnn: inputs have shape {format_shape(tensor.static_shape)}; rank 3 at least, {axes}, "
                "is required"
            )


def lengths_of(given: Any, batch: Any) -> Tensor | None:
    """Returns the lengths of the rows as int32, None where all are whole."""
    if given is None:
        return None
    lengths: Tensor = cast(convert_to_tensor(given, name="sequence_length"), int32)
    if lengths.shape.ndims not in (None, 1):
        raise InvalidArgumentError(
            f"tf.nn.dynamic_rnn: sequence_length has shape {format_shape(lengths.static_shape)}; "
            "a vector of one length for each row is required"
        )
    known = (lengths.static_shape or (None,))[0]
    if isinstance(batch, int) and known not in (None, batch):
        raise InvalidArgumentError(
            f"tf.nn.dynamic_rnn: {known} sequence lengths for {batch} rows; one for each is required"
        )
    return lengths


def first_state(cell: Any, given: Any, batch: Any, dtype: Any, function: str) -> Any:
    """Returns the given state, or zeros."""
    if given is not None:
        try:
            nest.assert_same_structure(cell.state_size, given, check_types=False)
        except InvalidTypeError:
            raise InvalidTypeError(
                f"tf.nn.{function}: initial_state is {brief(given)}; tensors in the form of the cell's "
                f"state_size, {cell.state_size}, are required"
            ) from None
        return nest.map_structure(convert_to_tensor, given)
    if dtype is None:
        raise InvalidArgumentError(f"tf.nn.{function}: initial_state and dtype are None; give one of them")
    return cell.zero_state(batch, dtype)


def ends(time: Any, lengths: Tensor | None, output: Any, before: Any, after: Any) -> tuple[Any, Any]:
    """Output and state of a step: zeros and the state before for rows whose length it is past."""
    if lengths is None:
        return output, after
    over = apply_op("GreaterEqual", [time, lengths])
    output = nest.map_structure(lambda y: where(over, apply_op("ZerosLike", [y]), y), output)
    return output, nest.map_structure(lambda old, new: kept(over, old, new), before, after, check_types=False)


def kept(over: Tensor, old: Tensor, new: Tensor) -> Any:
    """Returns the old state of rows that are over, the new one of others; a scalar state always moves on."""
    return new if new.shape.ndims == 0 else where(over, old, new)


def transpose_batch_time(x: Any) -> Any:
    """Returns the first two axes of a tensor in the other order; it must have two at least."""
    given = convert_to_tensor(x)
    rank = given.shape.ndims
    if rank is not None and rank < 2:
        raise InvalidArgumentError(
            f"transpose_batch_time: x has shape {format_shape(given.static_shape)}; two axes at least are required"
        )
    if rank is not None:
        return transpose(given, [1, 0, *range(2, rank)])
    order = apply_op("ConcatV2", [[[1, 0], apply_op("Range", [2, apply_op("Rank", [given]), 1])], 0])
    return transpose(given, order)


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """Returns the size of the batch of inputs [time, batch, ...]: a number where the shape of
    one says it, else a tensor.
    """
    tensors = [convert_to_tensor(x) for x in flat_input]
    for given in tensors:
        known = given.static_shape
        if known is not None and len(known) < 2:
            raise InvalidArgumentError(
                f"best_effort_input_batch_size: input '{given.name}' has shape {format_shape(known)}; two axes at "
                "least are required"
            )
        if known is not None and known[1] is not None:
            return known[1]
    return shape(tensors[0])[1]

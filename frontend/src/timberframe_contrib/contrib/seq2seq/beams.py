"""Batches of beams: tiling, and walking back from the last step of a search to its first."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat, expand_dims, reshape, shape, tile, transpose
from timberframe.api.constants import range as counted
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.indexing import batch_gather, sequence_mask
from timberframe.api.reduction import cumsum, reduce_max
from timberframe.api.selection import cast, where, where_v2
from timberframe.api.tensor_array import TensorArray
from timberframe.api.while_loops import while_loop
from timberframe_core import nest
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Returns each row `multiplier` times, one after the other. t: tensors [batch, ...], one or a structure of them."""
    with name_scope(name, "tile_batch"):
        return nest.map_structure(lambda x: _tiled(convert_to_tensor(x), multiplier), t)


def _tiled(x: Tensor, multiplier: int) -> Tensor:
    known = x.static_shape
    if not known:
        raise InvalidArgumentError(
            f"tf.contrib.seq2seq.tile_batch: '{x.name}' has shape {format_shape(known)}; rank 1 or more is required"
        )
    sizes: Any = shape(x)
    repeated = tile(expand_dims(x, 1), [1, multiplier] + [1] * (len(known) - 1))
    result: Tensor = reshape(repeated, concat([[sizes[0] * multiplier], sizes[1:]], 0))
    result.set_shape([None if known[0] is None else known[0] * multiplier, *known[1:]])
    return result


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Tensor:
    """Returns the whole sequences of a beam search, from the last step of each beam back to the first.

    step_ids: what each beam chose at each step, [time, batch, beams]. parent_ids: the beam of the step before that it
    went on from, of the same shape. max_sequence_lengths: [batch], the number of steps of each row; the steps after
    these, and those after the first end_token of a beam, are end_token. Returns [time, batch, beams].
    """
    with name_scope(name, "GatherTree"):
        ids = convert_to_tensor(step_ids, name="step_ids")
        parents = cast(convert_to_tensor(parent_ids, name="parent_ids"), int32)
        for what, given in (("step_ids", ids), ("parent_ids", parents)):
            if given.shape.ndims not in (None, 3):
                raise InvalidArgumentError(
                    f"tf.contrib.seq2seq.gather_tree: {what} has shape {format_shape(given.static_shape)}; "
                    "[time, batch, beams] is required"
                )
        end = convert_to_tensor(end_token, ids.dtype, "end_token")
        lengths = convert_to_tensor(max_sequence_lengths, int32, "max_sequence_lengths")
        found = _walked_back(ids, parents, lengths, end)
        ended = cumsum(cast(apply_op("Equal", [found, end]), int32), axis=0, exclusive=True)
        result: Tensor = where_v2(apply_op("Greater", [ended, 0]), end, found)
        result.set_shape(ids.static_shape)
        return result


def _walked_back(ids: Tensor, parents: Tensor, lengths: Tensor, end: Tensor) -> Any:
    """For each beam of the last step what was chosen at each step on its way."""
    sizes = shape(ids)
    time, batch, beams = sizes[0], sizes[1], sizes[2]
    of_steps = [TensorArray(x.dtype, time, element_shape=x.shape[1:]).unstack(x) for x in (ids, parents)]
    out = TensorArray(ids.dtype, time, element_shape=ids.shape[1:])
    start = tile(expand_dims(counted(beams), 0), apply_op("Pack", [[batch, 1]]))

    def step(t: Any, out: TensorArray, beam: Any) -> Any:
        inside = apply_op("Less", [t, lengths])
        chosen, before = (batch_gather(x.read(t), beam) for x in of_steps)
        out = out.write(t, where_v2(expand_dims(inside, 1), chosen, end))
        return apply_op("Sub", [t, 1]), out, where(inside, before, beam)

    _, out, _ = while_loop(
        lambda t, *_: apply_op("GreaterEqual", [t, 0]),
        step,
        (apply_op("Sub", [time, 1]), out, start),
        ([], None, [None, None]),
    )
    return out.stack()


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """Returns what each beam's way through a search had at each step.

    t: values of the beams at each step, [time, batch, beams, ...], a tensor or an array of its steps. parent_ids:
    [time, batch, beams]. sequence_length: [batch, beams]; steps after it have the values that are there.
    """
    values = t.stack() if isinstance(t, TensorArray) else convert_to_tensor(t)
    parents = convert_to_tensor(parent_ids)
    sizes: Any = shape(parents)
    own = tile(reshape(counted(sizes[2]), [1, 1, -1]), apply_op("Pack", [[sizes[0], sizes[1], 1]]))
    longest = cast(reduce_max(sequence_length, axis=1), int32)
    ways = gather_tree(own, parents, longest, sizes[2] + 1)
    inside = transpose(sequence_mask(sequence_length, sizes[0]), [2, 0, 1])
    ways = where(inside, ways, own)
    all_sizes = shape(values)
    flat = reshape(values, concat([all_sizes[:2], [all_sizes[2], -1]], 0))
    result = reshape(batch_gather(flat, ways), all_sizes)
    result.set_shape(values.static_shape)
    return result

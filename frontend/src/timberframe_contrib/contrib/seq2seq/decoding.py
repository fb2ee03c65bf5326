"""What runs a decoder until all its sequences are finished."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from timberframe.api.arrays import shape
from timberframe.api.constants import fill, zeros_like
from timberframe.api.framework import convert_to_tensor, get_static_value
from timberframe.api.selection import where
from timberframe.api.tensor_array import TensorArray
from timberframe.api.variable_scope import variable_scope
from timberframe.api.while_loops import while_loop
from timberframe.recurrent.base import zeros_for
from timberframe.recurrent.steps import transpose_batch_time
from timberframe_core import nest
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape


class Decoder:
    """Base of decoders, which `dynamic_decode` runs: `initialize` once, then `step` until all sequences are finished.

    A sequence is a row of the batch, or a row and beam where `finished` is [batch, beams].
    """

    @property
    def batch_size(self) -> Any:
        """The number of rows, an integer or a scalar tensor."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Sizes of a step's outputs without the batch: integers or TensorShapes, in the structure of the outputs."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Dtypes of a step's outputs, in their structure."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` says of each sequence that it is finished, even where it said so before."""
        return False

    @property
    def most_steps(self) -> Any:
        """The greatest number of steps, an integer or a scalar tensor, where it is known before they run, else None."""
        return None

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished, inputs, state) of the first step."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """(outputs, next state, next inputs, finished)."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Returns what is made of all outputs, time first, and of the last state, at the end."""
        raise NotImplementedError


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs a decoder until all its sequences are finished: (outputs, last state, lengths of the sequences).

    The outputs are [batch, time, ...], or [time, batch, ...] if output_time_major. impute_finished: outputs of finished
    sequences are zero and their states stay. maximum_iterations: the greatest number of steps, a scalar.
    parallel_iterations and swap_memory are TensorFlow's and change nothing. The variables are in scope `decoder`,
    unless `scope` says another.
    """
    if not isinstance(decoder, Decoder):
        raise InvalidTypeError(f"tf.contrib.seq2seq.dynamic_decode: decoder is {decoder!r}; a Decoder is required")
    with variable_scope(scope, "decoder"):
        most = None if maximum_iterations is None else convert_to_tensor(maximum_iterations, int32)
        if most is not None and most.static_shape not in ((), None):
            raise InvalidArgumentError(
                f"tf.contrib.seq2seq.dynamic_decode: maximum_iterations has shape {format_shape(most.static_shape)}; "
                "a scalar is required"
            )
        outputs, state, lengths = _run(decoder, impute_finished, most)
        with suppress(NotImplementedError):  # most decoders have nothing left to do
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
    return outputs, state, lengths


def _run(decoder: Decoder, imputes: bool, most: Tensor | None) -> tuple[Any, Any, Any]:
    """Returns all outputs, time first, the last state, and the lengths."""
    finished, inputs, state = decoder.initialize()
    finished = convert_to_tensor(finished)
    inputs, state = _as_tensors(inputs), _as_tensors(state)
    if most is not None:
        finished = apply_op("LogicalOr", [finished, apply_op("LessEqual", [most, 0])])

    # Arrays of known size can be dense tensors. One of maximum_iterations steps could be much larger than is needed.
    bound = decoder.most_steps

    def create_array(size: Any, dtype: Any) -> TensorArray:
        shape = _element_shape(decoder.batch_size, size)
        return TensorArray(dtype, 0 if bound is None else bound, dynamic_size=bound is None, element_shape=shape)

    arrays = nest.map_structure(create_array, decoder.output_size, decoder.output_dtype, check_types=False)
    nothing = nest.map_structure(
        lambda size, dtype: zeros_for(decoder.batch_size, size, dtype), decoder.output_size, decoder.output_dtype
    )

    def step(time: Any, arrays: Any, before: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
        outputs, after, following, over = decoder.step(time, inputs, before)
        after, following = _as_tensors(after), _as_tensors(following)
        nest.assert_same_structure(before, after, check_types=False)
        nest.assert_same_structure(inputs, following, check_types=False)
        following_time = apply_op("AddV2", [time, 1])
        lengths = where(finished, lengths, fill(shape(lengths), following_time))
        if imputes:
            outputs = nest.map_structure(lambda y, zero: where(finished, zero, y), outputs, nothing, check_types=False)
            after = nest.map_structure(lambda new, old: _kept(finished, new, old), after, before, check_types=False)
        arrays = nest.map_structure(lambda array, y: array.write(time, y), arrays, outputs, check_types=False)
        over = over if decoder.tracks_own_finished else apply_op("LogicalOr", [over, finished])
        return following_time, arrays, after, following, over, lengths

    count, arrays, state, _, _, lengths = while_loop(
        lambda time, arrays, state, inputs, finished, lengths: apply_op("LogicalNot", [_all(finished)]),
        step,
        (convert_to_tensor(0, int32), arrays, state, inputs, finished, zeros_like(finished, int32)),
        maximum_iterations=bound if most is None else most,
    )
    return nest.map_structure(lambda array: array.stack()[:count], arrays), state, lengths


def _as_tensors(structure: Any) -> Any:
    return nest.map_structure(lambda x: x if isinstance(x, TensorArray) else convert_to_tensor(x), structure)


def _element_shape(batch_size: Any, size: Any) -> TensorShape:
    """Returns the shape of a step's output; unknown where its size is no shape."""
    if not isinstance(size, TensorShape | int) or (isinstance(size, TensorShape) and size.ndims is None):
        return TensorShape(None)
    known = get_static_value(convert_to_tensor(batch_size))
    return TensorShape([None if known is None else int(known)]).concatenate(
        TensorShape([size] if isinstance(size, int) else size)
    )


def _all(finished: Tensor) -> Any:
    return apply_op("All", [finished, list(range(finished.shape.ndims or 0))])


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """Returns the new part of a state, for finished sequences the old one; arrays and scalars always move on."""
    if isinstance(new, TensorArray) or new.shape.ndims == 0:
        return new
    new.set_shape(old.static_shape)
    return where(finished, old, new)

"""Helpers: what samples from a decoder's outputs and chooses its next inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import concat, shape, size, tile
from timberframe.api.assertions import assert_less_equal
from timberframe.api.composites import embedding_lookup
from timberframe.api.constants import zeros
from timberframe.api.control_flow import cond
from timberframe.api.framework import control_dependencies, convert_to_tensor, name_scope
from timberframe.api.random import multinomial
from timberframe.api.reduction import argmax, reduce_all
from timberframe.api.selection import cast
from timberframe.api.tensor_array import TensorArray
from timberframe.recurrent.steps import transpose_batch_time
from timberframe_core import nest
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape


class Helper:
    """Base of helpers: `initialize` gives a decoder's first inputs, `sample` and `next_inputs` those that follow."""

    @property
    def batch_size(self) -> Any:
        """The number of rows."""
        raise NotImplementedError

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of one row's sample."""
        raise NotImplementedError

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of the samples."""
        raise NotImplementedError

    @property
    def most_steps(self) -> Any:
        """The greatest number of steps, an integer or a scalar tensor, where it is known before they run, else None."""
        return None

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished, inputs) of the first step."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Returns the samples from a step's outputs."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, inputs, state) of the next step."""
        raise NotImplementedError


class _HelperOfRows(Helper):
    """Base of helpers that keep what they say of their rows; a sample is one integer unless they say another."""

    _batch_size: Any = None
    _sample_ids_shape = TensorShape([])
    _sample_ids_dtype: Any = int32
    _start_inputs: Any = None

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return none_finished(self._batch_size), self._start_inputs


class CustomHelper(_HelperOfRows):
    """A helper made of functions.

    initialize_fn() returns (finished, inputs); sample_fn(time, outputs, state) samples;
    next_inputs_fn(time, outputs, state, sample_ids) returns (finished, inputs, state).
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn, self._sample_fn, self._next_inputs_fn = initialize_fn, sample_fn, next_inputs_fn
        self._sample_ids_shape, self._sample_ids_dtype = (
            TensorShape(sample_ids_shape or []),
            as_dtype(sample_ids_dtype or int32),
        )

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise WrongStateError("CustomHelper: batch_size is unknown before initialize; call that first")
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "CustomHelperSample"):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "CustomHelperNextInputs"):
            result: tuple[Any, Any, Any] = self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
            return result


class TrainingHelper(_HelperOfRows):
    """The inputs are known: those of a training batch. The samples are the classes of the greatest outputs.

    inputs: [batch, time, ...], or [time, batch, ...] if time_major; or a tuple or dict of such. sequence_length: the
    number of steps of each row.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        with name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            given = (
                convert_to_tensor(inputs) if isinstance(inputs, list) else nest.map_structure(convert_to_tensor, inputs)
            )
            self._inputs = given
            steps = given if time_major else nest.map_structure(transpose_batch_time, given)
            self._most_steps = _rows(nest.flatten(steps)[0])
            self._arrays = nest.map_structure(unstacked, steps)
            self._lengths = self._checked(vector_of("TrainingHelper", "sequence_length", sequence_length))
            self._batch_size = _rows(self._lengths)

    def _checked(self, lengths: Tensor) -> Any:
        """Returns the lengths, checked in the run to be at most the number of steps that the inputs have."""
        most = cast(convert_to_tensor(self._most_steps), lengths.dtype)
        check = assert_less_equal(
            lengths, most, message="TrainingHelper: sequence_length is greater than the number of steps of inputs"
        )
        with control_dependencies([check]):
            return apply_op("Identity", [lengths])

    @property
    def inputs(self) -> Any:
        """The inputs of all steps."""
        return self._inputs

    @property
    def most_steps(self) -> Any:
        # A class of the user's own may go on after its inputs.
        return self._most_steps if type(self).__module__.startswith("timberframe_contrib.") else None

    @property
    def sequence_length(self) -> Any:
        """The number of steps of each row."""
        return self._lengths

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, "TrainingHelperInitialize"):
            finished = apply_op("Equal", [self._lengths, 0])
            return finished, self._read(0)

    def _read(self, time: Any) -> Any:
        """Returns the inputs of a step; zeros after the last one."""
        index = apply_op("Minimum", [time, self._most_steps])
        return nest.map_structure(lambda array: array.read(index), self._arrays)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        with name_scope(name, "TrainingHelperSample", [time, outputs]):
            return cast(argmax(outputs, axis=-1), int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "TrainingHelperNextInputs", [time, outputs]):
            following = apply_op("AddV2", [time, 1])
            finished = apply_op("GreaterEqual", [cast(following, self._lengths.dtype), self._lengths])
            return finished, self._read(following), state


class GreedyEmbeddingHelper(_HelperOfRows):
    """The next inputs are the embeddings of the classes of the greatest outputs.

    embedding: a function of class numbers, or a table of their embeddings. start_tokens: the first class of each row.
    end_token: the class that finishes a row.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        kind = type(self).__name__
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = vector_of(kind, "start_tokens", convert_to_tensor(start_tokens, int32))
        self._end_token = end_token_of(kind, end_token)
        self._start_inputs = self._embedding_fn(self._start_tokens)
        self._batch_size = _rows(self._start_tokens)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return cast(argmax(_one_tensor(type(self).__name__, outputs), axis=-1), int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = apply_op("Equal", [sample_ids, self._end_token])
        following = cond(reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids))
        return finished, following, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next inputs are the embeddings of classes drawn at random by the outputs, which are logits.

    softmax_temperature: a number by which the logits are divided; above 1 the draws are more even.
    """

    def __init__(
        self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        logits = _one_tensor("SampleEmbeddingHelper", outputs)
        return drawn_classes(logits if self._temperature is None else logits / self._temperature, self._seed)


class InferenceHelper(_HelperOfRows):
    """The samples are those of a function, and the next inputs what another function makes of them.

    sample_fn(outputs) samples, of sample_shape and sample_dtype for each row; end_fn(sample_ids) says which rows are
    finished; next_inputs_fn(sample_ids) gives the next inputs, which are the samples themselves if it is None.
    """

    def __init__(
        self, sample_fn: Callable[[Any], Any], sample_shape: Any, sample_dtype: Any, start_inputs: Any,
        end_fn: Callable[[Any], Any], next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._sample_ids_shape, self._sample_ids_dtype = TensorShape(sample_shape), as_dtype(sample_dtype)
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = _rows(self._start_inputs)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        following = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), following, state


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """Returns a function of class numbers: the one given, or look-ups in the table given."""
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


def drawn_classes(logits: Any, seed: int | None) -> Any:
    """Returns a class for each row of logits, drawn at random; int32."""
    return apply_op("Squeeze", [multinomial(logits, 1, seed, output_dtype=int32)], {"squeeze_dims": [1]})


def unstacked(steps: Tensor) -> TensorArray:
    """Returns the steps of a tensor, time first, as an array, with one of zeros after the last.

    A decoder reads that one before it sees that all rows are finished. A branch that did not read would keep the loop
    from having its steps as one dense tensor.
    """
    nothing = zeros(concat([[1], shape(steps)[1:]], 0), steps.dtype)
    count: Any = _rows(steps)
    return TensorArray(steps.dtype, count + 1, element_shape=steps.shape[1:]).unstack(concat([steps, nothing], 0))


def vector_of(kind: str, what: str, given: Any) -> Tensor:
    """Returns integers, one for each row; InvalidArgumentError for another rank."""
    tensor: Tensor = convert_to_tensor(given, name=what)
    if tensor.shape.ndims not in (None, 1):
        raise InvalidArgumentError(
            f"{kind}: {what} has shape {format_shape(tensor.static_shape)}; a vector of one for each row is required"
        )
    return tensor


def end_token_of(kind: str, given: Any) -> Tensor:
    """Returns the class that ends a row; InvalidArgumentError for what is no scalar."""
    tensor: Tensor = convert_to_tensor(given, int32, "end_token")
    if tensor.static_shape not in ((), None):
        raise InvalidArgumentError(
            f"{kind}: end_token has shape {format_shape(tensor.static_shape)}; a scalar is required"
        )
    return tensor


def none_finished(batch_size: Any) -> Any:
    """False for each row."""
    return tile([False], apply_op("Reshape", [batch_size, [1]]))


def _rows(tensor: Tensor) -> Any:
    """Returns the size of the first axis, an integer where it is known."""
    known = (tensor.static_shape or (None,))[0]
    return shape(tensor)[0] if known is None else known


def _one_tensor(kind: str, outputs: Any) -> Tensor:
    if nest.is_nested(outputs):
        raise InvalidTypeError(f"{kind}: outputs is {outputs!r}; a single tensor is required")
    return convert_to_tensor(outputs)

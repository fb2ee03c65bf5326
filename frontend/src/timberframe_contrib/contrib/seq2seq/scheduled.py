"""Helpers for scheduled sampling: at random a decoder in training gets what it sampled (Bengio et al. 2015)."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.constants import fill
from timberframe.api.control_flow import cond
from timberframe.api.framework import convert_to_tensor, name_scope
from timberframe.api.random import random_uniform
from timberframe.api.reduction import reduce_all, reduce_any
from timberframe.api.selection import where
from timberframe.recurrent.steps import transpose_batch_time
from timberframe_contrib.contrib.seq2seq.helpers import TrainingHelper, drawn_classes, embedding_function, unstacked
from timberframe_core import nest
from timberframe_core.dtypes import bool_
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """A training helper that at random gives the embedding of a class drawn by the outputs as next inputs.

    embedding: a function of class numbers, or a table. sampling_probability: of a draw, a scalar or one for each row.
    The samples are -1 where none was drawn. seed: of the draws; scheduling_seed: of whether there is one.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, embedding: Any, sampling_probability: Any, time_major: bool = False,
        seed: int | None = None, scheduling_seed: int | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = embedding_function(embedding)
            self._probability = _probability(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample"):
            noise = random_uniform([self.batch_size], seed=self._scheduling_seed)
            chosen = apply_op("Less", [noise, self._probability])
            return where(chosen, drawn_classes(outputs, self._seed), fill([self.batch_size], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs"):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
            drawn = apply_op("GreaterEqual", [sample_ids, 0])

            def mixed() -> Any:
                found = self._embedding_fn(where(drawn, sample_ids, apply_op("ZerosLike", [sample_ids])))
                return where(drawn, found, given)

            return finished, cond(reduce_all(finished), lambda: given, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """A training helper that at random gives the outputs themselves as next inputs.

    sampling_probability: of that, a scalar or one for each row. The samples are True where it happens.
    next_inputs_fn: a function, or a layer, that makes inputs of outputs. auxiliary_inputs: joined to the inputs along
    the last axis in either case.
    """

    _sample_ids_dtype = bool_

    def __init__(
        self, inputs: Any, sequence_length: Any, sampling_probability: Any, time_major: bool = False,
        seed: int | None = None, next_inputs_fn: Any = None, auxiliary_inputs: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._next_inputs_fn = next_inputs_fn
        if next_inputs_fn is not None and not callable(next_inputs_fn):
            raise InvalidTypeError(
                f"ScheduledOutputTrainingHelper: next_inputs_fn is {next_inputs_fn!r}; a function is required"
            )
        with name_scope(name, "ScheduledOutputTrainingHelper"):
            self._probability, self._seed = _probability(sampling_probability), seed
            self._auxiliary = None
            if auxiliary_inputs is not None:
                extra = nest.map_structure(convert_to_tensor, auxiliary_inputs)
                inputs = nest.map_structure(lambda x, y: concat([x, y], -1), inputs, extra)
                steps = extra if time_major else nest.map_structure(transpose_batch_time, extra)
                self._auxiliary = nest.map_structure(unstacked, steps)
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledOutputTrainingHelperSample"):
            noise = random_uniform([self.batch_size], seed=self._seed)
            return apply_op("Less", [noise, self._probability])

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs"):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
            nothing_to_do = apply_op(
                "LogicalOr", [reduce_all(finished), apply_op("LogicalNot", [reduce_any(sample_ids)])]
            )

            def mixed() -> Any:
                return nest.map_structure(lambda x, y: where(sample_ids, x, y), self._made(outputs, time), given)

            return finished, cond(nothing_to_do, lambda: given, mixed), state

    def _made(self, outputs: Any, time: Any) -> Any:
        """Inputs made of outputs."""
        made = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
        if self._auxiliary is None:
            return made
        following = apply_op("AddV2", [time, 1])
        return nest.map_structure(lambda x, array: concat([x, array.read(following)], -1), made, self._auxiliary)


def _probability(given: Any) -> Tensor:
    tensor: Tensor = convert_to_tensor(given, name="sampling_probability")
    if tensor.shape.ndims not in (0, 1):
        raise InvalidArgumentError(
            f"sampling_probability has shape {format_shape(tensor.static_shape)}; a scalar or vector is required"
        )
    return tensor

"""Feature columns of sequences: several steps of categories or of numbers in each example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe.api.arrays import reshape, shape
from timberframe.api.examples import VarLenFeature
from timberframe.api.reduction import reduce_max
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_to_dense
from timberframe_contrib.feature_column.columns import (
    CategoricalColumn,
    FeatureColumn,
    Features,
    Numbers,
    categorical_column_with_identity,
    cells,
    feature,
    numeric_column,
)
from timberframe_contrib.feature_column.words import (
    categorical_column_with_hash_bucket,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from timberframe_core.dtypes import as_dtype, float32, int64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


class SequenceColumn(FeatureColumn):
    """A column that may have a fixed number of numbers for each of several steps."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers a step has."""

    @abstractmethod
    def sequence(self, features: Features, trainable: bool = True) -> tuple[Tensor, Tensor]:
        """Returns the numbers [batch, steps, size], float32, and how many steps each example has, int64."""


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """A column of categories of which an example has some for each of several steps."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """The categories'."""
        return self.categorical_column.name

    @property
    def num_buckets(self) -> int:
        """The categories'."""
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The categories'."""
        return self.categorical_column.parse_example_spec

    def ids(self, features: Features) -> Tensor:
        """Returns an error: examples have steps, and no categories of their own."""
        raise InvalidArgumentError(
            f"column '{self.name}': is of sequences; tf.contrib.feature_column.sequence_input_layer is required for "
            "it, or a categorical_column without sequence_"
        )


@dataclass(frozen=True)
class SequenceNumericColumn(Numbers, SequenceColumn):
    """See `sequence_numeric_column`."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(self.dtype)}

    def sequence(self, features: Features, trainable: bool = True) -> tuple[Tensor, Tensor]:
        """Returns the feature's numbers, normalized, and the numbers of steps."""
        given = feature(features, self.key)
        made = {self.key: given if self.normalizer_fn is None else self.normalizer_fn(given)}
        values = cells(made, self.key, np.array(self.default_value, self.dtype.numpy))
        lengths = _lengths(_present(made[self.key], values))
        if values.shape.ndims == 2:
            whole = apply_op("AddV2", [lengths, convert_to_tensor(self.size - 1, int64)])
            lengths = apply_op("FloorDiv", [whole, convert_to_tensor(self.size, int64)])
        return reshape(cast(values, float32), [shape(values)[0], -1, self.size]), lengths


def of_steps(
    column: SequenceCategoricalColumn,
    features: Features,
    dense: Callable[[CategoricalColumn, Features], Tensor],
    size: int,
) -> tuple[Tensor, Tensor]:
    """Returns what a function makes of the categories of each step: [batch, steps, size], and the numbers of steps.

    dense(column, features): [rows, size] of features whose rows are all steps of all examples.
    """
    keys = list(column.parse_example_spec)
    values = {key: cells(features, key) for key in keys}
    lengths = _lengths(_present(feature(features, keys[0]), values[keys[0]]))
    count: Any = shape(values[keys[0]])[:2]
    steps = {key: reshape(x, [-1, 1]) if x.shape.ndims == 2 else _rows(x) for key, x in values.items()}
    made = dense(column.categorical_column, steps)
    return reshape(made, apply_op("ConcatV2", [[count, [size]], 0])), lengths


def _rows(values: Tensor) -> Tensor:
    """[examples, steps, ...] as [all steps, ...], the rest in one axis."""
    sizes: Any = shape(values)
    rows: Any = reshape(values, apply_op("Pack", [[sizes[0] * sizes[1], -1]], {"axis": 0}))
    rows.set_shape([None, None])
    return rows  # type: ignore[no-any-return]  # a Tensor


def _present(given: Any, values: Tensor) -> Tensor:
    """Returns where a feature has values: where a SparseTensor has elements, and where others
    have no -1 or empty string.
    """
    found: Tensor
    if hasattr(given, "dense_shape"):
        return sparse_to_dense(given.indices, given.dense_shape, True, False, validate_indices=False)
    if values.dtype.is_floating:
        found = apply_op("OnesLike", [apply_op("Equal", [values, values])])
    else:
        nothing = convert_to_tensor("" if values.dtype is string else np.array(-1, values.dtype.numpy))
        found = apply_op("NotEqual", [values, nothing])
    return found


def _lengths(present: Tensor) -> Tensor:
    """Returns one more than the position of the last step with a value, of each example."""
    sizes: Any = shape(present, out_type=int64)
    steps = (
        present if present.shape.ndims == 2 else apply_op("Any", [present, list(range(2, present.shape.ndims or 2))])
    )
    positions = apply_op("Range", [convert_to_tensor(1, int64), sizes[1] + 1, convert_to_tensor(1, int64)])
    return reduce_max(apply_op("Mul", [cast(steps, int64), positions]), 1)


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """Returns a column of steps of numbers, of a feature that is a SparseTensor [batch, any length].

    shape: of a step's numbers, which come one after the other. default_value: for missing ones. normalizer_fn: a
    function of the feature as it is given.
    """
    checked = numeric_column(key, shape, None, dtype)
    if not (checked.dtype.is_integer or checked.dtype.is_floating):
        raise InvalidArgumentError(
            f"sequence_numeric_column '{key}': dtype is {checked.dtype.name}; a number's is required"
        )
    return SequenceNumericColumn(key, checked.shape, default_value, as_dtype(dtype), normalizer_fn)


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """`categorical_column_with_identity` of steps."""
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = string
) -> SequenceCategoricalColumn:
    """`categorical_column_with_hash_bucket` of steps."""
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = string,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_file` of steps."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_list` of steps."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )

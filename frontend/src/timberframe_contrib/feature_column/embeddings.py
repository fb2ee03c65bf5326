"""Dense columns of categories: how often there is each, and learned vectors of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from timberframe.api.arithmetic import divide_no_nan
from timberframe.api.arrays import expand_dims
from timberframe.api.composites import clip_by_norm
from timberframe.api.framework import add_to_collection, get_collection
from timberframe.api.indexing import gather
from timberframe.api.random_initializers import truncated_normal_initializer
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.variable_scope import get_variable
from timberframe.train.checkpoint_utils import init_from_checkpoint
from timberframe_contrib.feature_column.columns import CategoricalColumn, DenseColumn, Features, counts
from timberframe_contrib.feature_column.crosses import WeightedColumn
from timberframe_contrib.feature_column.sequences import SequenceCategoricalColumn, SequenceColumn, of_steps
from timberframe_core.dtypes import float32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

COMBINERS = ("mean", "sqrtn", "sum")


class _OfCategories(DenseColumn, SequenceColumn):
    """Base of dense columns of a column of categories, or of sequences of such."""

    categorical_column: CategoricalColumn

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The categories'."""
        return self.categorical_column.parse_example_spec

    @abstractmethod
    def _of(self, column: CategoricalColumn, features: Features, trainable: bool) -> Tensor:
        """Returns the numbers for a column's categories."""

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """Returns the numbers for the categories of each example."""
        return self._of(self.categorical_column, features, trainable)

    def sequence(self, features: Features, trainable: bool = True) -> tuple[Tensor, Tensor]:
        """Returns the numbers for the categories of each step."""
        column = self.categorical_column
        if not isinstance(column, SequenceCategoricalColumn):
            raise InvalidArgumentError(
                f"sequence_input_layer: column '{column.name}' is not of sequences; a sequence_categorical_column is "
                "required"
            )
        return of_steps(column, features, lambda inner, steps: self._of(inner, steps, trainable), self.size)


@dataclass(frozen=True)
class IndicatorColumn(_OfCategories):
    """See `indicator_column`."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """The categories', with an ending."""
        return f"{self.categorical_column.name}_indicator"

    @property
    def size(self) -> int:
        """As many as there are categories."""
        return self.categorical_column.num_buckets

    def _of(self, column: CategoricalColumn, features: Features, trainable: bool) -> Tensor:
        return counts(column, features)


@dataclass(frozen=True)
class EmbeddingColumn(_OfCategories):
    """See `embedding_column`, and for columns with a `shared` name `shared_embedding_columns`."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool
    max_norm: float | None = None
    checkpoint: tuple[str, str] | None = None
    shared: str | None = None

    @property
    def name(self) -> str:
        """The categories', with an ending."""
        return f"{self.categorical_column.name}_{'embedding' if self.shared is None else 'shared_embedding'}"

    @property
    def scope(self) -> str:
        """The shared name, or its own."""
        return self.shared or self.name

    @property
    def size(self) -> int:
        """The dimension."""
        return self.dimension

    def _of(self, column: CategoricalColumn, features: Features, trainable: bool) -> Tensor:
        return combined(self._weights(trainable), column, features, self.combiner, self.max_norm)

    def _weights(self, trainable: bool) -> Any:
        """Returns the variable ``embedding_weights``; that of a shared name is in a collection of this name."""
        shape = [self.categorical_column.num_buckets, self.dimension]
        known = [] if self.shared is None else get_collection(self.shared)
        if known:
            if len(known) > 1 or known[0].shape.as_list() != shape:
                raise InvalidArgumentError(
                    f"shared_embedding_columns: collection '{self.shared}' has {known}; one variable of shape {shape} "
                    "is required, or another shared_embedding_collection_name"
                )
            return known[0]
        learned = self.trainable and trainable
        weights = get_variable("embedding_weights", shape, float32, self.initializer, trainable=learned)
        if self.shared is not None:
            add_to_collection(self.shared, weights)
        if self.checkpoint is not None:
            init_from_checkpoint(self.checkpoint[0], {self.checkpoint[1]: weights})
        return weights


def combined(
    weights: Any, column: CategoricalColumn, features: Features, combiner: str, max_norm: float | None = None
) -> Tensor:
    """Returns the rows of weights of each example's categories, combined; zeros where an example has none."""
    ids, parts = column.ids(features), column.weights(features)
    given = cast(apply_op("GreaterEqual", [ids, convert_to_tensor(0, int64)]), float32)
    rows = gather(weights, apply_op("Maximum", [ids, convert_to_tensor(0, int64)]))
    if max_norm is not None:
        rows = clip_by_norm(rows, max_norm, -1)
    if parts is not None:
        given = apply_op("Mul", [given, parts if combiner == "sum" else apply_op("Relu", [parts])])
    total = reduce_sum(apply_op("Mul", [rows, expand_dims(given, -1)]), 1)
    if combiner == "sum":
        return total
    if combiner == "mean":
        return divide_no_nan(total, reduce_sum(given, 1, keepdims=True))
    return divide_no_nan(total, apply_op("Sqrt", [reduce_sum(apply_op("Square", [given]), 1, keepdims=True)]))


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """Returns a dense column that counts how often an example has each category, or adds the
    weights of categories up.
    """
    _check_categorical(categorical_column, "indicator_column")
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Returns a dense column with a learned vector for each category.

    combiner: how those of several are combined: mean, sqrtn or sum, with the categories' weights. initializer: a
    truncated normal of deviation 1/sqrt(dimension) if None. ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint, and
    the name of a variable in it with which the vectors begin. max_norm: longer vectors are shortened to this length.
    """
    _check_categorical(categorical_column, "embedding_column")
    how = _how("embedding_column", dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    return EmbeddingColumn(categorical_column, *how[:3], trainable, max_norm, how[3])


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[EmbeddingColumn]:
    """Columns as `embedding_column` makes them, which all have the same vectors: a list in the order of the columns.

    categorical_columns: of one kind and number of categories, weighted or of sequences or not. The vectors are a
    variable in a scope shared_embedding_collection_name, and in the graph's collection of that name; by default it is
    made of the names of the columns.
    """
    owner = "shared_embedding_columns"
    how = _how(owner, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    for column in categorical_columns:
        _check_categorical(column, owner)
    kinds = {(type(_innermost(c)).__name__, c.num_buckets) for c in categorical_columns}
    if len(kinds) != 1:
        raise InvalidArgumentError(
            f"{owner}: the columns have the kinds and numbers of categories {sorted(kinds)}; one kind and one number "
            "are "
            "required"
        )
    name = shared_embedding_collection_name
    name = name or "_".join([*sorted(c.name for c in categorical_columns), "shared_embedding"])
    return [EmbeddingColumn(c, *how[:3], trainable, max_norm, how[3], name) for c in categorical_columns]


def _innermost(column: CategoricalColumn) -> CategoricalColumn:
    while isinstance(column, WeightedColumn | SequenceCategoricalColumn):
        column = column.categorical_column
    return column


def _how(
    owner: str, dimension: int, combiner: str, initializer: Any, checkpoint: str | None, tensor: str | None
) -> tuple[int, str, Any, tuple[str, str] | None]:
    """Dimension, combiner, initializer, and the checkpoint and the name in it, checked."""
    if combiner not in COMBINERS:
        raise InvalidArgumentError(f"{owner}: combiner is {combiner!r}; one of {COMBINERS} is required")
    if dimension < 1:
        raise InvalidArgumentError(f"{owner}: dimension is {dimension}; it must be positive")
    if (checkpoint is None) != (tensor is None):
        raise InvalidArgumentError(
            f"{owner}: ckpt_to_load_from is {checkpoint!r} and tensor_name_in_ckpt {tensor!r}; give both or none"
        )
    source = None if checkpoint is None or tensor is None else (checkpoint, tensor)
    return dimension, combiner, initializer or truncated_normal_initializer(0.0, 1 / math.sqrt(dimension)), source


def _check_categorical(column: Any, owner: str) -> None:
    if not isinstance(column, CategoricalColumn):
        raise InvalidTypeError(f"{owner}: the column is {column!r}; a categorical column is required")

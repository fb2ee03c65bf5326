"""Indicators and embeddings of categories; the input of a network, and a linear model, of feature columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from timberframe.api.arrays import concat, expand_dims
from timberframe.api.indexing import gather
from timberframe.api.initializers import zeros_initializer
from timberframe.api.random_initializers import truncated_normal_initializer
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe.feature_column.columns import CategoricalColumn, DenseColumn, FeatureColumn, Features, counts
from timberframe_core.dtypes import float32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

_COMBINERS = ("mean", "sqrtn", "sum")


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
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

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The categories'."""
        return self.categorical_column.parse_example_spec

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """How often there is each category."""
        return counts(self.categorical_column, features)


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """See `embedding_column`."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    trainable: bool

    @property
    def name(self) -> str:
        """The categories', with an ending."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def size(self) -> int:
        """The dimension."""
        return self.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The categories'."""
        return self.categorical_column.parse_example_spec

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """The rows of a variable ``embedding_weights`` for the categories, combined."""
        column = self.categorical_column
        weights = get_variable(
            "embedding_weights",
            [column.num_buckets, self.dimension],
            float32,
            self.initializer,
            trainable=self.trainable and trainable,
        )
        return _combined(weights, column.ids(features), self.combiner)


def _combined(weights: Any, ids: Tensor, combiner: str) -> Tensor:
    """The rows of weights of each example's categories, combined; zeros where an example has none."""
    given = cast(apply_op("GreaterEqual", [ids, convert_to_tensor(0, int64)]), float32)
    rows = gather(weights, apply_op("Maximum", [ids, convert_to_tensor(0, int64)]))
    total = reduce_sum(apply_op("Mul", [rows, expand_dims(given, -1)]), 1)
    if combiner == "sum":
        return total
    number = apply_op("Maximum", [reduce_sum(given, 1, keepdims=True), 1.0])
    made: Tensor = total / (number if combiner == "mean" else apply_op("Sqrt", [number]))
    return made


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """A dense column that counts how often an example has each category."""
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
    """A dense column with a learned vector for each category.

    combiner: how those of several are combined: mean, sqrtn or sum. initializer: a truncated normal of deviation
    1/sqrt(dimension) if None. ckpt_to_load_from and max_norm must be None.
    """
    _check_categorical(categorical_column, "embedding_column")
    if combiner not in _COMBINERS:
        raise InvalidArgumentError(f"embedding_column: combiner is {combiner!r}; one of {_COMBINERS} is required")
    if dimension < 1:
        raise InvalidArgumentError(f"embedding_column: dimension is {dimension}; it must be positive")
    if ckpt_to_load_from is not None or max_norm is not None:
        raise UnimplementedError("embedding_column: ckpt_to_load_from or max_norm is given; both must be None")
    made = initializer or truncated_normal_initializer(0.0, 1 / math.sqrt(dimension))
    return EmbeddingColumn(categorical_column, dimension, combiner, made, trainable)


def _check_categorical(column: Any, owner: str) -> None:
    if not isinstance(column, CategoricalColumn):
        raise InvalidTypeError(f"{owner}: the column is {column!r}; a categorical column is required")


def input_layer(
    features: Features,
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """The numbers of dense columns side by side, by the order of the columns' names: [batch, sizes together].

    features: tensors by name. trainable: whether embeddings are trained. cols_to_output_tensors: gets the numbers of
    each column. The others are TensorFlow's and change nothing.
    """
    parts = []
    with variable_scope(None, "input_layer"):
        for column in _sorted(feature_columns, "input_layer"):
            if not isinstance(column, DenseColumn):
                raise InvalidArgumentError(
                    f"input_layer: column '{column.name}' is categorical; an indicator_column or embedding_column "
                    "of it is required"
                )
            with variable_scope(column.name):
                parts.append(column.dense(features, trainable))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
        return parts[0] if len(parts) == 1 else concat(parts, 1)


def linear_model(
    features: Features,
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A linear function of columns, dense or categorical: [batch, units].

    Each column has a variable ``weights`` in a scope of its name, beside ``bias_weights``; all begin with zeros.
    sparse_combiner: how the weights of several categories are combined: sum, mean or sqrtn. The others are those of
    `input_layer`.
    """
    if sparse_combiner not in _COMBINERS:
        raise InvalidArgumentError(f"linear_model: sparse_combiner is {sparse_combiner!r}; {_COMBINERS} are known")
    with variable_scope(None, "linear_model"):
        total: Any = None
        for column in _sorted(feature_columns, "linear_model"):
            with variable_scope(column.name):
                part = _weighted(column, features, units, sparse_combiner, trainable)
            total = part if total is None else total + part
        bias = get_variable("bias_weights", [units], float32, zeros_initializer(), trainable=trainable)
        made: Tensor = apply_op("BiasAdd", [total, bias], name="weighted_sum")
        return made


def _weighted(column: FeatureColumn, features: Features, units: int, combiner: str, trainable: bool) -> Tensor:
    def weights(rows: int) -> Any:
        return get_variable("weights", [rows, units], float32, zeros_initializer(), trainable=trainable)

    if isinstance(column, CategoricalColumn):
        return _combined(weights(column.num_buckets), column.ids(features), combiner)
    assert isinstance(column, DenseColumn)
    made: Tensor = apply_op("MatMul", [column.dense(features, trainable), weights(column.size)])
    return made


def _sorted(columns: Any, owner: str) -> list[FeatureColumn]:
    """The columns by name."""
    given = [columns] if isinstance(columns, FeatureColumn) else list(columns)
    for column in given:
        if not isinstance(column, FeatureColumn):
            raise InvalidTypeError(f"{owner}: feature_columns has {column!r}; feature columns are required")
    names = [c.name for c in given]
    if not given or len(set(names)) < len(names):
        raise InvalidArgumentError(f"{owner}: feature_columns have the names {names}; different ones are required")
    return sorted(given, key=lambda c: c.name)


def make_parse_example_spec(feature_columns: Iterable[FeatureColumn]) -> dict[str, Any]:
    """What `tf.parse_example` needs to give the features of these columns."""
    found: dict[str, Any] = {}
    for column in _sorted(feature_columns, "make_parse_example_spec"):
        for key, how in column.parse_example_spec.items():
            if found.setdefault(key, how) != how:
                raise InvalidArgumentError(
                    f"make_parse_example_spec: columns of feature '{key}' need {found[key]} and {how}; they must agree"
                )
    return found

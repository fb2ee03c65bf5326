"""What models begin with: dense columns side by side, steps of sequences, and a linear model of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe.api.arithmetic import add_n
from timberframe.api.arrays import concat, expand_dims, shape, tile
from timberframe.api.assertions import assert_equal
from timberframe.api.framework import GraphKeys, add_to_collection, control_dependencies, get_collection
from timberframe.api.initializers import zeros_initializer
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe_contrib.feature_column.columns import CategoricalColumn, DenseColumn, FeatureColumn, Features
from timberframe_contrib.feature_column.embeddings import COMBINERS, combined
from timberframe_contrib.feature_column.sequences import SequenceColumn
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


def input_layer(
    features: Features,
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """Returns the numbers of dense columns side by side, by the order of the columns' names: [batch, sizes together].

    features: tensors by name. weight_collections: collections that the variables join. trainable: whether embeddings
    are trained. cols_to_vars, cols_to_output_tensors: get the variables and the numbers of each column.
    """
    parts: list[Tensor] = []
    with variable_scope(None, "input_layer"):
        columns = _sorted(feature_columns, "input_layer")
        for column in columns:
            if not isinstance(column, DenseColumn):
                raise InvalidArgumentError(
                    f"input_layer: column '{column.name}' is {'of sequences' if _of_steps(column) else 'categorical'}; "
                    "an indicator_column or embedding_column of categories, or a numeric_column is required"
                )
            with _scope(column, weight_collections, cols_to_vars):
                parts.append(column.dense(features, trainable))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
        _check_examples("input_layer", columns, parts)
        return parts[0] if len(parts) == 1 else concat(parts, 1)


def _of_steps(column: FeatureColumn) -> bool:
    return isinstance(column, SequenceColumn)


@contextmanager
def _scope(column: FeatureColumn, collections: Sequence[str] | None, found: dict[Any, Any] | None) -> Iterator[None]:
    """A scope for a column; the variables that are made in it join the collections, and are noted in `found`."""
    with variable_scope(None, column.scope) as scope:
        yield
        made = get_collection(GraphKeys.GLOBAL_VARIABLES, f"{scope.name}/")
    for name in collections or ():
        for variable in made:
            if name != GraphKeys.GLOBAL_VARIABLES:
                add_to_collection(name, variable)
    if found is not None:
        found[column] = made


def linear_model(
    features: Features,
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """Returns a linear function of columns, dense or categorical: [batch, units].

    Each column has a variable ``weights`` in a scope of its name, beside ``bias_weights``; all begin with zeros.
    sparse_combiner: how the weights of several categories are combined: sum, mean or sqrtn. cols_to_vars: gets the
    variables of each column, and at "bias" a list of the bias. The others are those of `input_layer`.
    """
    if sparse_combiner not in COMBINERS:
        raise InvalidArgumentError(f"linear_model: sparse_combiner is {sparse_combiner!r}; {COMBINERS} are known")
    with variable_scope(None, "linear_model"):
        columns, parts = _sorted(feature_columns, "linear_model"), []
        for column in columns:
            with _scope(column, weight_collections, cols_to_vars):
                parts.append(_weighted(column, features, units, sparse_combiner, trainable))
        _check_examples("linear_model", columns, parts)
        total = add_n(parts, name="weighted_sum_no_bias")
        bias = get_variable("bias_weights", [units], float32, zeros_initializer(), trainable=trainable)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        made: Tensor = apply_op("BiasAdd", [total, bias], name="weighted_sum")
        return made


def _check_examples(owner: str, columns: Sequence[FeatureColumn], parts: Sequence[Tensor]) -> None:
    """Raises InvalidArgumentError where the numbers of examples are known to differ."""
    known = {c.name: x.shape.as_list()[0] for c, x in zip(columns, parts, strict=True) if x.shape.ndims}
    known = {name: examples for name, examples in known.items() if examples is not None}
    if len(set(known.values())) > 1:
        each = ", ".join(f"'{name}' {examples}" for name, examples in known.items())
        raise InvalidArgumentError(f"{owner}: columns have different numbers of examples: {each}; one is required")


def _weighted(column: FeatureColumn, features: Features, units: int, combiner: str, trainable: bool) -> Tensor:
    def weights(rows: int) -> Any:
        return get_variable("weights", [rows, units], float32, zeros_initializer(), trainable=trainable)

    if isinstance(column, CategoricalColumn):
        return combined(weights(column.num_buckets), column, features, combiner)
    if not isinstance(column, DenseColumn):
        raise InvalidArgumentError(f"linear_model: column '{column.name}' is of sequences; another one is required")
    made: Tensor = apply_op("MatMul", [column.dense(features, trainable), weights(column.size)])
    return made


def sequence_input_layer(
    features: Features,
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:
    """Returns the numbers of columns of sequences side by side, [batch, steps, sizes together], and
    the steps of each example.

    feature_columns: a sequence_numeric_column, or an indicator_column or embedding_column of a
    sequence_categorical_column. Their numbers of steps, [batch], must be the same, else the run is an error. The others
    are those of `input_layer`.
    """
    parts, lengths = [], []
    with variable_scope(None, "sequence_input_layer"):
        for column in _sorted(feature_columns, "sequence_input_layer"):
            if not isinstance(column, SequenceColumn):
                raise InvalidArgumentError(
                    f"sequence_input_layer: column '{column.name}' is not of sequences of numbers; an "
                    "indicator_column or "
                    "embedding_column of a sequence_categorical_column, or a sequence_numeric_column is required"
                )
            with _scope(column, weight_collections, None):
                values, length = column.sequence(features, trainable)
            parts.append(values)
            lengths.append(length)
        with control_dependencies([assert_equal(lengths[0], other) for other in lengths[1:]]):
            return concat(parts, -1), apply_op("Identity", [lengths[0]])


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Tensor:
    """Returns numbers of examples beside those of each of their steps: [batch, steps, d0 + d1].

    context_input: [batch, d1], float32. sequence_input: [batch, steps, d0], float32.
    """
    context, steps = convert_to_tensor(context_input), convert_to_tensor(sequence_input)
    for what, tensor, rank in (("context_input", context, 2), ("sequence_input", steps, 3)):
        if tensor.shape.ndims not in (None, rank) or tensor.dtype is not float32:
            raise InvalidArgumentError(
                f"concatenate_context_input: {what} is {tensor.dtype.name} of shape {tensor.shape}; float32 of rank "
                f"{rank} "
                "is required"
            )
    times = apply_op("Pack", [[1, shape(steps)[1], 1]], {"axis": 0})
    return concat([steps, tile(expand_dims(context, 1), times)], 2)


def _sorted(columns: Any, owner: str) -> list[FeatureColumn]:
    """Returns the columns by name."""
    given = [columns] if isinstance(columns, FeatureColumn) else list(columns)
    for column in given:
        if not isinstance(column, FeatureColumn):
            raise InvalidTypeError(f"{owner}: feature_columns has {column!r}; feature columns are required")
    names = [c.name for c in given]
    if not given or len(set(names)) < len(names):
        raise InvalidArgumentError(f"{owner}: feature_columns have the names {names}; different ones are required")
    return sorted(given, key=lambda c: c.name)


def make_parse_example_spec(feature_columns: Iterable[FeatureColumn]) -> dict[str, Any]:
    """Returns what `tf.parse_example` needs to give the features of these columns."""
    found: dict[str, Any] = {}
    for column in _sorted(feature_columns, "make_parse_example_spec"):
        for key, how in column.parse_example_spec.items():
            if found.setdefault(key, how) != how:
                raise InvalidArgumentError(
                    f"make_parse_example_spec: columns of feature '{key}' need {found[key]} and {how}; they must agree"
                )
    return found

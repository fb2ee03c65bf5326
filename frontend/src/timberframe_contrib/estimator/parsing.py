"""What `tf.parse_example` needs for the features, the labels and the weights of estimators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from timberframe.api.examples import FixedLenFeature
from timberframe_contrib.feature_column.columns import FeatureColumn, NumericColumn, numeric_column
from timberframe_contrib.feature_column.inputs import make_parse_example_spec
from timberframe_core.dtypes import as_dtype, float32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

Weights = str | NumericColumn | None


def classifier_parse_example_spec(
    feature_columns: Iterable[FeatureColumn],
    label_key: str,
    label_dtype: Any = int64,
    label_default: Any = None,
    weight_column: Weights = None,
) -> dict[str, Any]:
    """Returns what `tf.parse_example` needs for the features of columns, one label in feature label_key, and a weight.

    label_default: of examples without one. weight_column: the feature with the weights, or a numeric_column of it.
    """
    label = FixedLenFeature((1,), as_dtype(label_dtype), label_default)
    return _with_label("classifier_parse_example_spec", feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Iterable[FeatureColumn],
    label_key: str,
    label_dtype: Any = float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Weights = None,
) -> dict[str, Any]:
    """`classifier_parse_example_spec` with label_dimension numbers as the label."""
    label = FixedLenFeature((label_dimension,), as_dtype(label_dtype), label_default)
    return _with_label("regressor_parse_example_spec", feature_columns, label_key, label, weight_column)


def _with_label(
    owner: str, columns: Iterable[FeatureColumn], label_key: str, label: FixedLenFeature, weights: Weights
) -> dict[str, Any]:
    spec = make_parse_example_spec(columns)
    further: dict[str, Any] = {label_key: label}
    if weights is not None:
        column = numeric_column(weights) if isinstance(weights, str) else weights
        if not isinstance(column, NumericColumn):
            raise InvalidTypeError(
                f"{owner}: weight_column is {weights!r}; a feature's name or a numeric_column is required"
            )
        further.update(column.parse_example_spec)
    if taken := sorted(set(further) & set(spec)):
        raise InvalidArgumentError(
            f"{owner}: {taken} are features of columns, too; other names are required for the label and the weights"
        )
    return {**spec, **further}

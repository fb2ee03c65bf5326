"""Columns of categories made of other columns: crosses of several, and categories with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timberframe.api.arrays import expand_dims, shape
from timberframe.api.examples import VarLenFeature
from timberframe.api.indexing import gather_nd
from timberframe.api.selection import cast, where
from timberframe.api.sparse import sparse_tensor_to_dense
from timberframe.api.sparse_crosses import cross_hashed
from timberframe_contrib.feature_column.columns import (
    BucketizedColumn,
    CategoricalColumn,
    Features,
    batched,
    cells,
    feature,
)
from timberframe_contrib.feature_column.words import HashColumn
from timberframe_core.dtypes import DType, as_dtype, float32, int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """See `crossed_column`."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        """The names of what is crossed, in order."""
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self.leaves))

    @property
    def leaves(self) -> list[Any]:
        """The features and columns that are crossed, those of crosses among them."""
        found: list[Any] = []
        for key in self.keys:
            found += key.leaves if isinstance(key, CrossedColumn) else [key]
        return found

    @property
    def num_buckets(self) -> int:
        """How many buckets there are."""
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """What each of them needs."""
        found: dict[str, Any] = {}
        for key in self.keys:
            found.update({key: VarLenFeature(string)} if isinstance(key, str) else key.parse_example_spec)
        return found

    def ids(self, features: Features) -> Tensor:
        """Returns the buckets of all combinations."""
        crossed = cross_hashed([_crossable(key, features) for key in self.leaves], self.hash_bucket_size, self.hash_key)
        made = sparse_tensor_to_dense(crossed, -1)
        made.set_shape([None, None])
        return made


def _crossable(key: Any, features: Features) -> Any:
    """Returns a feature's strings or integers as they are, or the numbers of a column's
    categories, of those that are given.
    """
    if isinstance(key, str):
        given = feature(features, key)
        sparse = isinstance(given, SparseTensor | SparseTensorValue)
        values = SparseTensor.from_value(given) if sparse else batched(given, key)
        if values.dtype is not string and not values.dtype.is_integer:
            raise InvalidArgumentError(
                f"crossed_column: feature '{key}' has dtype {values.dtype.name}; strings or integers are required"
            )
        return expand_dims(values, -1) if isinstance(values, Tensor) and values.shape.ndims == 1 else values
    if key.weights(features) is not None:
        raise InvalidArgumentError(f"crossed_column: column '{key.name}' has weights; one without is required")
    places: Any = where(key.given(features))
    ids = key.ids(features)
    return SparseTensor(places, gather_nd(ids, places), shape(ids, out_type=int64))


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """See `weighted_categorical_column`."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        """The categories', with an ending."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def num_buckets(self) -> int:
        """The categories'."""
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the categories, and a feature of any length for the weights."""
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise InvalidArgumentError(
                f"weighted_categorical_column: feature '{self.weight_feature_key}' has the categories of column "
                f"'{self.categorical_column.name}'; another one is required for the weights"
            )
        return {**spec, self.weight_feature_key: VarLenFeature(self.dtype)}

    def ids(self, features: Features) -> Tensor:
        """Returns the categories'."""
        return self.categorical_column.ids(features)

    def given(self, features: Features) -> Tensor:
        """Returns the categories'."""
        return self.categorical_column.given(features)

    def weights(self, features: Features) -> Tensor:
        """Returns the feature's numbers, 0 where there is none."""
        values = cells(features, self.weight_feature_key, 0)
        if values.dtype != self.dtype:
            raise InvalidArgumentError(
                f"weighted_categorical_column: feature '{self.weight_feature_key}' has dtype {values.dtype.name}; "
                f"{self.dtype.name} is required"
            )
        numbers: Tensor = cast(values, float32)
        return numbers


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Returns a column of the combinations of categories, as numbers below hash_bucket_size; TensorFlow's are the same.

    keys: two at least: names of features of strings or integers, or columns of categories other than those by a hash,
    bucketized ones among them; the combinations of a crossed column are made again. hash_key: what the hashes begin
    with.
    """
    given = list(keys) if isinstance(keys, list | tuple) else [keys]
    if len(given) < 2 or hash_bucket_size < 1:
        raise InvalidArgumentError(
            f"crossed_column: {len(given)} keys for {hash_bucket_size} buckets; two keys at least and one bucket at "
            "least are required"
        )
    for key in given:
        if isinstance(key, HashColumn) or not isinstance(key, str | CategoricalColumn | BucketizedColumn):
            raise InvalidTypeError(
                f"crossed_column: keys has {key!r}; names of features and columns of categories are required, the "
                "feature's name for a column by a hash, a bucketized_column for a numeric one"
            )
    return CrossedColumn(tuple(given), hash_bucket_size, hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = float32
) -> WeightedColumn:
    """Returns a column of categories that count as much as the numbers of a feature say, one for each category."""
    kind = as_dtype(dtype)
    if not isinstance(categorical_column, CategoricalColumn):
        raise InvalidTypeError(
            f"weighted_categorical_column: the column is {categorical_column!r}; a categorical column is required"
        )
    if not (kind.is_integer or kind.is_floating):
        raise InvalidArgumentError(f"weighted_categorical_column: dtype is {kind.name}; a number's is required")
    return WeightedColumn(categorical_column, weight_feature_key, kind)

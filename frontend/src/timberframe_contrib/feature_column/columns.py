"""Feature columns: which features a model has, and how each becomes numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from timberframe.api.arrays import expand_dims, reshape, shape
from timberframe.api.assertions import assert_greater_equal, assert_less
from timberframe.api.examples import FixedLenFeature, VarLenFeature
from timberframe.api.framework import control_dependencies
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe_core.dtypes import DType, as_dtype, float32, int64, string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

Features = Mapping[str, Any]


class FeatureColumn(ABC):
    """How one feature, or several, become numbers."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name, which its variables have, too."""

    @property
    def scope(self) -> str:
        """The scope of its variables."""
        return self.name

    @property
    @abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """What `tf.parse_example` needs for it."""


class DenseColumn(FeatureColumn):
    """A column of a fixed number of numbers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many."""

    @abstractmethod
    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """Returns the numbers: [batch, size], float32."""


class CategoricalColumn(FeatureColumn):
    """A column of numbers of categories, of which an example may have several or none."""

    @property
    @abstractmethod
    def num_buckets(self) -> int:
        """How many categories there are."""

    @abstractmethod
    def ids(self, features: Features) -> Tensor:
        """Returns the numbers of the categories: [batch, at most], int64, with -1 where there is none."""

    def given(self, features: Features) -> Tensor:
        """Returns where the examples have something, which may be no category: [batch, at most], bool."""
        found: Tensor = apply_op("GreaterEqual", [self.ids(features), convert_to_tensor(0, int64)])
        return found

    def weights(self, features: Features) -> Tensor | None:
        """Returns how much each category counts: [batch, at most], float32; None where all count 1."""
        return None


@dataclass(frozen=True)
class Numbers:
    """A feature of numbers, of each example or of each of its steps."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        """The feature's."""
        return self.key

    @property
    def size(self) -> int:
        """The elements of its shape."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class NumericColumn(Numbers, DenseColumn):
    """See `numeric_column`."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of fixed length."""
        default = self.default_value
        if default is not None and not isinstance(default, list | tuple):
            default = [default] * self.size
        return {self.key: FixedLenFeature(list(self.shape), self.dtype, default)}

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """Returns the feature's elements, normalized."""
        values = batched(feature(features, self.key), self.key)
        if values.dtype is string:
            raise InvalidArgumentError(f"numeric_column '{self.key}': the feature has strings; numbers are required")
        if self.normalizer_fn is not None:
            values = batched(self.normalizer_fn(values), self.key)
        return reshape(cast(values, float32), [self._examples(values), self.size])

    def _examples(self, values: Tensor) -> Any:
        """Returns how many examples values of rank 1 or more have; InvalidArgumentError where
        they are known not to fit.
        """
        known = values.static_shape
        if known is not None and values.shape[1:].num_elements() not in (None, self.size):
            raise InvalidArgumentError(
                f"numeric_column '{self.key}': shape is {self.shape} and the feature has shape {format_shape(known)}; "
                f"[batch, {', '.join(map(str, self.shape))}] is required"
            )
        if known is None or known[0] is None:
            return shape(values)[0]
        return known[0]


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """See `bucketized_column`."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        """The source's, with an ending."""
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The source's."""
        return self.source_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        """The buckets of each element of the source."""
        return (len(self.boundaries) + 1) * self.source_column.size

    @property
    def size(self) -> int:
        """As many."""
        return self.num_buckets

    def ids(self, features: Features) -> Tensor:
        """Returns the bucket of each element: how many boundaries are not above it."""
        values = expand_dims(self.source_column.dense(features), -1)
        buckets = reduce_sum(cast(apply_op("GreaterEqual", [values, list(self.boundaries)]), int64), -1)
        offsets = [i * (len(self.boundaries) + 1) for i in range(self.source_column.size)]
        made: Tensor = apply_op("AddV2", [buckets, convert_to_tensor(offsets, int64)])
        return made

    def dense(self, features: Features, trainable: bool = True) -> Tensor:
        """Returns a 1 for each bucket."""
        return counts(self, features)


@dataclass(frozen=True)
class IdentityColumn(CategoricalColumn):
    """See `categorical_column_with_identity`."""

    key: str
    buckets: int
    default_value: int | None

    @property
    def name(self) -> str:
        """The feature's."""
        return self.key

    @property
    def num_buckets(self) -> int:
        """How many numbers there are."""
        return self.buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A feature of any length."""
        return {self.key: VarLenFeature(int64)}

    def ids(self, features: Features) -> Tensor:
        """Returns the feature itself; what is out of range becomes the default value, or is an error of the run."""
        values = matrix(features, self.key)
        if values.dtype is string or values.dtype.is_floating:
            raise InvalidArgumentError(
                f"categorical_column_with_identity '{self.key}': the feature has dtype {values.dtype.name}; "
                "integers are required"
            )
        numbers = cast(values, int64)
        if self.default_value is None:
            message = (
                f"categorical_column_with_identity '{self.key}': numbers from 0 to {self.buckets - 1} are required, or "
                "-1 for none"
            )
            least = assert_greater_equal(numbers, convert_to_tensor(-1, int64), message=message)
            below = assert_less(numbers, convert_to_tensor(self.buckets, int64), message=message)
            with control_dependencies([least, below]):
                found: Tensor = apply_op("Identity", [numbers])
                return found
        outside = apply_op(
            "LogicalOr", [apply_op("Less", [numbers, -1]), apply_op("GreaterEqual", [numbers, self.buckets])]
        )
        chosen: Tensor = apply_op("SelectV2", [outside, convert_to_tensor(self.default_value, int64), numbers])
        return chosen


def feature(features: Features, key: str) -> Any:
    """Returns a feature by its name; NotFoundError that lists the others where there is none."""
    if not isinstance(features, Mapping):
        raise InvalidTypeError(f"features are a {type(features).__name__}; feature columns require a dict of tensors")
    if key not in features:
        raise NotFoundError(
            f"feature '{key}': is not among the features {', '.join(map(str, features))}; it is required"
        )
    return features[key]


def batched(given: Any, key: str) -> Tensor:
    """Returns a feature's values as a tensor; InvalidArgumentError where it is known to have
    no dimension for the batch.
    """
    values = convert_to_tensor(given)
    if values.shape.ndims == 0:
        raise InvalidArgumentError(f"feature '{key}': has rank 0; [batch] or [batch, ...] is required")
    return values


def matrix(features: Features, key: str) -> Tensor:
    """Returns a feature as [batch, at most], with -1 or an empty string where a SparseTensor has nothing."""
    values = cells(features, key)
    return values if values.shape.ndims == 2 else reshape(values, [-1, math.prod(values.shape.as_list()[1:])])


def cells(features: Features, key: str, missing: Any = None) -> Tensor:
    """Returns a feature as a tensor of rank 2 or more.

    missing: what is where a SparseTensor has nothing, by default -1 or an empty string.
    """
    given = feature(features, key)
    if hasattr(given, "dense_shape"):
        from timberframe.api.sparse import sparse_tensor_to_dense

        default = ("" if given.dtype is string else -1) if missing is None else missing
        given = sparse_tensor_to_dense(given, default, validate_indices=False)
    values = batched(given, key)
    rank = values.shape.ndims
    if rank is None:
        raise InvalidArgumentError(f"feature '{key}': has no known rank; [batch] or [batch, size] is required")
    return expand_dims(values, -1) if rank < 2 else values


def counts(column: CategoricalColumn, features: Features) -> Tensor:
    """Returns how often each example has each category, or the sum of its weights: [batch, num_buckets], float32."""
    hot = apply_op("OneHot", [column.ids(features), column.num_buckets, 1.0, 0.0])
    weights = column.weights(features)
    return reduce_sum(hot if weights is None else apply_op("Mul", [hot, expand_dims(weights, -1)]), 1)


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Callable[[Tensor], Any] | None = None,
) -> NumericColumn:
    """Returns a column of the numbers of a feature.

    shape: of an example's. default_value: for examples that lack it. normalizer_fn: a function of the tensor.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        raise InvalidArgumentError(f"numeric_column '{key}': shape is {shape}; positive sizes are required")
    return NumericColumn(key, sizes, default_value, as_dtype(dtype), normalizer_fn)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Returns a column of the ranges between boundaries, in which numbers are; a boundary
    belongs to the range above it.
    """
    if not isinstance(source_column, NumericColumn):
        raise InvalidTypeError(f"bucketized_column: source_column is {source_column!r}; a numeric_column is required")
    limits = tuple(float(b) for b in boundaries)
    if not limits or any(a >= b for a, b in pairwise(limits)):
        raise InvalidArgumentError(f"bucketized_column: boundaries are {boundaries}; a growing list is required")
    return BucketizedColumn(source_column, limits)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> IdentityColumn:
    """Returns a column of categories whose numbers the feature has. default_value: the number of those out of range."""
    if num_buckets < 1:
        raise InvalidArgumentError(
            f"categorical_column_with_identity '{key}': num_buckets is {num_buckets}; it must be positive"
        )
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise InvalidArgumentError(
            f"categorical_column_with_identity '{key}': default_value is {default_value}; it must be in "
            f"[0, {num_buckets})"
        )
    return IdentityColumn(key, num_buckets, default_value)

"""Parsing of Example messages, which TFRecord files of training data hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from timberframe.api.framework import name_scope
from timberframe_core.dtypes import as_dtype, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature", "parse_example",
    "parse_single_example",
]  # fmt: skip


class FixedLenFeature(NamedTuple):
    """A feature with as many values in each Example: a tensor of this shape and dtype (float32, int64, string).

    default_value: for Examples without it, which are refused if it is None.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature that is a sequence of elements of a shape, as long as the longest of the batch.

    allow_missing: must be True; Examples without it have an empty one. default_value: fills shorter ones; 0 or "".
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a SparseTensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse tensor of two features: where its values are along a dimension of `size`, and the values."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _Plan:
    """The keys of features by how they are read."""

    def __init__(self, features: Mapping[str, Any]) -> None:
        self.sparse: dict[str, Any] = {}
        self.dense: dict[str, tuple[Any, Any, Tensor]] = {}
        if not features:
            raise InvalidArgumentError("tf.parse_example: features is empty; one at least is required")
        for key in sorted(features):
            self._add(key, features[key])

    def _add(self, key: str, feature: Any) -> None:
        if isinstance(feature, VarLenFeature):
            self.sparse[key] = as_dtype(feature.dtype)
        elif isinstance(feature, SparseFeature):
            indices = feature.index_key if isinstance(feature.index_key, list | tuple) else [feature.index_key]
            self.sparse.update(dict.fromkeys(indices, as_dtype("int64")))
            self.sparse[feature.value_key] = as_dtype(feature.dtype)
        elif isinstance(feature, FixedLenFeature):
            shape = TensorShape(feature.shape)
            if not shape.is_fully_defined():
                raise InvalidArgumentError(
                    f"tf.parse_example: feature '{key}' has shape {shape}; each size of a FixedLenFeature must be known"
                )
            self._add_dense(key, shape.as_list(), feature)
        elif isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise InvalidArgumentError(
                    f"tf.parse_example: feature '{key}': allow_missing is False; in Examples it must be True"
                )
            self._add_dense(key, [None, *TensorShape(feature.shape).as_list()], feature)
        else:
            raise InvalidArgumentError(
                f"tf.parse_example: feature '{key}' is {feature!r}; a FixedLenFeature, VarLenFeature, "
                "FixedLenSequenceFeature or SparseFeature is required"
            )

    def _add_dense(self, key: str, shape: list[Any], feature: Any) -> None:
        dtype, empty = as_dtype(feature.dtype), []  # type: ignore[var-annotated]  # there is nothing in it
        given = feature.default_value
        default = convert_to_tensor(empty if given is None else given, dtype)
        known = default.static_shape
        if given is not None and None not in shape and known is not None:
            count = TensorShape(shape).num_elements()
            if default.shape.num_elements() not in (None, 1, count):
                raise InvalidArgumentError(
                    f"tf.parse_example: feature '{key}' has a default of shape {format_shape(known)}; "
                    f"{TensorShape(shape)} is required"
                )
        self.dense[key] = shape, dtype, default

    def parse(self, serialized: Tensor, names: Any) -> dict[str, Any]:
        """Returns tensors by keys."""
        none: list[str] = []
        keys = [convert_to_tensor(list(k) or none, string) for k in (self.sparse, self.dense)]
        attrs = {
            "Tdense": [d for _, d, _ in self.dense.values()], "num_sparse": len(self.sparse),
            "sparse_types": list(self.sparse.values()), "dense_shapes": [s for s, _, _ in self.dense.values()],
        }  # fmt: skip
        labels = convert_to_tensor(none if names is None else names, string)
        defaults = [d for _, _, d in self.dense.values()]
        inputs = [serialized, labels, *keys, convert_to_tensor(none, string), defaults]
        made, count = apply_op("ParseExampleV2", inputs, attrs), len(self.sparse)
        made = list(made) if isinstance(made, list | tuple) else [made]
        found: dict[str, Any] = dict(zip(self.dense, made[3 * count :], strict=True))
        for i, key in enumerate(self.sparse):
            found[key] = SparseTensor(made[i], made[count + i], made[2 * count + i])
        return found


def _finished(features: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    made = {}
    for key, feature in features.items():
        made[key] = _joined(feature, found) if isinstance(feature, SparseFeature) else found[key]
    return made


def _joined(feature: SparseFeature, found: Mapping[str, Any]) -> SparseTensor:
    """Returns the sparse tensor whose last axes are what the features of indices say."""
    keys = feature.index_key if isinstance(feature.index_key, list | tuple) else [feature.index_key]
    sizes = feature.size if isinstance(feature.size, list | tuple) else [feature.size]
    values = found[feature.value_key]
    columns = [apply_op("ExpandDims", [found[key].values, 1]) for key in keys]
    indices = apply_op("ConcatV2", [[values.indices[:, :-1], *columns], 1])
    shape = apply_op("ConcatV2", [[values.dense_shape[:-1], convert_to_tensor(list(sizes), "int64")], 0])
    return SparseTensor(indices, values.values, shape)


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Returns the features of a vector of serialised Examples, by key: tensors [batch, ...], and SparseTensors.

    features: for each key a FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or SparseFeature. example_names:
    what errors call them. Running it raises InvalidArgumentError for what is no Example, a feature that is missing, or
    one of another kind or number of values.
    """
    with name_scope(name, "ParseExample", [serialized]):
        given = convert_to_tensor(serialized, string, "serialized")
        return _finished(features, _Plan(features).parse(given, example_names))


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """`parse_example` of one Example, a scalar: the tensors have no axis of a batch."""
    with name_scope(name, "ParseSingleExample", [serialized]):
        given = convert_to_tensor(serialized, string, "serialized")
        if given.shape.ndims not in (None, 0):
            raise InvalidArgumentError(
                f"tf.parse_single_example: serialized has shape {format_shape(given.static_shape)}; it must be a scalar"
            )
        names = None if example_names is None else [example_names]
        return _finished(features, _Plan(features).parse(given, names))

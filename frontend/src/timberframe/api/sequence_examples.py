"""Parsing of SequenceExample messages: a context and sequences of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe.api.examples import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from timberframe.api.framework import name_scope
from timberframe_core.dtypes import DType, as_dtype, bool_, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape

__all__ = ["parse_sequence_example", "parse_single_sequence_example"]

Parsed = dict[str, Any]


class _Keys:
    """The keys of features that are read as sparse tensors, and of dense ones with what is known of them."""

    def __init__(self, features: Mapping[str, Any] | None, dense: type[Any], what: str) -> None:
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, Any] = {}
        for key in sorted(features or {}):
            feature = (features or {})[key]
            if isinstance(feature, VarLenFeature):
                self.sparse[key] = as_dtype(feature.dtype)
            elif isinstance(feature, dense):
                self.dense[key] = feature
            else:
                raise InvalidArgumentError(
                    f"tf.parse_sequence_example: {what} '{key}' is {feature!r}; a VarLenFeature or {dense.__name__} is "
                    "required"
                )

    @property
    def dtypes(self) -> list[DType]:
        """Of the dense features."""
        return [as_dtype(f.dtype) for f in self.dense.values()]

    @property
    def shapes(self) -> list[TensorShape]:
        """Of the dense features."""
        return [TensorShape(f.shape) for f in self.dense.values()]


def _text(values: Any) -> Tensor:
    return convert_to_tensor(list(values), string)


def _parse(serialized: Tensor, context: _Keys, lists: _Keys, names: Any) -> tuple[Parsed, Parsed, Parsed]:
    if not (context.sparse or context.dense or lists.sparse or lists.dense):
        raise InvalidArgumentError("tf.parse_sequence_example: no features are given; one at least is required")
    empty = _text([])
    lacking = [bool(f.allow_missing) for f in lists.dense.values()]
    defaults = [
        convert_to_tensor([] if f.default_value is None else f.default_value, as_dtype(f.dtype))
        for f in context.dense.values()
    ]
    inputs = [
        serialized, empty if names is None else convert_to_tensor(names, string), _text(context.sparse),
        _text(context.dense), empty, _text(lists.sparse), _text(lists.dense), empty, convert_to_tensor(lacking, bool_),
        defaults,
    ]  # fmt: skip
    attrs = {
        "Ncontext_sparse": len(context.sparse), "Tcontext_dense": context.dtypes,
        "context_sparse_types": list(context.sparse.values()), "context_dense_shapes": context.shapes,
        "Nfeature_list_sparse": len(lists.sparse), "Nfeature_list_dense": len(lists.dense),
        "feature_list_dense_types": lists.dtypes, "feature_list_sparse_types": list(lists.sparse.values()),
        "feature_list_dense_shapes": lists.shapes,
    }  # fmt: skip
    made = iter(apply_op("ParseSequenceExampleV2", inputs, attrs))

    def take(keys: _Keys) -> Parsed:
        parts = [[next(made) for _ in keys.sparse] for _ in range(3)]
        found: Parsed = {k: SparseTensor(*p) for k, p in zip(keys.sparse, zip(*parts, strict=True), strict=True)}
        found.update((k, next(made)) for k in keys.dense)
        return found

    near, far = take(context), take(lists)
    return near, far, {k: next(made) for k in lists.dense}


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed, Parsed]:
    """Returns the features of a vector of serialised SequenceExamples: of contexts, of sequences,
    and the sequences' lengths.

    context_features: for each key a FixedLenFeature or VarLenFeature. sequence_features: for each a
    FixedLenSequenceFeature, which gives [batch, steps, ...], padded with zeros, or a VarLenFeature, which gives a
    SparseTensor [batch, steps, values]. Running it raises InvalidArgumentError for what does not fit.
    """
    context = _Keys(context_features, FixedLenFeature, "feature")
    lists = _Keys(sequence_features, FixedLenSequenceFeature, "sequence")
    with name_scope(name, "ParseSequenceExample", [serialized]):
        return _parse(convert_to_tensor(serialized, string, "serialized"), context, lists, example_names)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed]:
    """`parse_sequence_example` of one SequenceExample, a scalar: without the axis of a batch, and without lengths."""
    context = _Keys(context_features, FixedLenFeature, "feature")
    lists = _Keys(sequence_features, FixedLenSequenceFeature, "sequence")
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        given = convert_to_tensor(serialized, string, "serialized")
        if given.shape.ndims not in (None, 0):
            raise InvalidArgumentError(
                "tf.parse_single_sequence_example: serialized has shape "
                f"{format_shape(given.static_shape)}; it must be a scalar"
            )
        return _parse(given, context, lists, example_name)[:2]

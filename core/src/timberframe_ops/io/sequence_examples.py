"""ParseSequenceExampleV2: messages with a context and sequences. TensorFlow's parsing_ops."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import InferenceContext, MissingGradient, define_op
from timberframe_core.shapes import Shape, format_shape

_KINDS = "{float, int64, string}"


def _shape(c: InferenceContext) -> Sequence[Shape]:
    given = c.shapes[0]
    if given is not None and len(given) > 1:
        raise c.error(f"serialized has shape {format_shape(given)}; a scalar or a vector is required")
    if c.attrs["context_ragged_value_types"] or c.attrs["feature_list_ragged_value_types"]:
        raise c.error("ragged types are not empty; ragged tensors are not here, they must be")
    rank = None if given is None else len(given)
    context, lists, dense = (c.attrs[n] for n in ("Ncontext_sparse", "Nfeature_list_sparse", "Nfeature_list_dense"))
    own, more = (None, None) if rank is None else (rank + 1, rank + 2)

    def batch(shape: Shape, *steps: int | None) -> Shape:
        return None if given is None or shape is None else (*given, *steps, *shape)

    return [
        *[(None, own)] * context, *[(None,)] * context, *[(own,)] * context,
        *(batch(s) for s in c.attrs["context_dense_shapes"]),
        *[(None, more)] * lists, *[(None,)] * lists, *[(more,)] * lists,
        *(batch(s, None) for s in c.attrs["feature_list_dense_shapes"]),
        *[given] * dense,
    ]  # fmt: skip


define_op(
    "ParseSequenceExampleV2",
    inputs=(
        "serialized: string", "debug_name: string", "context_sparse_keys: string", "context_dense_keys: string",
        "context_ragged_keys: string", "feature_list_sparse_keys: string", "feature_list_dense_keys: string",
        "feature_list_ragged_keys: string", "feature_list_dense_missing_assumed_empty: bool",
        "context_dense_defaults: Tcontext_dense",
    ),
    outputs=(
        "context_sparse_indices: Ncontext_sparse * int64", "context_sparse_values: context_sparse_types",
        "context_sparse_shapes: Ncontext_sparse * int64", "context_dense_values: Tcontext_dense",
        "context_ragged_values: context_ragged_value_types", "context_ragged_row_splits: context_ragged_split_types",
        "feature_list_sparse_indices: Nfeature_list_sparse * int64",
        "feature_list_sparse_values: feature_list_sparse_types",
        "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
        "feature_list_dense_values: feature_list_dense_types",
        "feature_list_dense_lengths: Nfeature_list_dense * int64",
        "feature_list_ragged_values: feature_list_ragged_value_types",
        "feature_list_ragged_outer_splits: feature_list_ragged_split_types",
        "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    ),
    attrs=(
        "Ncontext_sparse: int >= 0 = 0", f"Tcontext_dense: list({_KINDS}) >= 0 = []",
        f"context_sparse_types: list({_KINDS}) >= 0 = []", f"context_ragged_value_types: list({_KINDS}) >= 0 = []",
        "context_ragged_split_types: list({int32, int64}) >= 0 = []", "context_dense_shapes: list(shape) >= 0 = []",
        "Nfeature_list_sparse: int >= 0 = 0", "Nfeature_list_dense: int >= 0 = 0",
        f"feature_list_dense_types: list({_KINDS}) >= 0 = []", f"feature_list_sparse_types: list({_KINDS}) >= 0 = []",
        f"feature_list_ragged_value_types: list({_KINDS}) >= 0 = []",
        "feature_list_ragged_split_types: list({int32, int64}) >= 0 = []",
        "feature_list_dense_shapes: list(shape) >= 0 = []",
    ),
    doc="The features of serialised SequenceExamples, one or a vector of them: those of the context as ParseExampleV2 "
    "gives them, and those of sequences with a dimension of steps, padded in a batch, with their lengths. Ragged keys "
    "must be empty.",
    shape=_shape,
    gradient=MissingGradient("by the values that stand for missing features"),
    on_host=True,
)  # fmt: skip

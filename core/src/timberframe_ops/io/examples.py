"""Ops that read Example messages: TensorFlow's parsing_ops."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.rows import same_on_rows
from timberframe_core.shapes import Shape, format_shape, is_static

_MESSAGES = MissingGradient("by the values that stand for missing features")
_KINDS = "{float, int64, string}"


def _batch_shape(c: InferenceContext) -> list[Shape]:
    given, sparse = c.shapes[0], c.attrs["num_sparse"]
    if given is not None and len(given) > 1:
        raise c.error(f"serialized has shape {format_shape(given)}; a scalar or a vector is required")
    if c.attrs["ragged_value_types"]:
        raise c.error("ragged_value_types is not empty; ragged tensors are not here, it must be")
    rank = None if given is None else len(given) + 1
    batch = given or ()
    dense = [_dense(shape, batch if given is not None else None) for shape in c.attrs["dense_shapes"]]
    return [(None, rank)] * sparse + [(None,)] * sparse + [(rank,)] * sparse + dense


def _dense(shape: Shape, batch: Shape) -> Shape:
    """Returns the shape of a feature in a batch; an unknown first size is that of the longest sequence."""
    return None if shape is None or batch is None else (*batch, *shape)


def _varies(attrs: Attrs) -> bool:
    """Returns whether the shape of what a feature becomes depends on other Examples of the batch."""
    return bool(attrs["num_sparse"]) or not all(map(is_static, attrs["dense_shapes"]))


define_op(
    "ParseExampleV2",
    inputs=(
        "serialized: string",
        "names: string",
        "sparse_keys: string",
        "dense_keys: string",
        "ragged_keys: string",
        "dense_defaults: Tdense",
    ),
    outputs=(
        "sparse_indices: num_sparse * int64",
        "sparse_values: sparse_types",
        "sparse_shapes: num_sparse * int64",
        "dense_values: Tdense",
        "ragged_values: ragged_value_types",
        "ragged_row_splits: ragged_split_types",
    ),
    attrs=(
        f"Tdense: list({_KINDS}) >= 0",
        "num_sparse: int >= 0",
        f"sparse_types: list({_KINDS}) >= 0",
        f"ragged_value_types: list({_KINDS}) >= 0 = []",
        "ragged_split_types: list({int32, int64}) >= 0 = []",
        "dense_shapes: list(shape) >= 0",
    ),
    doc="The features of serialised Examples, one or a vector of them: those of dense_keys as tensors of dense_shapes, "
    "with defaults where an Example has none, and those of sparse_keys as sparse tensors. names: of "
    "the Examples, for errors; may be empty. ragged_keys must be empty.",
    shape=_batch_shape,
    gradient=_MESSAGES,
    on_host=True,
    on_rows=same_on_rows("serialized", attrs=lambda attrs: None if _varies(attrs) else attrs),
)

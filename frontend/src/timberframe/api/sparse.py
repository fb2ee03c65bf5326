"""Sparse tensors: made, made dense, and given other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import expand_dims, identity, transpose
from timberframe.api.arrays import shape as shape_of
from timberframe.api.assertions import assert_equal, assert_less_equal
from timberframe.api.constants import fill, ones, ones_like, zeros_like
from timberframe.api.framework import (
    control_dependencies,
    get_static_value,
    name_scope,
    placeholder,
    placeholder_with_default,
)
from timberframe.api.indexing import gather, gather_nd
from timberframe.api.reduction import renamed
from timberframe.api.selection import cast, where
from timberframe_core.arguments import instance
from timberframe_core.dtypes import as_dtype, float32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import is_static

__all__ = [
    "SparseTensor", "SparseTensorValue", "edit_distance", "sparse_concat", "sparse_fill_empty_rows", "sparse_mask",
    "sparse_merge", "sparse_placeholder", "sparse_reorder", "sparse_reset_shape", "sparse_reshape", "sparse_retain",
    "sparse_slice", "sparse_split", "sparse_tensor_to_dense", "sparse_to_dense", "sparse_to_indicator",
    "sparse_transpose",
]  # fmt: skip


def sparse_tensor(given: Any, what: str) -> SparseTensor:
    """Returns a SparseTensor, or the one of a SparseTensorValue; InvalidTypeError for anything else."""
    kinds = (SparseTensor, SparseTensorValue)
    return SparseTensor.from_value(instance(given, kinds, what, "a SparseTensor or SparseTensorValue"))


def parts(sp: SparseTensor) -> list[Tensor]:
    """Indices, values and shape, in the order of the inputs of ops."""
    return [sp.indices, sp.values, sp.dense_shape]


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = "edit_distance") -> Tensor:
    """Levenshtein's distance between the sequences along the last dimension of two sparse tensors.

    hypothesis, truth: SparseTensor or SparseTensorValue of one rank and dtype. normalize: divided by the length of the
    truth (infinite where that is empty). Returns float32, of the shape without the last dimension.
    """
    first = sparse_tensor(hypothesis, "tf.edit_distance: hypothesis")
    second = sparse_tensor(truth, "tf.edit_distance: truth")
    result: Tensor = apply_op("EditDistance", [*parts(first), *parts(second)], {"normalize": normalize}, name)
    return result


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor whose value every run must feed: a SparseTensorValue, or a tuple of its three arrays.

    shape: sizes, None or -1 where they are unknown; a run need not feed a shape that is given. With None the rank may
    be any.
    """

    def named(part: str) -> str | None:
        return None if name is None else f"{name}/{part}"

    if shape is None:
        count, whole = None, placeholder(int64, [None], named("shape"))
    elif isinstance(shape, Tensor):
        count = shape.static_shape[0] if shape.static_shape else None
        whole = placeholder_with_default(cast(shape, int64), [count], named("shape"))
    else:
        sizes = [-1 if d is None else int(d) for d in (TensorShape(shape).as_list() or [])]
        default = convert_to_tensor(np.array(sizes, np.int64), int64, named("shape_default"))
        count, whole = len(sizes), placeholder_with_default(default, [len(sizes)], named("shape"))
    values = placeholder(dtype, [None], named("values"))
    made = SparseTensor(placeholder(int64, [None, count], named("indices")), values, whole)
    if isinstance(shape, list | tuple | TensorShape):
        made.set_shape(shape)
    return made


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Returns a tensor of output_shape with sparse_values (or one for all) at sparse_indices,
    and default_value elsewhere.

    sparse_indices: integers [elements, rank], [elements] for rank 1, or a scalar. validate_indices: running it raises
    InvalidArgumentError where they are not in order, or not once each.
    """
    values = convert_to_tensor(sparse_values)
    inputs = [*_of_one_dtype(sparse_indices, output_shape), values, convert_to_tensor(default_value, values.dtype)]
    made: Tensor = apply_op("SparseToDense", inputs, {"validate_indices": validate_indices}, name)
    return made


def _of_one_dtype(indices: Any, shape: Any) -> tuple[Any, Any]:
    """Returns both as tensors; what is no tensor takes the dtype of the other one."""
    if isinstance(indices, Tensor):
        return indices, convert_to_tensor(shape, indices.dtype)
    sizes = convert_to_tensor(shape)
    return convert_to_tensor(indices, sizes.dtype), sizes


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Returns a sparse tensor as a tensor, default_value (0 or "" if None) where it has no
    element; see `sparse_to_dense`.
    """
    sp = sparse_tensor(sp_input, "tf.sparse_tensor_to_dense: sp_input")
    default = ("" if sp.dtype.name == "string" else 0) if default_value is None else default_value
    return sparse_to_dense(sp.indices, sp.dense_shape, sp.values, default, validate_indices, name)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Returns the elements of a tensor that are not zero, or not empty strings."""
    with name_scope(name, "dense_to_sparse", [tensor]):
        x = convert_to_tensor(tensor)
        zero = zeros_like(x) if x.dtype.name != "string" else fill(shape_of(x), "")
        indices = where(apply_op("NotEqual", [x, zero]))
        return SparseTensor(indices, gather_nd(x, indices), shape_of(x, out_type=int64))


def sparse_eye(num_rows: Any, num_columns: Any = None, dtype: Any = float32, name: str | None = None) -> SparseTensor:
    """Returns a sparse matrix with ones on its diagonal; as many columns as rows if num_columns is None."""
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = convert_to_tensor(num_rows, int64)
        columns = rows if num_columns is None else convert_to_tensor(num_columns, int64)
        count = apply_op("Minimum", [rows, columns])
        diagonal = apply_op("Range", [convert_to_tensor(0, int64), count, convert_to_tensor(1, int64)])
        indices = apply_op("Pack", [[diagonal, diagonal]], {"axis": 1})
        values = ones(expand_dims(cast(count, "int32"), 0), as_dtype(dtype))
        return SparseTensor(indices, values, apply_op("Pack", [[rows, columns]]))


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Returns the elements in the order of their indices, the last dimension fastest."""
    sp = sparse_tensor(sp_input, "tf.sparse_reorder: sp_input")
    indices, values = apply_op("SparseReorder", parts(sp), name=name)
    return SparseTensor(indices, values, _kept_shape(sp))


def _kept_shape(sp: SparseTensor) -> Any:
    sizes = sp.shape.as_tuple()
    return list(sizes) if sizes is not None and is_static(sizes) else identity(sp.dense_shape)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Returns the elements for which the bool vector to_retain is true."""
    sp = sparse_tensor(sp_input, "tf.sparse_retain: sp_input")
    wanted = convert_to_tensor(to_retain)
    wanted.shape.with_rank(1)
    sp.values.shape.assert_is_compatible_with(wanted.shape)
    places = apply_op("Reshape", [where(wanted), [-1]])
    return SparseTensor(gather(sp.indices, places), gather(sp.values, places), identity(sp.dense_shape))


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Returns the same elements in another shape of the same rank, the smallest that holds them if new_shape is None.

    Raises InvalidArgumentError, in the run where sizes are known only there, where new_shape is smaller.
    """
    sp = sparse_tensor(sp_input, "tf.sparse_reset_shape: sp_input")
    indices, values, old = identity(sp.indices), identity(sp.values), identity(sp.dense_shape)
    if new_shape is None:
        largest = apply_op("Max", [indices, 0])
        return SparseTensor(indices, values, apply_op("Maximum", [0, apply_op("Add", [largest, ones_like(old)])]))
    new = cast(convert_to_tensor(new_shape), int64)
    new.shape.with_rank(1)
    new.shape.assert_is_compatible_with(old.shape)
    known, before = get_static_value(new), sp.shape.as_tuple()
    if known is not None and before is not None and is_static(before):
        if any(a < (b or 0) for a, b in zip(known.tolist(), before, strict=True)):
            raise InvalidArgumentError(
                f"tf.sparse_reset_shape: new_shape is {known.tolist()} for shape {list(before)}; no size may be smaller"
            )
        return SparseTensor(indices, values, new)
    with control_dependencies([assert_equal(shape_of(old), shape_of(new)), assert_less_equal(old, new)]):
        return SparseTensor(indices, values, identity(new))


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Returns the same elements, in row-major order, in another shape; -1 is the size that is left."""
    sp = sparse_tensor(sp_input, "tf.sparse_reshape: sp_input")
    new = cast(convert_to_tensor(shape), int64)
    with name_scope(name, "SparseReshape", [sp.indices]) as scope:
        indices, sizes = apply_op("SparseReshape", [sp.indices, sp.dense_shape, new], name=scope)
        return SparseTensor(indices, identity(sp.values), sizes)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Dimension i of the result is dimension perm[i] of the input; all are turned round if perm is None."""
    sp = sparse_tensor(sp_input, "tf.sparse_transpose: sp_input")
    with name_scope(name, "SparseTranspose", [sp.indices]):
        if perm is None:
            count = sp.shape.ndims
            perm = np.arange(count)[::-1].copy() if count is not None else _turned(sp.indices)
        columns = convert_to_tensor(perm)
        indices = transpose(gather(transpose(sp.indices), columns))
        return sparse_reorder(SparseTensor(indices, sp.values, gather(sp.dense_shape, columns)))


def _turned(indices: Tensor) -> Tensor:
    last = apply_op("Sub", [apply_op("GatherV2", [shape_of(indices), 1, 0]), 1])
    made: Tensor = apply_op("Range", [last, -1, -1])
    return made


def expand_sparse_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Returns a further dimension of size 1 at `axis`, after all others if None."""
    sp = sparse_tensor(sp_input, "tf.sparse.expand_dims: sp_input")
    with name_scope(name, "expand_dims", [sp.indices]):
        count = sp.shape.ndims
        if count is None:
            raise InvalidArgumentError("tf.sparse.expand_dims: the rank of sp_input is unknown; it must be known")
        at = count if axis is None else int(axis)
        if not -count - 1 <= at <= count:
            raise InvalidArgumentError(f"tf.sparse.expand_dims: axis is {at} for rank {count}; it must lie inside")
        at = at + count + 1 if at < 0 else at
        column = zeros_like(sp.indices[:, :1])
        one = convert_to_tensor([1], int64)
        indices = apply_op("ConcatV2", [[sp.indices[:, :at], column, sp.indices[:, at:]], 1])
        sizes = apply_op("ConcatV2", [[sp.dense_shape[:at], one, sp.dense_shape[at:]], 0])
        return SparseTensor(indices, sp.values, sizes)


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Sequence[Any] | None = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors one after the other along a dimension.

    expand_nonconcat_dims: their other sizes may differ, and the result has the largest. concat_dim and
    expand_nonconcat_dim are older names.
    """
    along = renamed("axis", axis, "concat_dim", concat_dim)
    if along is None or not sp_inputs:
        raise InvalidArgumentError(
            f"tf.sparse_concat: axis is {along} and sp_inputs has {len(sp_inputs or ())} tensors; an axis and one "
            "tensor at least are required"
        )
    given = [sparse_tensor(x, "tf.sparse_concat: an item of sp_inputs") for x in sp_inputs]
    if len(given) == 1:
        return given[0]
    sizes = [x.dense_shape for x in given]
    if expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims:
        largest = apply_op("Max", [apply_op("Pack", [sizes]), 0])
        after = [] if along == -1 else [largest[along + 1 :]]
        own = slice(along, None if along == -1 else along + 1)
        sizes = [apply_op("ConcatV2", [[largest[:along], s[own], *after], 0]) for s in sizes]
    inputs = [[x.indices for x in given], [x.values for x in given], sizes]
    return SparseTensor(*apply_op("SparseConcat", inputs, {"concat_dim": along}, name))


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Equal parts along a dimension; the first ones are larger by one where it cannot be divided.

    sp_input, num_split and axis (split_dim is its older name) must be given by name.
    """
    along = renamed("axis", axis, "split_dim", split_dim)
    if keyword_required is not None or sp_input is None or num_split is None or along is None:
        given = {"sp_input": sp_input, "num_split": num_split, "axis": along}
        missing = ", ".join(name for name, value in given.items() if value is None) or "a name"
        raise InvalidArgumentError(
            f"tf.sparse_split: {missing} not given; sp_input, num_split and axis are required, each by its name"
        )
    sp = sparse_tensor(sp_input, "tf.sparse_split: sp_input")
    inputs = [convert_to_tensor(along, int64), *parts(sp)]
    made = apply_op("SparseSplit", inputs, {"num_split": num_split}, name)
    return [SparseTensor(*made[i::num_split]) for i in range(num_split)]


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Returns the part that begins at `start` and has at most the sizes `size`."""
    sp = sparse_tensor(sp_input, "tf.sparse_slice: sp_input")
    with name_scope(name, "SparseSlice", [sp.indices]) as scope:
        inputs = [*parts(sp), convert_to_tensor(start, int64), convert_to_tensor(size, int64)]
        return SparseTensor(*apply_op("SparseSlice", inputs, name=scope))


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """Returns the sparse tensor with default_value at the beginning of each row without elements,
    and which rows those are.
    """
    sp = sparse_tensor(sp_input, "tf.sparse_fill_empty_rows: sp_input")
    with name_scope(name, "SparseFillEmptyRows", [sp.indices]):
        inputs = [*parts(sp), convert_to_tensor(default_value, sp.dtype)]
        indices, values, empty, _ = apply_op("SparseFillEmptyRows", inputs)
        return SparseTensor(indices, values, sp.dense_shape), empty


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Returns a sparse tensor whose last index is the value of sp_ids and whose values are those of sp_values.

    sp_ids: one of integers, or a list of several for several last dimensions. vocab_size: the size of these dimensions.
    already_sorted: the order of elements is right as it is.
    """
    many = isinstance(sp_ids, list | tuple) and not isinstance(sp_ids, SparseTensorValue)
    given, sizes = (list(sp_ids), list(vocab_size)) if many else ([sp_ids], [vocab_size])
    if len(given) != len(sizes):
        raise InvalidArgumentError(
            f"tf.sparse_merge: {len(given)} sp_ids and {len(sizes)} sizes in vocab_size; equally many are required"
        )
    with name_scope(name, "SparseMerge"):
        ids = [sparse_tensor(x, "tf.sparse_merge: sp_ids") for x in given]
        values = sparse_tensor(sp_values, "tf.sparse_merge: sp_values").values
        columns = [expand_dims(cast(x.values, int64), 1) for x in ids]
        indices = apply_op("ConcatV2", [[ids[0].indices[:, :-1], *columns], 1])
        ends = [apply_op("Reshape", [cast(convert_to_tensor(s), int64), [1]]) for s in sizes]
        made = SparseTensor(indices, values, apply_op("ConcatV2", [[ids[0].dense_shape[:-1], *ends], 0]))
        return made if already_sorted else sparse_reorder(made)


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """For each row of a sparse tensor of ids, which of vocab_size ids it has: bool [..., vocab_size]."""
    sp = sparse_tensor(sp_input, "tf.sparse_to_indicator: sp_input")
    with name_scope(name, "SparseToIndicator", [sp.indices]) as scope:
        present = fill(expand_dims(shape_of(sp.indices)[0], 0), True)
        merged = sparse_merge(sp, SparseTensor(sp.indices, present, sp.dense_shape), vocab_size)
        return sparse_tensor_to_dense(merged, default_value=False, validate_indices=False, name=scope)


def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the rows whose indices are in mask_indices."""
    slices = instance(a, IndexedSlices, "tf.sparse_mask: a", "IndexedSlices")
    with name_scope(name, "sparse_mask", [mask_indices]) as scope:
        left, places = apply_op("ListDiff", [slices.indices, convert_to_tensor(mask_indices, slices.indices.dtype)])
        return IndexedSlices(gather(slices.values, places, name=scope), left, slices.dense_shape)

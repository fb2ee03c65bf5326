"""`tf.*` functions that return and change shapes, and that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.framework import get_static_value, is_tensor
from timberframe_core.dtypes import int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor, to_array
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape
from timberframe_core.shapes import broadcast, is_static, num_elements

__all__ = [
    "Assert", "batch_to_space", "batch_to_space_nd", "broadcast_static_shape", "broadcast_to", "check_numerics",
    "concat", "depth_to_space", "ensure_shape", "expand_dims", "identity", "identity_n", "invert_permutation",
    "matrix_transpose", "no_op", "pad", "parallel_stack", "rank", "reshape", "reverse", "reverse_v2", "roll", "shape",
    "shape_n", "size", "space_to_batch", "space_to_batch_nd", "space_to_depth", "split", "squeeze", "stack",
    "stop_gradient", "tile", "transpose", "unstack",
]  # fmt: skip

NAMESPACES = {
    "linalg": ("matrix_transpose",),
    "math": ("invert_permutation",),
    "nn": ("batch_to_space", "depth_to_space", "space_to_batch", "space_to_depth"),
}

_Tensors = list[Tensor]


def _constant(value: Any, dtype: Any, name: str | None) -> Tensor:
    return convert_to_tensor(value, dtype, name)


def shape(input: Any, name: str | None = None, out_type: Any = int32, optimize: bool = True) -> Tensor:
    """Returns the sizes of the input as a vector of `out_type`; a constant where they are all
    known and `optimize` is set.

    input may be a SparseTensor, also of `size` and `rank`.
    """
    if isinstance(input, SparseTensor):
        sizes: Tensor = apply_op("Cast", [input.dense_shape], {"DstT": out_type}, name or "Shape")
        return sizes
    x = convert_to_tensor(input)
    if optimize and is_static(x.static_shape):
        return _constant(list(x.static_shape or ()), out_type, name or "Shape")
    result: Tensor = apply_op("Shape", [x], {"out_type": out_type}, name)
    return result


def shape_n(input: Sequence[Any], out_type: Any = int32, name: str | None = None) -> _Tensors:
    """Returns the sizes of each input as a vector of `out_type`."""
    result: _Tensors = apply_op("ShapeN", [list(input)], {"out_type": out_type}, name)
    return result


def size(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """Returns the number of elements as a scalar of `out_type`; a constant where the shape is known."""
    if isinstance(input, SparseTensor):
        count: Tensor = apply_op("Prod", [shape(input, None, out_type), 0], None, name or "Size")
        return count
    x = convert_to_tensor(input)
    if is_static(x.static_shape):
        return _constant(num_elements(x.static_shape), out_type, name or "Size")  # type: ignore[arg-type]  # it is static
    result: Tensor = apply_op("Size", [x], {"out_type": out_type}, name)
    return result


def rank(input: Any, name: str | None = None) -> Tensor:
    """Returns the number of dimensions as a scalar int32; a constant where it is known."""
    if isinstance(input, SparseTensor):
        return size(input.dense_shape, name or "Rank")
    x = convert_to_tensor(input)
    if x.static_shape is not None:
        return _constant(len(x.static_shape), int32, name or "Rank")
    result: Tensor = apply_op("Rank", [x], None, name)
    return result


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns the tensor's elements in another shape, in which one size may be -1."""
    result: Tensor = apply_op("Reshape", [tensor, shape], None, name)
    return result


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Returns the input with a dimension of one put in front of dimension `axis` (formerly `dim`)."""
    position = _one_of("expand_dims", "axis", axis, "dim", dim)
    if position is None:
        raise InvalidArgumentError("tf.expand_dims: axis is not given; it must be")
    result: Tensor = apply_op("ExpandDims", [input, position], None, name)
    return result


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Returns the input without its dimensions of one, or without those of them that `axis`
    (formerly `squeeze_dims`) names.
    """
    axes = _one_of("squeeze", "axis", axis, "squeeze_dims", squeeze_dims)
    dims = () if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    result: Tensor = apply_op("Squeeze", [input], {"squeeze_dims": dims}, name)
    return result


def _one_of(function: str, name: str, value: Any, old_name: str, old_value: Any) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise InvalidArgumentError(f"tf.{function}: both {name} and {old_name} are given; one of them must be")
    return old_value


def transpose(a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False) -> Tensor:
    """Returns the dimensions of `a` in the order `perm`, by default reversed; `conjugate` also
    conjugates complex elements.
    """
    x = convert_to_tensor(a)
    if perm is None:
        if x.static_shape is not None:
            perm = list(range(len(x.static_shape)))[::-1]
        else:
            count = apply_op("Rank", [x])
            perm = apply_op("Sub", [apply_op("Sub", [count, 1]), apply_op("Range", [0, count, 1])])
    result: Tensor = apply_op("ConjugateTranspose" if conjugate else "Transpose", [x, perm], None, name)
    return result


def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Returns the last two dimensions exchanged, those before them left as they are."""
    x = convert_to_tensor(a)
    if x.static_shape is None:
        count = apply_op("Rank", [x])
        front = apply_op("Range", [0, apply_op("Sub", [count, 2]), 1])
        ends = [apply_op("Sub", [count, 1]), apply_op("Sub", [count, 2])]
        return transpose(x, concat([front, ends], 0), name, conjugate)
    dims = len(x.static_shape)
    if dims < 2:
        raise InvalidArgumentError(f"tf.matrix_transpose: '{x.name}' has rank {dims}; it must be at least 2")
    return transpose(x, [*range(dims - 2), dims - 1, dims - 2], name, conjugate)


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Returns the tensors joined along dimension `axis`, an integer scalar; a single tensor is returned as it is."""
    if np.isscalar(values):
        raise InvalidArgumentError(
            f"tf.concat: values is {values!r}; a list of tensors is required (values come first, axis after them)"
        )
    items = list(values) if isinstance(values, list | tuple) else [values]
    if len(items) == 1:
        only = convert_to_tensor(items[0])
        _check_axis("concat", axis, only)
        return identity(only, name)
    result: Tensor = apply_op("ConcatV2", [items, axis], None, name)
    return result


def _check_axis(function: str, axis: Any, tensor: Tensor) -> None:
    """Raises InvalidArgumentError unless axis is an integer scalar that, where known, is a dimension of the tensor."""
    if is_tensor(axis):
        given = convert_to_tensor(axis)
        dtype, sizes, value = given.dtype, given.static_shape, get_static_value(given)
    else:
        value, dtype = to_array(axis)
        sizes = value.shape
    if not dtype.is_integer or sizes not in ((), None):
        raise InvalidArgumentError(f"tf.{function}: axis is {axis!r}; an integer scalar is required")
    own = tensor.static_shape
    if value is not None and own is not None and not -len(own) <= int(value) < len(own):
        raise InvalidArgumentError(
            f"tf.{function}: axis is {int(value)} and '{tensor.name}' has {len(own)} dimensions; "
            f"axis must lie in [{-len(own)}, {len(own)})"
        )


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = "split"
) -> _Tensors:
    """Parts along dimension `axis`: that many equal ones, or ones of the given sizes (a list or vector; -1: the rest).

    num: the number of sizes, where they are a tensor of unknown length.
    """
    if isinstance(num_or_size_splits, Dimension):
        num_or_size_splits = int(num_or_size_splits)
    if isinstance(num_or_size_splits, int):
        equal: _Tensors = apply_op("Split", [axis, value], {"num_split": num_or_size_splits}, name)
        return equal
    sizes = convert_to_tensor(num_or_size_splits, preferred_dtype=int32)
    if sizes.static_shape == ():
        raise InvalidArgumentError(f"tf.split: '{sizes.name}' is a scalar tensor; a number of parts must be an int")
    if num is None:
        num = sizes.static_shape[0] if sizes.static_shape else None
    if num is None:
        raise InvalidArgumentError(f"tf.split: the number of sizes in '{sizes.name}' is not known; give num")
    result: _Tensors = apply_op("SplitV", [value, sizes, axis], {"num_split": num}, name)
    return result


def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Returns tensors of one shape stacked along a new dimension at `axis`."""
    result: Tensor = apply_op("Pack", [list(values)], {"axis": axis}, name)
    return result


def parallel_stack(values: Any, name: str | None = "parallel_stack") -> Tensor:
    """Returns tensors of one known shape stacked along a new first dimension."""
    rows = [apply_op("ExpandDims", [value, 0]) for value in values]
    if not rows:
        raise InvalidArgumentError("tf.parallel_stack: values is empty; at least one tensor is required")
    first = rows[0].static_shape
    attrs = {"shape": None if first is None else (len(rows), *first[1:])}
    result: Tensor = apply_op("ParallelConcat", [rows], attrs, name)
    return result


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = "unstack") -> _Tensors:
    """Returns the slices along dimension `axis` as a list of tensors; `num` is their number if
    the shape does not show it.
    """
    x = convert_to_tensor(value)
    if num is None:
        sizes = x.static_shape
        if sizes is not None and not -len(sizes) <= axis < len(sizes):
            raise InvalidArgumentError(
                f"tf.unstack: axis {axis} is outside the rank {len(sizes)} of '{x.name}'; "
                f"it must lie in [{-len(sizes)}, {len(sizes)})"
            )
        num = None if sizes is None else sizes[axis]
    if num is None:
        raise InvalidArgumentError(f"tf.unstack: the size of dimension {axis} of '{x.name}' is not known; give num")
    result: _Tensors = apply_op("Unpack", [x], {"num": num, "axis": axis}, name)
    return result


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Returns the tensor with paddings[i, 0] elements before and paddings[i, 1] after it in each dimension i.

    mode, in capitals or not: CONSTANT fills with `constant_values`; REFLECT mirrors without the edge, SYMMETRIC with.
    """
    kind = mode.upper()
    result: Tensor
    if kind == "CONSTANT":
        if isinstance(constant_values, Tensor) or constant_values != 0:
            result = apply_op("PadV2", [tensor, paddings, constant_values], None, name)
        else:
            result = apply_op("Pad", [tensor, paddings], None, name)
        return result
    if kind not in ("REFLECT", "SYMMETRIC"):
        raise InvalidArgumentError(f"tf.pad: mode is {mode!r}; it must be CONSTANT, REFLECT or SYMMETRIC")
    result = apply_op("MirrorPad", [tensor, paddings], {"mode": kind}, name)
    return result


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Returns the input repeated multiples[i] times along each dimension i."""
    result: Tensor = apply_op("Tile", [input, multiples], None, name)
    return result


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns the input repeated along its dimensions of one, and along new leading ones, up to `shape`."""
    result: Tensor = apply_op("BroadcastTo", [input, shape], None, name)
    return result


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Returns the shape to which two shapes broadcast; raises InvalidArgumentError where they do not."""
    try:
        return TensorShape(broadcast(as_shape(shape_x), as_shape(shape_y)))
    except ValueError as e:
        raise InvalidArgumentError(f"tf.broadcast_static_shape: {e}; sizes must be equal or 1") from None


def identity(input: Any, name: str | None = None) -> Tensor:
    """Returns a tensor with the input's value, made by a node of its own."""
    result: Tensor = apply_op("Identity", [input], None, name)
    return result


def identity_n(input: Sequence[Any], name: str | None = None) -> _Tensors:
    """Returns the inputs, none of which is used before all are computed."""
    result: _Tensors = apply_op("IdentityN", [list(input)], None, name)
    return result


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Returns the input, which gradients treat as a constant."""
    result: Tensor = apply_op("StopGradient", [input], None, name)
    return result


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, after a check at run time that its shape is compatible with `shape`."""
    result: Tensor = apply_op("EnsureShape", [x], {"shape": TensorShape(as_shape(shape))}, name)
    return result


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Returns the tensor; a run in which it has NaN or infinite elements fails with `message`."""
    result: Tensor = apply_op("CheckNumerics", [tensor], {"message": message}, name)
    return result


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Operation:  # noqa: N802 - TensorFlow's name
    """Fails the run unless the condition holds; the error shows `summarize` elements (3; -1: all) of each of `data`."""
    result: Operation = apply_op("Assert", [condition, list(data)], {"summarize": summarize}, name)
    return result


def no_op(name: str | None = None) -> Operation:
    """Returns an operation that does nothing, for control edges."""
    result: Operation = apply_op("NoOp", [], None, name)
    return result


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Returns the tensor with the order of its elements reversed along each dimension in `axis`."""
    result: Tensor = apply_op("ReverseV2", [tensor, axis], None, name)
    return result


reverse_v2 = reverse


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Returns the elements shifted cyclically by `shift` positions along `axis`."""
    result: Tensor = apply_op("Roll", [input, shift, axis], None, name)
    return result


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Returns the permutation that undoes x."""
    result: Tensor = apply_op("InvertPermutation", [x], None, name)
    return result


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Returns each block of pixels moved into the depth of one pixel."""
    attrs = {"block_size": block_size, "data_format": data_format}
    result: Tensor = apply_op("SpaceToDepth", [input], attrs, name)
    return result


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Returns the depth of each pixel spread over a block of pixels."""
    attrs = {"block_size": block_size, "data_format": data_format}
    result: Tensor = apply_op("DepthToSpace", [input], attrs, name)
    return result


def _block(function: str, block_size: Any, block_shape: Any) -> Any:
    given = _one_of(function, "block_shape", block_shape, "block_size", block_size)
    return [given, given] if isinstance(given, int) else convert_to_tensor(given, dtype_hint=int64)


def space_to_batch(
    input: Any, paddings: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Blocks of the dimensions after the first moved into the batch; `block_size` is for square blocks of images.

    The other arguments are those of `space_to_batch_nd`.
    """
    return space_to_batch_nd(input, _block("space_to_batch", block_size, block_shape), paddings, name)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Pads the dimensions after the first, and moves the positions within their blocks into the batch dimension.

    input: [batch, *positions, *rest]. block_shape: a size for each dimension of positions; paddings: [dimensions, 2],
    numbers of zeros before and after each, with which it is divisible by its block. The result is [batch * product of
    block_shape, *positions / block_shape, *rest].
    """
    result: Tensor = apply_op("SpaceToBatchND", [input, block_shape, paddings], None, name)
    return result


def batch_to_space(
    input: Any, crops: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Returns the inverse of `space_to_batch`, then cropped.

    The other arguments are those of `batch_to_space_nd`.
    """
    return batch_to_space_nd(input, _block("batch_to_space", block_size, block_shape), crops, name)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Returns the inverse of `space_to_batch_nd`, then cropped.

    crops: [dimensions, 2], how many positions are left out at the beginning and at the end of each.
    """
    result: Tensor = apply_op("BatchToSpaceND", [input, block_shape, crops], None, name)
    return result

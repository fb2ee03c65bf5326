"""Sets along the last dimension of tensors and sparse tensors."""

from __future__ import annotations

from typing import Any

from timberframe.api.sparse import parts
from timberframe_core.arguments import instance
from timberframe_core.dtypes import int8, int16, int32, int64, string, uint8, uint16
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue

_DTYPES = (int8, int16, int32, int64, uint8, uint16, string)


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """Returns how many different elements each set has, int32, of the shape of `a` without its last dimension.

    a: SparseTensor of rank 2 or more, of integers up to int64 or strings; its sets are along the last dimension.
    validate_indices: running it raises InvalidArgumentError where the indices are not in order, each once.
    """
    sets = instance(_sets(a), SparseTensor, "tf.sets.size: a", "a SparseTensor")
    _check_dtype(sets, "a")
    result: Tensor = apply_op("SetSize", parts(sets), {"validate_indices": validate_indices})
    return result


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the elements that are in both of two sets, for each pair of sets along the last
    dimensions of `a` and `b`.

    a, b: Tensor or SparseTensor of one dtype, of integers up to int64 or strings, and of one shape but for the last
    dimension; rank 2 or more. validate_indices: running it raises InvalidArgumentError where the indices of one are
    not in order, each once. Returns each element once, in order; the last size is that of the largest set.
    """
    return _operation("intersection", a, b, validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Returns the elements of each set of `a` that are not in that of `b`, or the other way round without aminusb.

    Arguments and result are those of `tf.sets.intersection`.
    """
    return _operation("a-b" if aminusb else "b-a", a, b, validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the elements that are in one of two sets, or both.

    Arguments and result are those of `tf.sets.intersection`.
    """
    return _operation("union", a, b, validate_indices)


def _sets(x: Any) -> Tensor | SparseTensor:
    return SparseTensor.from_value(x) if isinstance(x, SparseTensor | SparseTensorValue) else convert_to_tensor(x)


def _check_dtype(sets: Tensor | SparseTensor, name: str) -> None:
    if sets.dtype not in _DTYPES:
        kinds = ", ".join(dtype.name for dtype in _DTYPES)
        raise InvalidTypeError(f"tf.sets: {name} has dtype {sets.dtype.name}; it must be one of {kinds}")


def _operation(operation: str, a: Any, b: Any, validate_indices: bool) -> SparseTensor:
    first, second = _sets(a), _sets(b)
    _check_dtype(first, "a")
    if second.dtype is not first.dtype:
        raise InvalidTypeError(f"tf.sets: b has dtype {second.dtype.name}; it must be {first.dtype.name}, as that of a")
    if isinstance(first, SparseTensor) and not isinstance(second, SparseTensor):
        first, second = second, first  # the op takes the dense one first
        operation = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    kinds = ["Sparse" if isinstance(x, SparseTensor) else "Dense" for x in (first, second)]
    inputs = [part for x in (first, second) for part in (parts(x) if isinstance(x, SparseTensor) else [x])]
    attrs = {"set_operation": operation, "validate_indices": validate_indices}
    return SparseTensor(*apply_op(f"{kinds[0]}To{kinds[1]}SetOperation", inputs, attrs))

"""`tf.*` functions that reduce tensors along axes, and running sums."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from timberframe.api.arrays import rank
from timberframe_core.dtypes import DType, as_dtype, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

__all__ = [
    "arg_max", "arg_min", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
]  # fmt: skip

NAMESPACES = {
    "math": (
        "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "reduce_all", "reduce_any",
        "reduce_euclidean_norm", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
        "reduce_std", "reduce_sum", "reduce_variance",
    ),
    "nn": ("l2_loss",),
}  # fmt: skip


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """Returns the value of an argument that TensorFlow 1 also takes under an older name; both given is an error."""
    if old is None:
        return new
    if new is not None:
        raise InvalidArgumentError(f"{new_name} and {old_name} are both given; {old_name} is {new_name}'s older name")
    return old


def reduction_axes(x: Tensor, axis: Any = None) -> Any:
    """`axis`, or all dimensions of x for None."""
    if axis is not None:
        return axis
    shape = x.static_shape
    if shape is not None:
        return np.arange(len(shape), dtype=np.int32)
    return apply_op("Range", [0, rank(x), 1])


def _reduce(op: str, x: Any, axis: Any, keepdims: Any, name: str | None, old_axis: Any, old_keep: Any) -> Tensor:
    x = convert_to_tensor(x)
    axes = reduction_axes(x, renamed("axis", axis, "reduction_indices", old_axis))
    keep = bool(renamed("keepdims", keepdims, "keep_dims", old_keep))
    result: Tensor = apply_op(op, [x, axes], {"keep_dims": keep}, name)
    return result


class _Reduction(Protocol):
    """A function that reduces a tensor, with TensorFlow 1's older names of arguments."""

    def __call__(
        self,
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor: ...


def _reduction(public: str, op: str, result: str, note: str = "") -> _Reduction:
    """Returns the function of this name, which is one op. result, note: for its docstring."""

    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        return _reduce(op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"{result}, over the axes (all for None); keepdims keeps them with size 1. {note}".rstrip()
    return function


reduce_sum = _reduction("reduce_sum", "Sum", "The sum", "Integers wrap.")
reduce_mean = _reduction("reduce_mean", "Mean", "The mean", "Of integers it is an integer, rounded towards zero.")
reduce_prod = _reduction("reduce_prod", "Prod", "The product", "Integers wrap.")
reduce_max = _reduction("reduce_max", "Max", "The largest element", "NaN where there is one.")
reduce_min = _reduction("reduce_min", "Min", "The smallest element", "NaN where there is one.")
reduce_all = _reduction("reduce_all", "All", "Whether all booleans are true")
reduce_any = _reduction("reduce_any", "Any", "Whether some boolean is true")


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns the root of the sum of squared magnitudes over the axes (all for None)."""
    return _reduce("EuclideanNorm", input_tensor, axis, keepdims, name, None, None)


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the logarithm of the sum of exponentials over the axes, computed around the largest element."""
    x = convert_to_tensor(input_tensor)
    axes = reduction_axes(x, renamed("axis", axis, "reduction_indices", reduction_indices))
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    largest = apply_op("Max", [x, axes], {"keep_dims": True})
    # The shift omits infinities: inf - inf would be NaN.
    finite = apply_op("SelectV2", [apply_op("IsFinite", [largest]), largest, apply_op("ZerosLike", [largest])])
    shift = apply_op("StopGradient", [finite])
    total = apply_op("Sum", [apply_op("Exp", [apply_op("Sub", [x, shift])]), axes], {"keep_dims": keep})
    if not keep:
        shift = apply_op("Sum", [shift, axes], {"keep_dims": False})  # of one element: only the shape changes
    result: Tensor = apply_op("AddV2", [apply_op("Log", [total]), shift], name=name or "ReduceLogSumExp")
    return result


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Returns the mean squared distance from the mean over the axes (all for None); floats and complex numbers only."""
    x = convert_to_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise InvalidArgumentError(f"reduce_variance: dtype {x.dtype.name} given; it must be floating or complex")
    axes = reduction_axes(x, axis)
    difference = apply_op("Sub", [x, apply_op("Mean", [x, axes], {"keep_dims": True})])
    if x.dtype.is_complex:
        difference = apply_op("ComplexAbs", [difference], {"Tout": x.dtype.real_dtype})
    squared = apply_op("Square", [difference])
    result: Tensor = apply_op("Mean", [squared, axes], {"keep_dims": keepdims}, name or "reduce_variance")
    return result


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Returns the root of `reduce_variance`."""
    result: Tensor = apply_op("Sqrt", [reduce_variance(input_tensor, axis, keepdims)], name=name or "reduce_std")
    return result


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """Returns how many elements are not zero over the axes (all for None), as `dtype`.

    keepdims keeps the axes with size 1. Empty strings count as zero. reduction_indices, keep_dims and input are other
    names of axis, keepdims and input_tensor.
    """
    x = convert_to_tensor(renamed("input", input, "input_tensor", input_tensor))
    zero: Any = b"" if x.dtype.name == "string" else np.zeros((), x.dtype.numpy)
    differs = apply_op("NotEqual", [x, convert_to_tensor(zero, x.dtype)])
    ones = apply_op("Cast", [differs], {"DstT": int64})
    total = _reduce("Sum", ones, axis, keepdims, None, reduction_indices, keep_dims)
    wanted: DType = as_dtype(dtype)
    result: Tensor = apply_op("Cast", [total], {"DstT": wanted}, name or "count_nonzero")
    return result


def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = int64
) -> Tensor:
    """Returns the index of the first largest element along an axis (0 for None), as `output_type`.

    input: numbers or bools; NaN is passed over. The result has the shape of input without the axis. output_type: an
    integer of 16, 32 or 64 bits. dimension is the older name of axis.
    """
    return _index_of("ArgMax", input, renamed("axis", axis, "dimension", dimension), output_type, name)


def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = int64
) -> Tensor:
    """Returns the index of the first smallest element along an axis (0 for None), as `output_type`.

    The arguments and the result are those of `argmax`.
    """
    return _index_of("ArgMin", input, renamed("axis", axis, "dimension", dimension), output_type, name)


def _index_of(op: str, input: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    result: Tensor = apply_op(op, [input, 0 if axis is None else axis], {"output_type": output_type}, name)
    return result


def arg_max(input: Any, dimension: Any, output_type: Any = int64, name: str | None = None) -> Tensor:
    """`argmax` under its older name and argument order."""
    return argmax(input, dimension, name, output_type=output_type)


def arg_min(input: Any, dimension: Any, output_type: Any = int64, name: str | None = None) -> Tensor:
    """`argmin` under its older name and argument order."""
    return argmin(input, dimension, name, output_type=output_type)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Returns the running sum along an axis.

    exclusive: without the element itself, so that the first result is 0. reverse: from the end on. The result has the
    shape and dtype of x.
    """
    result: Tensor = apply_op("Cumsum", [x, axis], {"exclusive": exclusive, "reverse": reverse}, name)
    return result


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Returns the running product along an axis.

    exclusive: without the element itself, so that the first result is 1. reverse: from the end on. The result has the
    shape and dtype of x.
    """
    result: Tensor = apply_op("Cumprod", [x, axis], {"exclusive": exclusive, "reverse": reverse}, name)
    return result


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Returns the running logarithm of the sum of exponentials along an axis.

    exclusive: without the element itself, so that the first result is the logarithm of 0. reverse: from the end on.
    The result has the shape and dtype of x.
    """
    result: Tensor = apply_op("CumulativeLogsumexp", [x, axis], {"exclusive": exclusive, "reverse": reverse}, name)
    return result


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Returns half the sum of the squares of all elements."""
    result: Tensor = apply_op("L2Loss", [t], name=name)
    return result

"""`tf.*` functions of two operands that broadcast: arithmetic and bits; and sums of many tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.operators import div, dtype_of, truediv
from timberframe_core.shapes import format_shape, is_static

__all__ = [
    "accumulate_n", "add", "add_n", "atan2", "betainc", "broadcast_dynamic_shape", "div", "div_no_nan", "divide",
    "floor_div", "floordiv", "floormod", "igamma", "igammac", "maximum", "minimum", "mod", "multiply", "polygamma",
    "pow", "realdiv", "scalar_mul", "squared_difference", "subtract", "truediv", "truncatediv", "truncatemod", "zeta",
]  # fmt: skip

NAMESPACES = {
    "math": (
        "accumulate_n", "add", "add_n", "atan2", "betainc", "divide", "divide_no_nan", "floordiv", "floormod",
        "igamma", "igammac", "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "nextafter", "polygamma",
        "pow", "scalar_mul", "squared_difference", "subtract", "truediv", "xdivy", "xlog1py", "xlogy", "zeta",
    ),
    "bitwise": ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
}  # fmt: skip

_Binary = Callable[..., Tensor]


def _function(op: str, name: str, doc: str, node: str | None = None) -> _Binary:
    """Returns a function `name` (x, y) that adds one node of the op, called `node` unless the caller names it."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(op, [x, y], name=name or node)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Returns the Hurwitz zeta function, the sum of (q + k)^-x for k >= 0, by element."""
    result: Tensor = apply_op("Zeta", [x, q], name=name or "Zeta")
    return result


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the derivative of order a of digamma at x, by element."""
    result: Tensor = apply_op("Polygamma", [a, x], name=name or "Polygamma")
    return result


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the regularised lower incomplete gamma function P(a, x): that a gamma number of shape a is below x."""
    result: Tensor = apply_op("Igamma", [a, x], name=name or "Igamma")
    return result


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), precise where it is small."""
    result: Tensor = apply_op("Igammac", [a, x], name=name or "Igammac")
    return result


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the regularised incomplete beta function, by element; operands that are no scalars have one shape."""
    result: Tensor = apply_op("Betainc", [a, b, x], name=name or "Betainc")
    return result


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y by element; strings are joined."""
    strings = dtype_of(x, y) is string or any(isinstance(v, str | bytes) for v in (x, y))
    result: Tensor = apply_op("Add" if strings else "AddV2", [x, y], name=name or "Add")
    return result


subtract = _function("Sub", "subtract", "x - y by element.")
multiply = _function("Mul", "multiply", "x * y by element.")
realdiv = _function("RealDiv", "realdiv", "x / y by element, for floating-point and complex dtypes.")
truncatediv = _function("TruncateDiv", "truncatediv", "x / y by element, rounded towards zero.")
floor_div = _function("FloorDiv", "floor_div", "The largest integer not above x / y, by element.")
floordiv = _function("FloorDiv", "floordiv", "The largest integer not above x / y, by element.", "floordiv")
floormod = _function("FloorMod", "floormod", "The remainder of x / y by element, with y's sign.")
mod = floormod
truncatemod = _function("TruncateMod", "truncatemod", "The remainder of x / y by element, with x's sign.")
maximum = _function("Maximum", "maximum", "The larger of x and y by element; NaN where either is NaN.")
minimum = _function("Minimum", "minimum", "The smaller of x and y by element; NaN where either is NaN.")
pow = _function("Pow", "pow", "x to the power y, by element.")
squared_difference = _function("SquaredDifference", "squared_difference", "(x - y) squared, by element.")
div_no_nan = _function("DivNoNan", "div_no_nan", "x / y by element, and 0 where y is 0.", "div_no_nan")
divide_no_nan = div_no_nan
multiply_no_nan = _function("MulNoNan", "multiply_no_nan", "x * y, and 0 where y is 0.", "multiply_no_nan")
xdivy = _function("Xdivy", "xdivy", "x / y by element, and 0 where x is 0.", "xdivy")
xlogy = _function("Xlogy", "xlogy", "x * log(y) by element, and 0 where x is 0.")
xlog1py = _function("Xlog1py", "xlog1py", "x * log(1 + y) by element, and 0 where x is 0.", "xlog1py")
bitwise_and = _function("BitwiseAnd", "bitwise_and", "The bits that x and y both have, by element.")
bitwise_or = _function("BitwiseOr", "bitwise_or", "The bits that x or y has, by element.")
bitwise_xor = _function("BitwiseXor", "bitwise_xor", "The bits in which x and y differ, by element.")
left_shift = _function("LeftShift", "left_shift", "x shifted left by y bits, by element.")
right_shift = _function("RightShift", "right_shift", "x shifted right by y bits, by element.")


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Returns the angle of the point (x, y) against the x axis, in radians, by element."""
    result: Tensor = apply_op("Atan2", [y, x], name=name)
    return result


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """Returns the next number of the dtype after x1 in the direction of x2, by element."""
    result: Tensor = apply_op("NextAfter", [x1, x2], name=name)
    return result


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y by element, as Python 3 divides: `truediv`."""
    return truediv(x, y, name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """x, a tensor or IndexedSlices, times a scalar of its dtype."""
    values = x.values if isinstance(x, IndexedSlices) else convert_to_tensor(x)
    factor = convert_to_tensor(scalar, values.dtype.base_dtype, name="scalar")
    if factor.static_shape not in (None, ()):
        raise InvalidArgumentError(
            f"scalar_mul: scalar has shape {format_shape(factor.static_shape)}; a scalar is required"
        )
    product = apply_op("Mul", [factor, values], name=name)
    return IndexedSlices(product, x.indices, x.dense_shape) if isinstance(x, IndexedSlices) else product


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Returns the sum of tensors of one shape; a single one is passed on."""
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if not values:
        raise InvalidArgumentError("add_n: no inputs; at least one tensor is required")
    if len(values) == 1:
        only = convert_to_tensor(values[0])
        return only if name is None else _identity(only, name)
    result: Tensor = apply_op("AddN", [values], name=name)
    return result


def _identity(x: Tensor, name: str) -> Tensor:
    result: Tensor = apply_op("Identity", [x], name=name)
    return result


def accumulate_n(inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """Returns the sum of tensors of one shape, which `shape` and `tensor_dtype` may state: `add_n`."""
    values = [convert_to_tensor(x, tensor_dtype) for x in inputs]
    total = add_n(values, name)
    if shape is not None and is_static(total.static_shape) and tuple(shape) != total.static_shape:
        raise InvalidArgumentError(
            f"accumulate_n: inputs have shape {format_shape(total.static_shape)}; "
            f"shape says {format_shape(tuple(shape))}"
        )
    return total


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Returns the shape that tensors of these shapes, given as vectors, broadcast to."""
    result: Tensor = apply_op("BroadcastArgs", [shape_x, shape_y])
    return result

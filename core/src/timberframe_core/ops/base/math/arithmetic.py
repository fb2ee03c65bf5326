"""Sums, differences, products and extremes of two operands that broadcast, and sums of many."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.math.binary import (
    at_least_float32,
    binary_op,
    host_value,
)
from timberframe_core.ops.definition.accuracy import Accumulation, Exact, Pointwise
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients, conjugate, of_values
from timberframe_core.ops.definition.opdef import UNKNOWN, Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import BROADCAST_RULE, all_equal
from timberframe_core.shapes import Shape, format_shape

_NUMBERS = (
    "{bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}"
)
_SUB_NUMBERS = (
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}"
)
_MUL_NUMBERS = (
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
)
_REAL_NUMBERS = "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}"
_INEXACT = "{bfloat16, half, float, double, complex64, complex128}"

# A product of complex numbers by the four real products has a relative error below sqrt(5) u (Brent, Percival and
# Zimmermann, Error bounds on complex floating-point multiplication, 2007); u is at most one ULP of the modulus.
PRODUCT = Pointwise(float32=0.5, float64=0.5, float16=0.5, complex=2.24)


def _mul_no_nan(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.where(y == 0, np.zeros((), np.result_type(x, y)), x * y)


def _strings_or_numbers(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.asarray(np.add(x, y), dtype=object if x.dtype == object else None)


def _add_gradient(op: Any, grad: Any) -> list[Any]:
    return broadcast_gradients(op, grad, grad)


def _mul_gradient(op: Any, grad: Any) -> list[Any]:
    x, y = op.inputs
    return broadcast_gradients(op, grad * conjugate(y), conjugate(x) * grad)


def _mul_no_nan_gradient(op: Any, grad: Any) -> list[Any]:
    """As of a product; TensorFlow's own lacks the conjugates."""
    x, y = map(conjugate, op.inputs)
    return broadcast_gradients(op, apply_op("MulNoNan", [grad, y]), apply_op("MulNoNan", [x, grad]))


_ADD_VALUE = host_value(lambda x, y: x + y)

binary_op(
    "Add",
    "x + y by element; strings are joined. Integers wrap around.",
    _strings_or_numbers,
    "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    value=_ADD_VALUE,
    total_value=True,
    gradient=_add_gradient,
    gradient_takes_slices=True,
)

binary_op(
    "AddV2",
    "x + y by element. Integers wrap around.",
    lambda attrs, x, y: np.add(x, y),
    _NUMBERS,
    commutative=True,
    value=_ADD_VALUE,
    total_value=True,
    gradient=_add_gradient,
    gradient_takes_slices=True,
)

binary_op(
    "Sub",
    "x - y by element. Integers wrap around.",
    lambda attrs, x, y: np.subtract(x, y),
    _SUB_NUMBERS,
    value=host_value(lambda x, y: x - y),
    total_value=True,
    gradient=lambda op, grad: broadcast_gradients(op, grad, of_values(operator.neg, grad)),
    gradient_takes_slices=True,
)

binary_op(
    "Mul",
    "x * y by element. Integers wrap around.",
    lambda attrs, x, y: np.multiply(x, y),
    _MUL_NUMBERS,
    commutative=True,
    accuracy=PRODUCT,
    value=host_value(lambda x, y: x * y),
    total_value=True,
    gradient=_mul_gradient,
)

binary_op(
    "MulNoNan",
    "x * y by element, and 0 where y is 0 even if x is infinite or NaN.",
    _mul_no_nan,
    _INEXACT,
    accuracy=PRODUCT,
    gradient=_mul_no_nan_gradient,
)


def _squared_difference(attrs: Attrs, x: Any, y: Any) -> Any:
    d = np.subtract(x, y)
    return np.multiply(np.conj(d), d) if np.iscomplexobj(d) else at_least_float32(lambda a, b: (a - b) * (a - b))(x, y)


def _squared_difference_gradient(op: Any, grad: Any) -> list[Any]:
    x, y = op.inputs
    scaled = 2 * grad * (x - y)
    return broadcast_gradients(op, scaled, -scaled)


binary_op(
    "SquaredDifference",
    "(x - y) squared by element; for complex numbers the squared modulus, with imaginary part 0. Integers wrap around.",
    _squared_difference,
    "{bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True,
    # (1 + u)^2 of the difference and one rounding of the product: 3u; complex: one more rounding of each square's sum.
    accuracy=Pointwise(float32=3, float64=3, float16=1, complex=4),
    gradient=_squared_difference_gradient,
)


_ORDERED_ZEROS = Exact(signed_zero=False, ordered_zeros=True)


def _maximum(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.where((x < y) | (y != y) | ((x == y) & np.signbit(x)), y, x)


def _minimum(attrs: Attrs, x: Any, y: Any) -> Any:
    return np.where((y < x) | (y != y) | ((x == y) & ~np.signbit(x)), y, x)


def _extreme_gradient(op: Any, grad: Any, first_wins: Any) -> list[Any]:
    """To the operand that was taken; of equal ones to the first."""
    zeros = apply_op("ZerosLike", [grad])
    gx, gy = (apply_op("SelectV2", [first_wins, *pair]) for pair in ((grad, zeros), (zeros, grad)))
    return broadcast_gradients(op, gx, gy)


binary_op(
    "Maximum",
    "The larger of x and y by element; NaN where either is NaN.",
    _maximum,
    _REAL_NUMBERS,
    accuracy=_ORDERED_ZEROS,
    value=host_value(max),
    total_value=True,
    gradient=lambda op, grad: _extreme_gradient(op, grad, op.inputs[0] >= op.inputs[1]),
)

binary_op(
    "Minimum",
    "The smaller of x and y by element; NaN where either is NaN.",
    _minimum,
    _REAL_NUMBERS,
    accuracy=_ORDERED_ZEROS,
    value=host_value(min),
    total_value=True,
    gradient=lambda op, grad: _extreme_gradient(op, grad, op.inputs[0] <= op.inputs[1]),
)


def _add_n_samples() -> Iterator[Sample]:
    for count, shape in (
        (1, (7,)),
        (2, (3, 5)),
        (3, (131,)),
        (5, ()),
        (9, (2, 3)),
        (17, (11,)),
        (4, (0, 3)),
        (3, (65_537,)),
    ):
        yield Sample(([Arg(shape=shape)] * count,))


def _add_n(attrs: Attrs, *inputs: Any) -> Any:
    total = inputs[0].astype(np.float32) if inputs[0].dtype.name in ("float16", "bfloat16") else inputs[0].copy()
    for x in inputs[1:]:
        total = (total + x.astype(total.dtype)).astype(total.dtype)
    return total.astype(inputs[0].dtype)


define_op(
    "AddN",
    inputs=("inputs: N * T",),
    outputs=("sum: T",),
    attrs=("N: int >= 1", "T: {numbertype, variant}"),
    doc="The sum of tensors of one shape, by element. Integers wrap around.",
    shape=all_equal,
    reference=_add_n,
    commutative=True,
    accuracy=Accumulation(terms=lambda attrs, *inputs: len(inputs)),
    gradient=lambda op, grad: [grad] * len(op.inputs),
    gradient_takes_slices=True,
    samples=_add_n_samples,
    errors=lambda: (
        ErrorSample(([Arg(shape=(2, 3)), Arg(shape=(3, 2))],), match="must be equal"),
        ErrorSample(([Arg(shape=(2,)), Arg(shape=(2,)), Arg(shape=(1,))],), match="must be equal"),
    ),
)


def _broadcast_args_shape(c: InferenceContext) -> list[Shape]:
    first, second = c.require_rank(0, 1), c.require_rank(1, 1)
    _broadcast_args_value(c)
    if first[0] is None or second[0] is None:
        return [(None,)]
    return [(max(first[0], second[0]),)]


def _broadcast_args_value(c: InferenceContext) -> list[np.ndarray | None]:
    a, b = c.values
    if a is None or b is None:
        return [None]
    x, y = list(a), list(b)
    rank = max(len(x), len(y))
    pairs = zip([1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y, strict=True)
    sizes = [_broadcast_size(c, p, q, x, y) for p, q in pairs]
    known = all(s is not UNKNOWN for s in sizes)
    return [np.array(sizes, dtype=c.dtypes[0].numpy if known else object)]


def _broadcast_size(c: InferenceContext, p: Any, q: Any, x: list[Any], y: list[Any]) -> Any:
    if p is UNKNOWN or q is UNKNOWN:
        other = q if p is UNKNOWN else p
        return UNKNOWN if other is UNKNOWN or other == 1 else other
    if p == q or q == 1:
        return p
    if p == 1:
        return q
    shown = (format_shape(tuple(None if d is UNKNOWN else int(d) for d in s)) for s in (x, y))
    raise c.error(f"shapes {' and '.join(shown)} do not broadcast; {BROADCAST_RULE}")


def _unequal(x: str, y: str, a: int, b: int, d: int) -> str:
    """Returns what is said of shapes x and y whose sizes a and b, dimension d from the last,
    differ: in the graph, in a run.
    """
    return rf"shapes {re.escape(x)} and {re.escape(y)} do not|sizes {a} and {b}, dimension {d} from the last, do not"


SIZES_DIFFER = "sizes {0} and {1}, dimension {2} from the last, do not broadcast; they must be equal, or one of them 1"


def _broadcast_args(attrs: Attrs, x: Any, y: Any) -> Any:
    pairs = enumerate(zip_longest(reversed(x.tolist()), reversed(y.tolist()), fillvalue=1))
    for d, (p, q) in pairs:
        if p != q and 1 not in (p, q):
            raise InvalidArgumentError(SIZES_DIFFER.format(p, q, d))
    return np.array(np.broadcast_shapes(tuple(x), tuple(y)), dtype=x.dtype)


define_op(
    "BroadcastArgs",
    inputs=("s0: T", "s1: T"),
    outputs=("r0: T",),
    attrs=("T: {int32, int64} = DT_INT32",),
    doc="The shape that tensors of shapes s0 and s1 broadcast to.",
    shape=_broadcast_args_shape,
    reference=_broadcast_args,
    value=_broadcast_args_value,
    gradient=NotDifferentiable("shapes are integers"),
    samples=lambda: (
        Sample((Arg(values=(2, 1)), Arg(values=(3, 2, 5)))),
        Sample((Arg(values=(7,)), Arg(values=(1,)))),
        Sample((Arg(values=()), Arg(values=(3, 0)))),
        Sample((Arg(values=()), Arg(values=()))),
        Sample((Arg(values=(1, 70_000)), Arg(values=(5, 1)))),
    ),
    errors=lambda: (
        ErrorSample((Arg(values=(2, 3)), Arg(values=(3, 2, 5))), match=_unequal("(2, 3)", "(3, 2, 5)", 3, 5, 0)),
        ErrorSample((Arg(values=(4, 2, 3)), Arg(values=(7, 3))), match=_unequal("(4, 2, 3)", "(7, 3)", 2, 7, 1)),
        ErrorSample((Arg(values=((1,),)), Arg(values=(3,))), match="rank 1"),
    ),
)

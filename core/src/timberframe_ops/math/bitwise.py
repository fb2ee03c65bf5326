"""Operations on the bits of integers of two operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import INTEGERS, SIGNED, binary_op, broadcast_samples, limits, value_sample
from timberframe_core.ops.definition.opdef import Attrs, NotDifferentiable
from timberframe_core.ops.definition.samples import Arg, Sample

_INTEGERS = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
_BITS = NotDifferentiable("the operands are integers")

for _name, _doc, _function in (
    ("BitwiseAnd", "The bits that x and y both have, by element.", np.bitwise_and),
    ("BitwiseOr", "The bits that x or y has, by element.", np.bitwise_or),
    ("BitwiseXor", "The bits in which x and y differ, by element.", np.bitwise_xor),
):
    binary_op(
        _name,
        _doc,
        lambda attrs, x, y, function=_function: function(x, y),
        _INTEGERS,
        commutative=True,
        gradient=_BITS,
    )


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a shift by a count that is brought into [0, bits - 1] first, as TensorFlow's CPU kernel does."""

    def reference(attrs: Attrs, x: Any, y: Any) -> Any:
        count = np.clip(y, 0, 8 * y.dtype.itemsize - 1).astype(y.dtype)
        return function(x, count)

    return reference


def _shift_samples() -> Iterator[Sample]:
    yield from broadcast_samples(Arg(), Arg(low=0, high=7, special=False))
    for dtype in INTEGERS:
        low, high = limits(dtype)
        bits = np.iinfo(dtype).bits
        x = (low, low, high, high, 1, 1, 5, high)
        yield value_sample((dtype,), x, (1, bits - 1, 1, bits - 1, bits - 1, 0, 2, bits // 2))
    reason = "TensorFlow leaves shifts by a negative count or by all bits and more to the device"
    for dtype in SIGNED:
        yield Sample(
            (Arg(values=(1, -1, 5)), Arg(values=(-1, 64, 100))), types={"T": (dtype,)}, implementation_defined=reason
        )


binary_op(
    "LeftShift",
    "x shifted left by y bits, by element.",
    _shift(np.left_shift),
    _INTEGERS,
    samples=_shift_samples,
    gradient=_BITS,
)

binary_op(
    "RightShift",
    "x shifted right by y bits, by element; the sign bit of signed numbers moves in.",
    _shift(np.right_shift),
    _INTEGERS,
    samples=_shift_samples,
    gradient=_BITS,
)

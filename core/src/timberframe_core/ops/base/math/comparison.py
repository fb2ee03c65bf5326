"""Comparisons of two operands that broadcast, and the logic of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    binary_op,
    broadcast_samples,
    host_value,
    limits,
    own_dtype,
    value_sample,
)
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.shape_functions import BROADCAST_PAIRS, ERROR_PAIRS, all_equal, broadcast_pair
from timberframe_core.shapes import Shape, broadcast, is_static

_ORDERED = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_BOOLEAN = NotDifferentiable("the result is of dtype bool")


def _equality_shape(c: InferenceContext) -> list[Shape]:
    a, b = c.shapes
    if c.attrs.get("incompatible_shape_error", True):
        return [broadcast_pair(c, a, b)]
    try:
        result = broadcast(a, b)
    except ValueError:
        return [()]  # one answer for the whole: tensors that do not broadcast are not equal
    return [result if is_static(a) and is_static(b) else None]


def _equality(name: str) -> Callable[..., Any]:
    def reference(attrs: Attrs, x: Any, y: Any) -> Any:
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return np.asarray(name == "NotEqual")
        return np.asarray(np.equal(x, y) if name == "Equal" else np.not_equal(x, y), dtype=bool)

    return reference


def _equal_pairs(types: tuple[str, ...]) -> Sample:
    """Returns values of which some are equal, the special ones among them where there are any."""
    if types[0] in FLOATS:
        x = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, np.nan, -2.0, 3.0)
        return value_sample(types, x, (-0.0, 0.0, np.nan, np.inf, np.inf, 1.5, 1.0, 2.0, 3.5))
    return value_sample(types, (0, 1, 2, 100, 127, 64, 5), (0, 2, 1, 100, 126, 64, 7))


def _extreme_pairs() -> Iterator[Sample]:
    for dtype in INTEGERS:
        low, high = limits(dtype)
        yield value_sample((dtype,), (low, high, low, high, 0), (low, high, high, low, high))


def _comparison_samples() -> Iterator[Sample]:
    yield from broadcast_samples()
    yield _equal_pairs(FLOATS)
    yield _equal_pairs(INTEGERS)
    yield from _extreme_pairs()


def _equality_samples() -> Iterator[Sample]:
    yield from _comparison_samples()
    yield Sample((Arg(shape=(257,), low=0, high=3, whole=True), Arg(shape=(257,), low=0, high=3, whole=True)))
    yield value_sample(COMPLEX, (1 + 2j, 1 + 2j, 0j, 1j), (1 + 2j, 1 - 2j, 0j, 1 + 0j))
    yield value_sample(("string",), (b"", b"a", b"ab", b"\xff\x00"), (b"", b"b", b"ab", b"\xff"))
    yield value_sample(("bool",), (True, False, True, False), (True, True, False, False))
    for a, b in ERROR_PAIRS:
        yield Sample((Arg(shape=a), Arg(shape=b)), {"incompatible_shape_error": False})
    yield Sample((Arg(shape=(3, 1)), Arg(shape=(1, 2))), {"incompatible_shape_error": False})


for _name, _doc in (
    ("Equal", "Whether x equals y, by element; NaN equals nothing."),
    ("NotEqual", "Whether x differs from y, by element; NaN differs from everything."),
):
    binary_op(
        _name,
        f"{_doc} Where incompatible_shape_error is false, operands that do not broadcast give one answer for all.",
        _equality(_name),
        "type",
        attrs=("incompatible_shape_error: bool = true",),
        outputs=("z: bool",),
        shape=_equality_shape,
        commutative=True,
        samples=_equality_samples,
        gradient=_BOOLEAN,
        value=host_value((lambda x, y: x == y) if _name == "Equal" else (lambda x, y: x != y)),
    )

binary_op(
    "Less",
    "Whether x < y, by element; false where either is NaN.",
    lambda attrs, x, y: np.less(x, y),
    _ORDERED,
    outputs=("z: bool",),
    samples=_comparison_samples,
    gradient=_BOOLEAN,
    value=host_value(lambda x, y: x < y),
)

binary_op(
    "LessEqual",
    "Whether x <= y, by element; false where either is NaN.",
    lambda attrs, x, y: np.less_equal(x, y),
    _ORDERED,
    outputs=("z: bool",),
    samples=_comparison_samples,
    gradient=_BOOLEAN,
    value=host_value(lambda x, y: x <= y),
)

binary_op(
    "Greater",
    "Whether x > y, by element; false where either is NaN.",
    lambda attrs, x, y: np.greater(x, y),
    _ORDERED,
    outputs=("z: bool",),
    samples=_comparison_samples,
    gradient=_BOOLEAN,
    value=host_value(lambda x, y: x > y),
)

binary_op(
    "GreaterEqual",
    "Whether x >= y, by element; false where either is NaN.",
    lambda attrs, x, y: np.greater_equal(x, y),
    _ORDERED,
    outputs=("z: bool",),
    samples=_comparison_samples,
    gradient=_BOOLEAN,
    value=host_value(lambda x, y: x >= y),
)


def _approximately_equal(attrs: Attrs, x: Any, y: Any) -> Any:
    a, b = own_dtype(attrs, x, y)
    return np.abs(a - b) < a.dtype.type(attrs.get("tolerance", 1e-5))


def _same_shape_samples() -> Iterator[Sample]:
    for a, b in BROADCAST_PAIRS:
        if a == b:
            yield Sample((Arg(shape=a), Arg(shape=b)), {"tolerance": 0.5})
    yield Sample((Arg(shape=(131,)), Arg(shape=(131,))), {"tolerance": 2.0})
    yield value_sample(FLOATS[2:], (1.0, np.inf, np.nan, 1.0, 2.0, 0.0), (1.000009, np.inf, np.nan, 1.00002, 3.0, -0.0))


binary_op(
    "ApproximateEqual",
    "Whether x and y, of one shape, differ by less than tolerance, by element.",
    _approximately_equal,
    "numbertype",
    attrs=("tolerance: float = 0.00001",),
    outputs=("z: bool",),
    shape=all_equal,
    mismatch="must be equal",
    commutative=True,
    samples=_same_shape_samples,
    gradient=_BOOLEAN,
)


def _logical(name: str, doc: str, function: Callable[..., Any]) -> None:
    binary_op(
        name,
        doc,
        lambda attrs, x, y: np.asarray(function(x, y)),
        "",
        inputs=("x: bool", "y: bool"),
        outputs=("z: bool",),
        commutative=True,
        gradient=_BOOLEAN,
    )


_logical("LogicalAnd", "x and y, by element.", np.logical_and)
_logical("LogicalOr", "x or y, by element.", np.logical_or)

"""Products of matrices and batches of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, conjugate, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import broadcast_pair, merge_shapes
from timberframe_core.shapes import Shape, StaticShape, format_shape

_HALF_MATRIX = ("transpose_a", "transpose_b"), ("adj_x", "adj_y")


def _inner(c: InferenceContext, a: Shape, b: Shape, swap_a: bool, swap_b: bool) -> tuple[int | None, int | None]:
    """Returns rows and columns of the product of two matrices, whose inner sizes must agree."""
    assert a is not None
    assert b is not None
    rows, depth = (a[1], a[0]) if swap_a else a
    other, columns = (b[1], b[0]) if swap_b else b
    if depth is not None and other is not None and depth != other:
        first, second = _HALF_MATRIX["transpose_a" not in c.attrs]
        raise c.error(
            f"matrices of shapes {format_shape(c.shapes[0])} and {format_shape(c.shapes[1])}, {first}={swap_a}, "
            f"{second}={swap_b}, have inner sizes {depth} and {other}; they must be equal"
        )
    return rows, columns


def _matmul_shape(c: InferenceContext) -> list[Shape]:
    a, b = c.require_rank(0, 2), c.require_rank(1, 2)
    return [_inner(c, a, b, c.attrs["transpose_a"], c.attrs["transpose_b"])]


def _matrices(c: InferenceContext) -> tuple[Shape, Shape]:
    for i in (0, 1):
        rank = c.rank(i)
        if rank is not None and rank < 2:
            raise c.error(f"input {i} has shape {format_shape(c.shapes[i])}; it must have rank 2 or more")
    return c.shapes[0], c.shapes[1]


def _equal_batch_shape(c: InferenceContext) -> list[Shape]:
    x, y = _matrices(c)
    if x is None or y is None:
        return [None]
    batch = merge_shapes(c, x[:-2], y[:-2], "the batch dimensions")
    assert batch is not None
    return [(*batch, *_inner(c, x[-2:], y[-2:], c.attrs["adj_x"], c.attrs["adj_y"]))]


def _broadcast_batch_shape(c: InferenceContext) -> list[Shape]:
    x, y = _matrices(c)
    if x is None or y is None:
        return [None]
    inner = _inner(c, x[-2:], y[-2:], c.attrs["adj_x"], c.attrs["adj_y"])
    batch = broadcast_pair(c, x[:-2], y[:-2])
    assert batch is not None
    return [(*batch, *inner)]


def _multiply(a: Any, b: Any) -> Any:
    if a.dtype.kind in "iufc":
        return np.matmul(a, b)
    return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)


def _matmul(attrs: Attrs, a: Any, b: Any) -> Any:
    return _multiply(a.T if attrs["transpose_a"] else a, b.T if attrs["transpose_b"] else b)


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _batch_matmul(attrs: Attrs, x: Any, y: Any) -> Any:
    return _multiply(_adjoint(x) if attrs["adj_x"] else x, _adjoint(y) if attrs["adj_y"] else y)


def _mixed_matmul(attrs: Attrs, x: Any, y: Any) -> Any:
    wanted = attrs["Tout"]
    if wanted.is_integer:
        x, y = x.astype(wanted.numpy), y.astype(wanted.numpy)
    elif x.dtype != y.dtype:
        x, y = x.astype(np.float64), y.astype(np.float64)
    return _batch_matmul(attrs, x, y)


def _depth(attrs: Attrs, a: Any, b: Any) -> int:
    swapped = attrs["transpose_a"] if "transpose_a" in attrs else attrs["adj_x"]
    return int(a.shape[-2 if swapped else -1])


_SIZES = (
    (1, 1, 1), (2, 3, 5), (7, 13, 11), (1, 17, 9), (9, 1, 17), (17, 9, 1), (1, 300, 200), (200, 300, 1), (3, 0, 4),
    (0, 3, 4), (4, 3, 0), (0, 0, 0), (16, 16, 16), (33, 65, 31), (64, 64, 64), (67, 129, 131), (129, 257, 70),
)  # fmt: skip
_LARGE_SIZES = ((65_537, 3, 2), (2, 65_537, 3), (2, 3, 65_537), (600, 90, 40), (40, 90, 600), (515, 515, 515))
_FLAGS = ((False, False), (False, True), (True, False), (True, True))
_FAST = ("float32", "float64", "bfloat16", "int32")


def _operand(rows: int, columns: int, swapped: bool, batch: StaticShape = (), **limits: Any) -> Arg:
    return Arg((*batch, columns, rows) if swapped else (*batch, rows, columns), **limits)


_COMPLEX = ("complex64", "complex128")
_NOT_COMPLEX = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64")


def finite_complex(samples: Iterable[Sample], type_attr: str = "T") -> Iterable[Sample]:
    """Yields the samples, complex ones of finite values: products of complex infinities
    differ between implementations.
    """
    for sample in samples:
        wanted = sample.types.get(type_attr, (*_NOT_COMPLEX, *_COMPLEX))
        real, complex_ = (tuple(t for t in wanted if t in allowed) for allowed in (_NOT_COMPLEX, _COMPLEX))
        if real:
            yield replace(sample, types={**sample.types, type_attr: real})
        if complex_:
            inputs = [_finite(x) for x in sample.inputs]
            yield replace(sample, inputs=inputs, types={**sample.types, type_attr: complex_})


def _finite(x: Any) -> Any:
    return replace(x, special=False) if isinstance(x, Arg) else [replace(a, special=False) for a in x]


def _matmul_samples() -> Iterable[Sample]:
    for rows, depth, columns in _SIZES:
        for a, b in _FLAGS:
            inputs = [_operand(rows, depth, a), _operand(depth, columns, b)]
            yield Sample(inputs, {"transpose_a": a, "transpose_b": b})
    yield Sample([Arg((3, 5)), Arg((5, 2))], {"grad_a": True, "grad_b": True})
    for rows, depth, columns in _LARGE_SIZES:
        yield Sample([Arg((rows, depth)), Arg((depth, columns))], types={"T": _FAST})
    for depth in (64, 512):
        yield Sample([Arg(values=_selection(32, depth)), Arg((depth, 32))])


def _selection(rows: int, depth: int) -> Any:
    """Returns a matrix of zeros with a one in each row, at different places.

    A product with it has rows of the other matrix, and is off by far more than its bound if these were rounded to fewer
    bits: such errors of many terms cancel each other, while the bound grows with their number. Its sizes are multiples
    of those that units for products of matrices in fewer bits take.
    """
    chosen = np.zeros((rows, depth))
    chosen[np.arange(rows), (7 * np.arange(rows) + 3) % depth] = 1
    return chosen


def _matmul_errors() -> Iterable[ErrorSample]:
    yield ErrorSample([Arg((2, 3)), Arg((2, 3))], r"have inner sizes 3 and 2")
    yield ErrorSample([Arg((2, 3)), Arg((3, 4))], r"have inner sizes 2 and 3", {"transpose_a": True})
    yield ErrorSample([Arg((2, 3)), Arg((3, 4))], r"have inner sizes 3 and 4", {"transpose_b": True})
    yield ErrorSample([Arg((2,)), Arg((2, 3))], r"input 0 has shape \(2,\); it must have rank 2")
    yield ErrorSample([Arg((2, 3)), Arg((2, 3, 4))], r"input 1 has shape \(2, 3, 4\); it must have rank 2")


def _matmul_gradient(op: Any, grad: Any) -> list[Any]:
    """grad b' and a' grad for adjoints a', b'; where an operand was transposed, the transposes of these."""
    a, b = map(conjugate, op.inputs)
    swap_a, swap_b = op.attrs["transpose_a"], op.attrs["transpose_b"]
    of_a = (b, grad, swap_b, True) if swap_a else (grad, b, False, not swap_b)
    of_b = (grad, a, True, swap_a) if swap_b else (a, grad, not swap_a, False)
    return [
        apply_op("MatMul", [x, y], {"transpose_a": swap_x, "transpose_b": swap_y, mark: True})
        for (x, y, swap_x, swap_y), mark in ((of_a, "grad_a"), (of_b, "grad_b"))
    ]


matmul = define_op(
    "MatMul",
    inputs=["a: T", "b: T"],
    outputs=["product: T"],
    attrs=[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        "grad_a: bool = false",
        "grad_b: bool = false",
    ],
    doc="Product of two matrices, each transposed first if its attr says so. grad_a and grad_b change nothing.",
    shape=_matmul_shape,
    reference=_matmul,
    accuracy=Accumulation(_depth),
    gradient=_matmul_gradient,
    samples=lambda: finite_complex(_matmul_samples()),
    errors=_matmul_errors,
)

_BATCHES: tuple[tuple[StaticShape, StaticShape], ...] = (
    ((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((0,), (0,)), ((1,), (1,)), ((2, 1, 2), (2, 1, 2)),
)  # fmt: skip
_BROADCAST_BATCHES: tuple[tuple[StaticShape, StaticShape], ...] = (
    ((3,), ()), ((), (3,)), ((2, 1), (1, 3)), ((1,), (4,)), ((5, 1, 2), (3, 1)), ((0,), (1,)), ((2, 1, 3), (2, 2, 1)),
)  # fmt: skip


def _batch_samples(broadcasting: bool, types: tuple[Any, ...] = ({},)) -> Any:
    def make() -> Iterable[Sample]:
        for kind in types:
            for i, (x, y) in enumerate((*_BATCHES, *(_BROADCAST_BATCHES if broadcasting else ()))):
                for j, (adj_x, adj_y) in enumerate(_FLAGS):
                    rows, depth, columns = ((4, 5, 3), (1, 7, 6), (6, 2, 1), (3, 0, 2), (17, 18, 33))[(i + j) % 5]
                    inputs = [_operand(rows, depth, adj_x, x), _operand(depth, columns, adj_y, y)]
                    yield Sample(inputs, {"adj_x": adj_x, "adj_y": adj_y}, kind)
            yield Sample([Arg((65_537, 2, 1)), Arg((65_537, 1, 2))], types=kind)
            yield Sample([Arg((3, 70, 80)), Arg((3, 80, 90))], {"grad_x": True, "grad_y": True}, kind)

    return make


def _batch_errors(broadcasting: bool) -> Any:
    def make() -> Iterable[ErrorSample]:
        yield ErrorSample([Arg((1, 2, 3)), Arg((1, 2, 2))], r"have inner sizes 3 and 2")
        yield ErrorSample([Arg((1, 2, 3)), Arg((1, 3, 2))], r"have inner sizes 2 and 3", {"adj_x": True})
        yield ErrorSample([Arg((2,)), Arg((1, 2, 2))], r"input 0 has shape \(2,\); it must have rank 2 or more")
        yield ErrorSample([Arg((1, 2, 2)), Arg(())], r"input 1 has shape \(\); it must have rank 2 or more")
        if broadcasting:
            yield ErrorSample([Arg((3, 2, 2)), Arg((2, 2, 2))], r"shapes \(3,\) and \(2,\) do not broadcast")
        else:
            yield ErrorSample([Arg((1, 2, 2)), Arg((2, 2, 2))], r"have shapes \(1,\) and \(2,\); they must be equal")

    return make


_FLAG_ATTRS = ("adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false")


def _batch_gradient(op: Any, grad: Any) -> list[Any]:
    """As of MatMul with adjoints; summed over the batch dimensions along which an operand was repeated."""
    x, y = op.inputs
    swap_x, swap_y = op.attrs["adj_x"], op.attrs["adj_y"]
    of_x = (y, grad, swap_y, True) if swap_x else (grad, y, False, not swap_y)
    of_y = (grad, x, True, swap_x) if swap_y else (x, grad, not swap_x, False)
    return [
        _operand_gradient(op, operand, first, second, {"adj_x": swap_first, "adj_y": swap_second, mark: True})
        for operand, (first, second, swap_first, swap_second), mark in ((x, of_x, "grad_x"), (y, of_y, "grad_y"))
    ]


def _operand_gradient(op: Any, operand: Any, first: Any, second: Any, attrs: dict[str, Any]) -> Any:
    if "Tout" in op.attrs:
        if operand.dtype.is_integer:
            return None
        attrs["Tout"] = operand.dtype
    return sum_to_shape(apply_op(op.type, [first, second], attrs), operand)


def _define_batch_matmul(name: str, types: str, doc: str, broadcasting: bool) -> None:
    define_op(
        name,
        inputs=["x: T", "y: T"],
        outputs=["output: T"],
        attrs=[f"T: {types}", *_FLAG_ATTRS],
        doc=f"Products of matrices, those of the last two dimensions; adj_x, adj_y take the adjoint first. {doc}",
        shape=_broadcast_batch_shape if broadcasting else _equal_batch_shape,
        reference=_batch_matmul,
        accuracy=Accumulation(_depth),
        gradient=_batch_gradient,
        samples=lambda: finite_complex(_batch_samples(broadcasting)()),
        errors=_batch_errors(broadcasting),
    )


_define_batch_matmul(
    "BatchMatMul",
    "{bfloat16, half, float, double, int32, int64, complex64, complex128}",
    "The other dimensions must be equal.",
    broadcasting=False,
)
_define_batch_matmul(
    "BatchMatMulV2",
    "{bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "The other dimensions broadcast.",
    broadcasting=True,
)

MIXED_TYPES: tuple[tuple[str, str, str], ...] = (
    *((t, t, t) for t in ("float32", "float64", "bfloat16", "int16", "int32", "int64", "complex64", "complex128")),
    *((x, y, "int32") for x in ("int8", "uint8") for y in ("int8", "uint8")),
    *((x, "bfloat16", "bfloat16") for x in ("int8", "uint8")),
    *(("bfloat16", y, "bfloat16") for y in ("int8", "uint8")),
)
"""Dtypes of x, y and the output for which TensorFlow has a CPU kernel of BatchMatMulV3."""

_mixed_samples = _batch_samples(True, tuple({"Ta": (x,), "Tb": (y,), "Tout": (z,)} for x, y, z in MIXED_TYPES))

define_op(
    "BatchMatMulV3",
    inputs=["x: Ta", "y: Tb"],
    outputs=["output: Tout"],
    attrs=[
        "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
        "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
        "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}",
        *_FLAG_ATTRS,
    ],
    doc="BatchMatMulV2 with operands of different dtypes, multiplied in the output's (bfloat16: in float32).",
    shape=_broadcast_batch_shape,
    reference=_mixed_matmul,
    accuracy=Accumulation(_depth),
    gradient=_batch_gradient,
    samples=lambda: finite_complex(_mixed_samples(), "Ta"),
    errors=_batch_errors(True),
)

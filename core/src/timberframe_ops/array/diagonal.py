"""Diagonals of matrices: read, written, and made into matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.gradients import apply_op, constant, sum_all, zeros_like
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, StaticShape, format_shape, merge_dim

LEFT_LEFT = "LEFT_LEFT"  # how MatrixDiagV2 and its relatives align, which have no attr for it


def diagonal_range(k: Any) -> tuple[int, int]:
    """Returns the lowest and the highest of the diagonals that k names: one number, or the two ends."""
    ends = [int(x) for x in np.ravel(k)]
    return ends[0], ends[-1]


def packed_length(rows: int, columns: int, lower: int, upper: int) -> int:
    """Returns the length of the longest of these diagonals."""
    return max(0, min(rows + min(upper, 0), columns - max(lower, 0)))


def packed_diagonals(
    rows: int, columns: int, lower: int, upper: int, align: str, longest: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """For each diagonal, from the highest: packed row, first place there, first matrix row and column, length.

    align: sides for diagonals above and below the main one, such as ``RIGHT_LEFT``; the main one is left if either is.
    """
    above, below = align.split("_")
    for number, d in enumerate(range(upper, lower - 1, -1)):
        length = max(0, min(rows + min(d, 0), columns - max(d, 0)))
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        yield number, 0 if left else longest - length, -min(d, 0), max(d, 0), length


def require_matrix(c: InferenceContext, i: int = 0, rank: int = 2) -> Shape:
    """Input i's shape, which must have this rank or more."""
    shape = c.shapes[i]
    if shape is not None and len(shape) < rank:
        raise c.error(f"input {i} has shape {format_shape(shape)}; it must have rank {rank} or more")
    return shape


def _k(c: InferenceContext, i: int) -> tuple[int, int] | None:
    """Returns the ends of the diagonals that input i names, checked; None while unknown."""
    shape, value = c.shapes[i], c.value(i)
    if shape is not None and len(shape) > 1:
        raise c.error(f"k has shape {format_shape(shape)}; it must be a scalar or a vector")
    if shape is not None and len(shape) == 1 and shape[0] is not None and shape[0] not in (1, 2):
        raise c.late_error(f"k has {shape[0]} elements; it must have one or two")
    if value is None:
        return None
    lower, upper = diagonal_range(value)
    if lower > upper:
        raise c.error(f"k is [{lower}, {upper}]; the first diagonal must not lie above the second")
    return lower, upper


def _check_inside(c: InferenceContext, k: tuple[int, int], rows: int | None, columns: int | None) -> None:
    for d in k:
        low = rows is not None and d != 0 and d <= -rows
        high = columns is not None and d != 0 and d >= columns
        if low or high:
            size = f"{'?' if rows is None else rows} x {'?' if columns is None else columns}"
            raise c.error(f"diagonal {d} lies outside {size} matrices; it must be above -rows and below columns")


def _part_shape(c: InferenceContext) -> list[Shape]:
    shape = require_matrix(c)
    k = _k(c, 1) if len(c.op.inputs) > 1 else (0, 0)
    if len(c.op.inputs) > 2:
        c.require_rank(2, 0)
    if shape is None or k is None:
        return [None]
    rows, columns = shape[-2:]
    _check_inside(c, k, rows, columns)
    length = None if rows is None or columns is None else packed_length(rows, columns, *k)
    return [(*shape[:-2], *((k[1] - k[0] + 1,) if k[0] < k[1] else ()), length)]


def _simple_diag_shape(c: InferenceContext) -> list[Shape]:
    shape = require_matrix(c, 0, 1)
    return [None if shape is None else (*shape, shape[-1])]


def _diag_shape(c: InferenceContext) -> list[Shape]:
    shape, k = require_matrix(c, 0, 1), _k(c, 1)
    for i in (2, 3, 4):
        c.require_rank(i, 0)
    rows, columns = c.value(2), c.value(3)
    if shape is None or k is None:
        return [None]
    batch = shape[:-1]
    if k[0] < k[1]:
        count = k[1] - k[0] + 1
        if len(shape) < 2 or (shape[-2] is not None and shape[-2] != count):
            raise c.error(f"diagonal has shape {format_shape(shape)}; it must hold {count} diagonals, one a row")
        batch = shape[:-2]
    if shape[-1] is None or rows is None or columns is None:
        return [(*batch, *(None if size is None or size < 0 else int(size) for size in (rows, columns)))]
    return [(*batch, *_matrix_size(c, shape[-1], k, int(rows), int(columns)))]


def _matrix_size(c: InferenceContext, length: int, k: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """Returns the size of the matrices that diagonals of this length make; -1 stands for a size that is not given."""
    least_rows, least_columns = length - min(k[1], 0), length + max(k[0], 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    fits = rows >= least_rows and columns >= least_columns and (rows == least_rows or columns == least_columns)
    if not fits:
        raise c.error(
            f"num_rows {rows}, num_cols {columns} for diagonals {k[0]} to {k[1]} of length {length}; "
            f"one must be its least value ({least_rows}, {least_columns}), the other no less"
        )
    return rows, columns


def _set_shape(c: InferenceContext) -> list[Shape]:
    shape, diagonal = require_matrix(c), require_matrix(c, 1, 1)
    k = _k(c, 2) if len(c.op.inputs) > 2 else (0, 0)
    if shape is None or diagonal is None or k is None:
        return [shape]
    _check_inside(c, k, *shape[-2:])
    rows, columns = shape[-2:]
    length = None if rows is None or columns is None else packed_length(rows, columns, *k)
    wanted: tuple[int | None, ...] = (*shape[:-2], *((k[1] - k[0] + 1,) if k[0] < k[1] else ()), length)
    try:
        if len(wanted) != len(diagonal):
            raise ValueError("ranks differ")
        merged = [merge_dim(a, b) for a, b in zip(wanted, diagonal, strict=True)]
    except ValueError:
        raise c.error(
            f"diagonal has shape {format_shape(diagonal)}; "
            f"for input {format_shape(shape)} it must be {format_shape(wanted)}"
        ) from None
    return [(*merged[: len(shape) - 2], *shape[-2:])]


def _align(attrs: Attrs) -> str:
    return str(attrs.get("align", LEFT_LEFT))


def _part(attrs: Attrs, input: Any, k: Any = 0, padding_value: Any = 0) -> Any:
    (lower, upper), (rows, columns) = diagonal_range(k), input.shape[-2:]
    longest = packed_length(rows, columns, lower, upper)
    out = np.full((*input.shape[:-2], upper - lower + 1, longest), padding_value, input.dtype)
    for number, at, row, column, length in packed_diagonals(rows, columns, lower, upper, _align(attrs), longest):
        i = np.arange(length)
        out[..., number, at : at + length] = input[..., row + i, column + i]
    return out if lower < upper else out[..., 0, :]


def _fill(attrs: Attrs, out: Any, diagonal: Any, lower: int, upper: int) -> Any:
    packed = diagonal if lower < upper else diagonal[..., None, :]
    rows, columns = out.shape[-2:]
    positions = packed_diagonals(rows, columns, lower, upper, _align(attrs), packed.shape[-1])
    for number, at, row, column, length in positions:
        i = np.arange(length)
        out[..., row + i, column + i] = packed[..., number, at : at + length]
    return out


def _diag(
    attrs: Attrs, diagonal: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0
) -> Any:
    lower, upper = diagonal_range(k)
    length = diagonal.shape[-1]
    rows, columns = int(num_rows), int(num_cols)
    least = length - min(upper, 0), length + max(lower, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least)
    shape = least[0] if rows == -1 else rows, least[1] if columns == -1 else columns
    batch = diagonal.shape[: -2 if lower < upper else -1]
    return _fill(attrs, np.full((*batch, *shape), padding_value, diagonal.dtype), diagonal, lower, upper)


def _set(attrs: Attrs, input: Any, diagonal: Any, k: Any = 0) -> Any:
    return _fill(attrs, input.copy(), diagonal, *diagonal_range(k))


_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
_ALIGN_ATTR = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"
_MATRICES: tuple[StaticShape, ...] = (
    (1, 1), (3, 4), (5, 3), (2, 3, 3), (0, 3), (3, 0), (0, 2, 2), (2, 3, 4, 5), (70_001, 2),
)  # fmt: skip
_BANDS: tuple[tuple[StaticShape, Any], ...] = (
    ((3, 4), 0), ((3, 4), 1), ((3, 4), -2), ((3, 4), (3,)), ((3, 4), (-2, 3)), ((5, 3), (-4, 2)), ((5, 3), (-3, -1)),
    ((2, 4, 7), (1, 4)), ((2, 3, 3), (0, 0)), ((1, 1), 0), ((0, 3), 0), ((65_537, 2), (-1, 1)), ((7, 5), (-1, 0)),
)  # fmt: skip


def _align_attrs(aligned: bool) -> Iterable[dict[str, str]]:
    return [{"align": a} for a in _ALIGNMENTS] if aligned else [{}]


def _part_samples(aligned: bool) -> Iterable[Sample]:
    for shape, k in _BANDS:
        for attrs in _align_attrs(aligned):
            yield Sample([Arg(shape), Arg(values=k), Arg(())], attrs)


def _diag_samples(aligned: bool) -> Iterable[Sample]:
    cases: tuple[tuple[StaticShape, Any, int, int], ...] = (
        ((3,), 0, -1, -1), ((3,), 1, -1, -1), ((3,), -2, -1, -1), ((3,), 0, 3, 5), ((3,), 0, 6, -1), ((3,), 1, -1, 7),
        ((2, 3), (0, 1), -1, -1), ((2, 3), (0, 1), 3, -1), ((3, 4), (-1, 1), 4, 6), ((4, 2, 3), (-1, 0), -1, -1),
        ((0,), 0, -1, -1), ((0, 2), 0, -1, -1), ((2, 2), (2,), 4, 4), ((131,), 0, -1, -1), ((65_537, 1), -1, -1, -1),
    )  # fmt: skip
    for shape, k, rows, columns in cases:
        for attrs in _align_attrs(aligned):
            yield Sample([Arg(shape), Arg(values=k), Arg(values=rows), Arg(values=columns), Arg(())], attrs)


def _set_samples(aligned: bool) -> Iterable[Sample]:
    for shape, k in _BANDS:
        lower, upper = diagonal_range(k)
        length = packed_length(shape[-2], shape[-1], lower, upper)
        packed = (*shape[:-2], *((upper - lower + 1,) if lower < upper else ()), length)
        for attrs in _align_attrs(aligned):
            yield Sample([Arg(shape), Arg(packed), Arg(values=k)], attrs)


def _k_errors(rest: list[Arg], before: list[Arg]) -> Iterable[ErrorSample]:
    for k, match in (
        (4, r"diagonal 4 lies outside 3 x 4 matrices"),
        (-3, r"diagonal -3 lies outside 3 x 4 matrices"),
        ((1, 0), r"k is \[1, 0\]"),
        ((0, 1, 2), r"k has 3 elements"),
        (((0, 1),), r"k has shape \(1, 2\)"),
    ):
        yield ErrorSample([*before, Arg(values=k), *rest], match)


def _part_errors() -> Iterable[ErrorSample]:
    yield from _k_errors([Arg(())], [Arg((3, 4))])
    yield ErrorSample([Arg((3,)), Arg(values=0), Arg(())], r"input 0 has shape \(3,\); it must have rank 2 or more")


def _diag_errors() -> Iterable[ErrorSample]:
    for shape, k, rows, columns, match in (
        ((3,), 0, 2, 3, r"num_rows 2, num_cols 3 for diagonals 0 to 0 of length 3"),
        ((3,), 0, 4, 4, r"num_rows 4, num_cols 4 for diagonals"),
        ((3,), (0, 1), -1, -1, r"diagonal has shape \(3,\); it must hold 2 diagonals"),
        ((3, 3), (0, 1), -1, -1, r"diagonal has shape \(3, 3\); it must hold 2 diagonals"),
        ((), 0, -1, -1, r"input 0 has shape \(\); it must have rank 1 or more"),
    ):
        yield ErrorSample([Arg(shape), Arg(values=k), Arg(values=rows), Arg(values=columns), Arg(())], match)


def _set_errors() -> Iterable[ErrorSample]:
    yield from _k_errors([], [Arg((3, 4)), Arg((3,))])
    yield ErrorSample([Arg((3, 4)), Arg((2,)), Arg(values=1)], r"diagonal has shape \(2,\); .* it must be \(3,\)")
    yield ErrorSample([Arg((3, 4)), Arg((1, 3)), Arg(values=1)], r"diagonal has shape \(1, 3\); .* it must be \(3,\)")


def _from_diagonals(x: Any, grad: Any, k: Any, align: str) -> Any:
    """Returns the gradient of matrices x of which diagonals were taken: those diagonals, and zeros elsewhere."""
    shape = x.static_shape
    if shape is None or None in shape[-2:]:
        return apply_op("MatrixSetDiagV3", [zeros_like(x), grad, k], {"align": align})
    sizes = [constant(n, int32) for n in shape[-2:]]
    return apply_op("MatrixDiagV3", [grad, k, *sizes, constant(0, grad.dtype)], {"align": align})


def _diagonals(grad: Any, k: Any, align: str) -> Any:
    return apply_op("MatrixDiagPartV3", [grad, k, constant(0, grad.dtype)], {"align": align})


def _part_gradient(op: Any, grad: Any) -> list[Any]:
    back = _from_diagonals(op.inputs[0], grad, op.inputs[1], _align(op.attrs))
    return [back, None, sum_all(grad) - sum_all(back)]


def _diag_gradient(op: Any, grad: Any) -> list[Any]:
    back = _diagonals(grad, op.inputs[1], _align(op.attrs))
    return [back, None, None, None, sum_all(grad) - sum_all(back)]


def _set_gradient(op: Any, grad: Any) -> list[Any]:
    k, align = op.inputs[2], _align(op.attrs)
    kept = apply_op("MatrixSetDiagV3", [grad, zeros_like(op.inputs[1]), k], {"align": align})
    return [kept, _diagonals(grad, k, align), None]


def _define_family(version: str, align: list[str]) -> None:
    aligned = bool(align)
    define_op(
        f"MatrixDiagPart{version}",
        inputs=["input: T", "k: int32", "padding_value: T"],
        outputs=["diagonal: T"],
        attrs=["T: type", *align],
        doc="Diagonals k[0] to k[1] of matrices (0 the main one, positive above), the highest first, padded.",
        shape=_part_shape,
        reference=_part,
        gradient=_part_gradient,
        shape_inputs=("k",),
        samples=lambda: _part_samples(aligned),
        errors=_part_errors,
    )
    define_op(
        f"MatrixDiag{version}",
        inputs=["diagonal: T", "k: int32", "num_rows: int32", "num_cols: int32", "padding_value: T"],
        outputs=["output: T"],
        attrs=["T: type", *align],
        doc="Matrices with the given diagonals and padding_value elsewhere; sizes of -1 are the least that hold them.",
        shape=_diag_shape,
        reference=_diag,
        gradient=_diag_gradient,
        shape_inputs=("k", "num_rows", "num_cols"),
        samples=lambda: _diag_samples(aligned),
        errors=_diag_errors,
    )
    define_op(
        f"MatrixSetDiag{version}",
        inputs=["input: T", "diagonal: T", "k: int32"],
        outputs=["output: T"],
        attrs=["T: type", *align],
        doc="The matrices with their diagonals k[0] to k[1] replaced.",
        shape=_set_shape,
        reference=_set,
        gradient=_set_gradient,
        shape_inputs=("k",),
        samples=lambda: _set_samples(aligned),
        errors=_set_errors,
    )


_define_family("V2", [])
_define_family("V3", [_ALIGN_ATTR])


def _main_part_gradient(op: Any, grad: Any) -> list[Any]:
    shape = op.inputs[0].static_shape
    if shape is not None and shape[-1] is not None and shape[-1] == shape[-2]:
        return [apply_op("MatrixDiag", [grad])]
    return [apply_op("MatrixSetDiag", [zeros_like(op.inputs[0]), grad])]


define_op(
    "MatrixDiagPart",
    inputs=["input: T"],
    outputs=["diagonal: T"],
    attrs=["T: type"],
    doc="The main diagonals of matrices.",
    shape=_part_shape,
    reference=_part,
    gradient=_main_part_gradient,
    samples=lambda: [Sample([Arg(shape)]) for shape in _MATRICES],
    errors=lambda: [ErrorSample([Arg((3,))], r"input 0 has shape \(3,\); it must have rank 2 or more")],
)
define_op(
    "MatrixDiag",
    inputs=["diagonal: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="Square matrices with the given main diagonals and zero elsewhere.",
    shape=_simple_diag_shape,
    reference=_diag,
    gradient=lambda op, grad: [apply_op("MatrixDiagPart", [grad])],
    samples=lambda: [Sample([Arg(shape)]) for shape in ((1,), (0,), (7,), (2, 3), (2, 3, 4), (3, 0), (65_537, 2))],
    errors=lambda: [ErrorSample([Arg(())], r"input 0 has shape \(\); it must have rank 1 or more")],
)
define_op(
    "MatrixSetDiag",
    inputs=["input: T", "diagonal: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="The matrices with their main diagonals replaced.",
    shape=_set_shape,
    reference=_set,
    gradient=lambda op, grad: [
        apply_op("MatrixSetDiag", [grad, zeros_like(op.inputs[1])]),
        apply_op("MatrixDiagPart", [grad]),
    ],
    samples=lambda: [Sample([Arg(s), Arg((*s[:-2], min(s[-2:])))]) for s in _MATRICES],
    errors=lambda: [ErrorSample([Arg((3, 4)), Arg((2,))], r"diagonal has shape \(2,\); .* it must be \(3,\)")],
)

"""Changing rows of a variable: ResourceScatter* by row number, ResourceScatterNd* by index tuple.

Rows are changed in the order of the indices, so a row that is named twice changes twice. In the references a handle
stands for the variable's value, and the new value is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.array.gather import check_policy, index_depth
from timberframe_core.ops.definition.accuracy import EXACT, Accuracy, Bound
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.running_error import Approximate, stored_roundoff
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, variable_shape_of
from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE, check_indices, check_tuples
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape

_UPDATE = NotDifferentiable("an update of variables is not a function of its inputs")
_INDICES = "Tindices: {int32, int64}"

ZERO_UPDATE = "update {0} is 0; integers must not be divided by zero"

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_REALS = ("float16", "bfloat16", "float32", "float64", *_INTEGERS)
_NUMBERS = (*_REALS, "complex64", "complex128")
_ALL = (*_NUMBERS, "bool", "string")

Combine = Callable[[Any, Any], Any]


def _subtracted(old: Any, update: Any) -> Any:
    return old ^ update if getattr(old, "dtype", np.dtype(float)).kind == "b" else old - update


def _divided(old: Any, update: Any) -> Any:
    """Quotients; those of integers are truncated."""
    if getattr(old, "dtype", np.dtype(float)).kind not in "iu":
        return old / update
    floor = np.floor_divide(old, update)
    return floor + ((floor * update != old) & ((old < 0) != (update < 0)))


_COMBINE: dict[str, tuple[Combine, str]] = {
    "Add": (lambda old, update: old + update, "adds updates to"),
    "Sub": (_subtracted, "subtracts updates from"),
    "Mul": (lambda old, update: old * update, "multiplies updates with"),
    "Div": (_divided, "divides by updates"),
    "Min": (np.minimum, "puts the minimum of it and updates into"),
    "Max": (np.maximum, "puts the maximum of it and updates into"),
    "Update": (lambda old, update: update, "puts updates into"),
}


@late_errors
def _row_shape(c: InferenceContext) -> Sequence[Shape]:
    variable = variable_shape_of(c, 0, c.attrs["dtype"])
    indices, updates = c.shapes[1], c.shapes[2]
    if variable is not None and not variable:
        raise c.error("the variable has rank 0; it must have rank 1 or more")
    if variable is not None and indices is not None and updates not in (None, ()):
        wanted = indices + variable[1:]
        if not compatible(updates, wanted):
            raise c.error(
                f"updates has shape {format_shape(updates)}; with indices {format_shape(indices)} "
                f"and a variable of shape {format_shape(variable)} it must be {format_shape(wanted)} or a scalar"
            )
    return []


@late_errors
def _tuple_shape(c: InferenceContext) -> Sequence[Shape]:
    check_policy(c)
    variable = variable_shape_of(c, 0, c.attrs["T"])
    indices, updates = c.shapes[1], c.shapes[2]
    depth = index_depth(c, indices)
    if variable is None or indices is None or depth is None:
        return []
    if depth > len(variable):
        raise c.error(
            f"indices has tuples of {depth} for a variable of rank {len(variable)}; "
            "they must not be longer than the rank"
        )
    wanted = indices[:-1] + variable[depth:]
    if not compatible(updates, wanted):
        raise c.error(
            f"updates has shape {format_shape(updates)}; "
            f"with indices {format_shape(indices)} it must be {format_shape(wanted)}"
        )
    return []


def _changed(target: Any, at: Sequence[Any], updates: Any, combine: Combine) -> Any:
    """`target` after row after row of it was combined with those of updates."""
    if isinstance(target, Approximate):
        value, error = target.value.copy(), target.error.copy()
        for where, update in zip(at, updates, strict=True):
            new = combine(Approximate(value[where], target.u, error[where]), update)
            value[where], error[where] = new.value, new.error
        return Approximate(value, target.u, error)
    target = target.copy()
    with np.errstate(all="ignore"):
        for where, update in zip(at, updates, strict=True):
            target[where] = combine(target[where], update)
    return target


def _plain(x: Any) -> np.ndarray:
    return np.asarray(x.value if isinstance(x, Approximate) else x)


def _row_reference(combine: Combine) -> Callable[..., Any]:
    def reference(attrs: Attrs, resource: Any, indices: Any, updates: Any) -> Any:
        at = [int(i) for i in _plain(indices).flat]
        check_indices(_plain(indices), _plain(resource).shape[0], ROW_OUTSIDE)
        given = _plain(updates)
        if combine is _divided and given.dtype.kind in "iu" and not given.all():
            raise InvalidArgumentError(ZERO_UPDATE.format(np.flatnonzero(given == 0)[0]))
        rows = np.broadcast_to(given, (len(at), *_plain(resource).shape[1:])) if not given.ndim else given
        return _changed(resource, at, rows.reshape(len(at), *_plain(resource).shape[1:]), combine)

    return reference


def _tuple_reference(combine: Combine) -> Callable[..., Any]:
    def reference(attrs: Attrs, ref: Any, indices: Any, updates: Any) -> Any:
        where, shape = _plain(indices), _plain(ref).shape
        depth = where.shape[-1]
        tuples = [tuple(int(i) for i in row) for row in where.reshape(int(np.prod(where.shape[:-1])), depth)]
        slices = _plain(updates).reshape(len(tuples), *shape[depth:])
        if attrs["bad_indices_policy"] == "IGNORE":
            good = [all(0 <= i < n for i, n in zip(row, shape, strict=False)) for row in tuples]
            tuples, slices = [t for t, g in zip(tuples, good, strict=True) if g], slices[np.array(good, bool)]
        else:
            check_tuples(where, shape)
        return _changed(ref, tuples, slices, combine)

    return reference


def _accuracy(kind: str, reference: Callable[..., Any]) -> Accuracy:
    """Duplicates round again and again, so sums, products and quotients are bounded by their running error."""
    if kind in ("Min", "Max", "Update"):
        return EXACT

    def error(attrs: Attrs, inputs: Sequence[Any], expected: Any, u: float) -> Any:
        dtype = attrs["dtype"] if "dtype" in attrs else attrs["T"]
        unit = stored_roundoff(dtype.name, u)
        return reference(attrs, Approximate(inputs[0], unit), *inputs[1:]).error

    return Bound(error, "running error analysis (Higham, 2nd ed., section 3.3), a rounding for each update")


_ROWS: tuple[tuple[StaticShape, Any], ...] = (
    ((5, 3), [1, 4, 1]), ((3, 2, 17), [[2, 0], [0, 1]]), ((5,), [4, 0]), ((5,), 3), ((4, 3), np.zeros(0, np.int32)),
    ((0, 3), np.zeros(0, np.int32)), ((3, 0), [1]),
)  # fmt: skip
_WITH_ALL_TYPES = 2
"""So many cases are tried in every dtype, the others in two."""
_TUPLES: tuple[tuple[StaticShape, Any], ...] = (
    ((5, 3), [[1], [4], [1]]), ((5, 3), [[1, 2], [4, 0], [1, 2]]), ((5,), [[4], [0]]),
    ((2, 3, 7), [[[1, 2], [0, 0]], [[0, 1], [1, 1]]]), ((3, 2), np.zeros((0, 1), np.int32)), ((3, 2), [[], []]),
)  # fmt: skip


def _values(kind: str, shape: StaticShape) -> Arg:
    """Updates that integers may be divided by, and that keep products in range."""
    return Arg(shape, low=1, high=3, special=False) if kind in ("Mul", "Div") else Arg(shape, special=False)


def _row_samples(kind: str, types: Sequence[str]) -> Iterator[Sample]:
    two_types = {"dtype": ("int32", "float32")}
    for i, (shape, rows) in enumerate(_ROWS):
        variable, chosen = Arg(shape, special=False), {"dtype": types} if i < _WITH_ALL_TYPES else two_types
        yield Sample((variable, Arg(values=rows), _values(kind, (*np.shape(rows), *shape[1:]))), {}, chosen)
    large = Arg((70_001, 2), special=False), Arg(values=[70_000, 0, 65_536], dtype="int32"), _values(kind, (3, 2))
    yield Sample(large, {}, two_types)
    yield Sample((Arg((4, 3), special=False), Arg(values=[2, 0]), _values(kind, ())), {}, {"dtype": types})


def _tuple_samples(kind: str, types: Sequence[str]) -> Iterator[Sample]:
    two_types = {"T": ("int32", "float32")}
    for i, (shape, tuples) in enumerate(_TUPLES):
        chosen = {"T": types} if i < _WITH_ALL_TYPES else two_types
        where = np.asarray(tuples, np.int32)
        updates = Arg((*where.shape[:-1], *shape[where.shape[-1] :]), special=False)
        yield Sample((Arg(shape, special=False), Arg(values=where), updates), {}, chosen)
    bad = Arg(values=[[1], [7], [-1]], dtype="int32")
    attrs = {"bad_indices_policy": "IGNORE", "use_locking": False}
    yield Sample((Arg((4,), special=False), bad, Arg((3,), special=False)), attrs, two_types)


def _row_errors(kind: str) -> Iterator[ErrorSample]:
    x, rows, types = Arg((4, 3)), Arg(values=[1, 2]), {"dtype": ("int32", "float32")}
    yield ErrorSample(
        (x, Arg(values=[1, 4]), _values(kind, (2, 3))), r"index 4 at position 1 is outside \[0, 4\)", types=types
    )
    yield ErrorSample(
        (x, Arg(values=[-1]), _values(kind, (1, 3))), r"index -1 at position 0 is outside \[0, 4\)", types=types
    )
    yield ErrorSample(
        (x, rows, _values(kind, (3, 3))), r"updates has shape \(3, 3\).*must be \(2, 3\) or a scalar", types=types
    )
    yield ErrorSample((Arg(()), rows, _values(kind, (2,))), "the variable has rank 0", types=types)
    if kind == "Div":
        zero = Arg(values=[[1, 2, 3], [1, 0, 1]])
        yield ErrorSample((x, rows, zero), "update 4 is 0; integers", types={"dtype": ("int8", "int32", "uint64")})


def _tuple_errors() -> Iterator[ErrorSample]:
    x, types = Arg((4,)), {"T": ("float32",)}
    outside = r"index tuple {} has {} in dimension 0; it must lie in \[0, 4\)"
    yield ErrorSample((x, Arg(values=[[1], [4]]), Arg((2,))), outside.format(1, 4), types=types)
    yield ErrorSample((x, Arg(values=[[-1]]), Arg((1,))), outside.format(0, -1), types=types)
    yield ErrorSample((x, Arg(values=[[1]]), Arg((3,))), r"it must be \(1,\)", types=types)
    yield ErrorSample((x, Arg(values=[[1, 1]]), Arg((1,))), "not be longer than the rank", types=types)
    yield ErrorSample(
        (x, Arg(values=[[1]]), Arg((1,))), "bad_indices_policy is 'X'", {"bad_indices_policy": "X"}, types=types
    )


def _define_rows(kind: str, types: Sequence[str]) -> None:
    combine, verb = _COMBINE[kind]
    reference = _row_reference(combine)
    define_op(
        f"ResourceScatter{kind}",
        inputs=["resource: resource", "indices: Tindices", "updates: dtype"],
        attrs=["dtype: type" if kind == "Update" else "dtype: numbertype", _INDICES],
        doc=f"For each index {verb} that row of the variable; updates has a row for each, or is a scalar for all.",
        shape=_row_shape,
        reference=reference,
        gradient=_UPDATE,
        stateful=True,
        updates=("resource",),
        accuracy=_accuracy(kind, reference),
        samples=lambda: _row_samples(kind, types),
        errors=lambda: _row_errors(kind),
    )


def _define_tuples(kind: str, types: Sequence[str]) -> None:
    combine, verb = _COMBINE[kind]
    reference = _tuple_reference(combine)
    define_op(
        f"ResourceScatterNd{kind}",
        inputs=["ref: resource", "indices: Tindices", "updates: T"],
        attrs=["T: type", _INDICES, "use_locking: bool = true", "bad_indices_policy: string = ''"],
        doc=f"For each index tuple {verb} the slice of the variable that it names. Bools are or-ed, or xor-ed by Sub.",
        shape=_tuple_shape,
        reference=reference,
        gradient=_UPDATE,
        stateful=True,
        updates=("ref",),
        accuracy=_accuracy(kind, reference),
        samples=lambda: _tuple_samples(kind, types),
        errors=_tuple_errors,
    )


for _kind in ("Add", "Sub", "Mul", "Div"):
    _define_rows(_kind, _NUMBERS)
for _kind in ("Min", "Max"):
    _define_rows(_kind, _REALS)
    _define_tuples(_kind, _REALS)
_define_rows("Update", _ALL)
for _kind in ("Add", "Sub"):
    _define_tuples(_kind, _NUMBERS)
_define_tuples("Update", _ALL)

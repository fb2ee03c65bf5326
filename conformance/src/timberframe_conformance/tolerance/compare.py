"""Compares a device's outputs with the truth.

The rules, besides the limits themselves: shape and dtype must match. Any NaN matches any NaN, and nothing else does. An
infinity must match, unless the true value is so near the largest finite number that the limit exceeds it. The sign of a
zero counts where the op is exact, and not where it has a limit; of equal zeros, a maximum may return either unless the
device's profile promises their order. A complex number is NaN if either part is. If a complex result is not finite, any
other that is not finite matches: which one it is depends on the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from timberframe_conformance.case import CaseFailedError, Measured, WrongShapeError, WrongValuesError
from timberframe_conformance.hypotheses import explained
from timberframe_conformance.hypotheses.arguments import shape_explained
from timberframe_conformance.hypotheses.wrong import Wrong
from timberframe_conformance.tolerance.declared import current, in_force
from timberframe_conformance.tolerance.limits import allowed_error, is_exact
from timberframe_conformance.tolerance.refine import refine
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.reference import evaluate, true_outputs
from timberframe_core.ops.definition.accuracy import Exact, Pointwise, Residual
from timberframe_core.ops.definition.formats import FORMATS, ulp
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_sdk.reference import widen

watchers: list[
    Callable[[Sequence[Any], Sequence[np.ndarray], Sequence[np.ndarray | None], Sequence[np.dtype]], None]
] = []
"""Functions that are called with what is compared: outputs, what they must be, the allowed error (None for none),
and dtypes."""


@dataclass
class Errors:
    """Elementwise errors of one output in float64, what is allowed, and which elements are wrong."""

    error: np.ndarray
    allowed: np.ndarray
    wrong: np.ndarray


def check(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[Any],
    dtypes: Sequence[np.dtype],
    *,
    flushes_subnormals: bool = False,
) -> Measured:
    """Raises CaseFailedError unless `got` is what the op must give for these inputs; returns the worst error.

    dtypes: those that the outputs must have. flushes_subnormals: the device may take subnormal results for zero, and so
    all subnormal inputs. What passes only by a tolerance of the profile in force is measured as that.
    """
    profile = replace(current(), flushes_subnormals=flushes_subnormals)
    with in_force(replace(profile, tolerances=())):
        try:
            return _check_flushed(op, attrs, inputs, got, dtypes, flushes_subnormals)
        except CaseFailedError as e:
            tolerated = [t for d in dtypes if (t := profile.tolerance(op.name, d.name)) is not None]
            if not tolerated:
                raise_explained(e)
    with in_force(profile):
        try:
            measured = _check_flushed(op, attrs, inputs, got, dtypes, flushes_subnormals)
        except CaseFailedError as e:
            raise_explained(e)
    measured.waiver = tolerated[0].name
    measured.note = f"within a declared tolerance: {tolerated[0].reason}"
    return measured


def raise_explained(error: CaseFailedError) -> NoReturn:
    """Raises the error, its message with what hypotheses find out about the wrong output."""
    if isinstance(error, WrongValuesError) and error.wrong is not None:
        raise WrongValuesError(f"{error}{explained(error.wrong)}", error.measured) from None
    raise error


def _check_flushed(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[Any],
    dtypes: Sequence[np.dtype],
    flushes_subnormals: bool,
) -> Measured:
    try:
        return _check(op, attrs, inputs, got, dtypes, flushes_subnormals)
    except CaseFailedError as kept:
        flushed = [_without_subnormals(x) for x in inputs] if flushes_subnormals else inputs
        if all(x is y for x, y in zip(flushed, inputs, strict=True)):
            raise
        # An op that only moves an element keeps a subnormal number, also where one that computes would not.
        outputs = [_without_subnormals(x) if isinstance(x, np.ndarray | np.generic) else x for x in got]
        try:
            return _check(op, attrs, flushed, outputs, dtypes, flushes_subnormals)
        except CaseFailedError as zeros:
            raise min(zeros, kept, key=_count_wrong) from None


def _count_wrong(error: CaseFailedError) -> float:
    """Returns how many elements an error says are wrong; infinity where it is not about elements."""
    wrong = error.wrong if isinstance(error, WrongValuesError) else None
    return np.inf if wrong is None else int(np.sum(wrong.wrong))


def _without_subnormals(x: Any) -> Any:
    """x with zeros, of the same sign, for subnormal numbers; x itself if it has none."""
    form = FORMATS.get(x.dtype.name)
    if form is None or x.dtype.kind == "c":
        return x
    subnormal = (x != 0) & (np.abs(x) < form.smallest_normal)
    return np.where(subnormal, np.copysign(x.dtype.type(0), x), x) if subnormal.any() else x


def _check(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[Any],
    dtypes: Sequence[np.dtype],
    flushes_subnormals: bool,
) -> Measured:
    if any(x.dtype.kind in "fcV" and x.dtype.name in FORMATS for x in inputs):
        expected = true_outputs(op, attrs, inputs)
    else:
        expected = evaluate(op, attrs, inputs)
    try:
        check_form(op, got, expected, dtypes)
    except WrongShapeError as wrong_shape:
        raise shape_explained(wrong_shape, op, attrs, inputs) from None
    if isinstance(op.accuracy, Residual):
        return check_laws(op.accuracy, attrs, inputs, got, dtypes)
    allowed = allowed_error(op, attrs, inputs, expected, dtypes)
    for watch in watchers:
        watch(got, expected, [None if is_exact(op, t) else a for a, t in zip(allowed, dtypes, strict=True)], dtypes)
    measured = Measured(max_ulp=0.0, limit=0.0)
    for i, (g, e, t, a) in enumerate(zip(got, expected, dtypes, allowed, strict=True)):
        if a is None or is_exact(op, t):
            wrong = _differs(g, round_to(e, t))
            if isinstance(op.accuracy, Exact) and not _counts_zeros(op.accuracy):
                wrong &= ~((np.asarray(g) == 0) & (round_to(e, t) == 0))
            if wrong.any() and t.name in FORMATS:
                wrong &= _differs(g, round_to(evaluate(op, attrs, inputs)[i], t))
            if flushes_subnormals and t.name in FORMATS:
                wrong &= ~_flushed(g, e, t)
            if wrong.any():
                text = _message(i, len(expected), wrong, g, round_to(e, t), inputs, "")
                raise WrongValuesError(
                    text, wrong=Wrong(op, attrs, inputs, i, np.asarray(g), e, t, np.asarray(wrong), None)
                )
            continue
        errors = compare(g, e, t, a)
        if isinstance(op.accuracy, Pointwise) and t.name in ("float64", "complex128"):
            refine(op, attrs, inputs, g, t, errors)
        if flushes_subnormals:
            errors.wrong &= ~_flushed(g, e, t)
        try:
            _report(i, len(expected), errors, g, e, t, inputs, measured)
        except WrongValuesError as error:
            error.wrong = Wrong(op, attrs, inputs, i, np.asarray(g), e, t, errors.wrong, np.asarray(a))
            raise
    return measured


def _counts_zeros(accuracy: Exact) -> bool:
    """Returns whether the sign of a zero counts, on the device under test."""
    return accuracy.signed_zero or (accuracy.ordered_zeros and current().orders_zeros)


def check_laws(
    accuracy: Residual,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[Any],
    dtypes: Sequence[np.dtype],
) -> Measured:
    """Checks outputs that are not unique by the equations that they must satisfy."""
    u = FORMATS[dtypes[0].name].unit_roundoff
    outputs = [widen(np.asarray(x)) for x in got]
    for what, error, allowed in accuracy.laws(attrs, [widen(x) for x in inputs], outputs, u):
        wrong = ~(np.asarray(error) <= allowed)
        if wrong.any():
            size = float(np.max(np.where(wrong, error, 0.0)))
            raise WrongValuesError(f"{what} is {size:.4g} in {int(wrong.sum())} of {wrong.size}; it must be smaller")
    return Measured()


def check_form(op: OpDef, got: Sequence[Any], expected: Sequence[np.ndarray], dtypes: Sequence[np.dtype]) -> None:
    """Checks number, dtypes and shapes of the outputs."""
    if len(got) != len(expected):
        raise CaseFailedError(f"{op.name} gave {len(got)} outputs; its reference gives {len(expected)}")
    for i, (g, e, t) in enumerate(zip(got, expected, dtypes, strict=True)):
        array = np.asarray(g)
        if array.dtype != t and not (t.hasobject and array.dtype.kind in "OSU"):
            raise CaseFailedError(f"output {i} has dtype {array.dtype}; it must be {t}")
        if array.shape != e.shape:
            message = f"output {i} has shape {list(array.shape)}; it must be {list(e.shape)}"
            raise WrongShapeError(message, i, array.shape)


def compare(got: np.ndarray, expected: np.ndarray, dtype: np.dtype, allowed: np.ndarray) -> Errors:
    """Returns the errors of an output with a limit; expected is float64 or complex128."""
    form = FORMATS[dtype.name]
    wide = np.asarray(got).astype(np.complex128 if dtype.kind == "c" else np.float64)
    allowed = np.broadcast_to(allowed, wide.shape)
    with np.errstate(all="ignore"):
        error = np.abs(wide - expected)
        same = (wide == expected) | (np.isnan(wide) & np.isnan(expected))
        finite = np.isfinite(expected)
        overflow = finite & np.isinf(wide) & (np.abs(expected) + allowed >= form.largest)
        if dtype.kind != "c":
            overflow &= np.sign(wide) == np.sign(expected)
        else:
            same |= ~finite & ~np.isfinite(wide)
        # If the sum of magnitudes overflows, partial sums may overflow, depending on the order: any result is allowed.
        free = np.isinf(allowed) & finite
        right = same | overflow | free | (finite & (error <= allowed))
    error = np.where(right & ~np.isfinite(error), 0.0, error)
    return Errors(
        np.where(same | overflow | free, np.where(finite & np.isfinite(error), error, 0.0), error), allowed, ~right
    )


def _differs(got: Any, expected: np.ndarray) -> np.ndarray:
    """Returns elements that are not bit for bit the same; NaN is the same as NaN."""
    # A string scalar is a bytes object, of which an array of fixed length would lose zeros at the end.
    a, b = np.asarray(got, object if expected.dtype == object else None), expected
    if a.dtype == object or b.dtype == object:
        return np.asarray([_bytes(x) != _bytes(y) for x, y in zip(a.flat, b.flat, strict=True)], bool).reshape(a.shape)
    if a.dtype.name not in FORMATS:
        return np.asarray(a != b)
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    differs = np.zeros(a.shape, bool)
    with np.errstate(all="ignore"):
        for x, y in parts:
            both_nan = (x != x) & (y != y)
            other_zero = (x == 0) & (np.signbit(x) != np.signbit(y))
            differs |= ~((x == y) | both_nan) | other_zero
    return differs & ~(np.isnan(a) & np.isnan(b)) if a.dtype.kind == "c" else differs


def _bytes(x: Any) -> Any:
    return x.encode() if isinstance(x, str) else x


def _flushed(got: Any, expected: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns elements that a device which flushes subnormals may give: zero for a subnormal result."""
    return np.asarray((np.asarray(got) == 0) & (np.abs(expected) < FORMATS[dtype.name].smallest_normal))


def _report(
    i: int, count: int, errors: Errors, got: Any, expected: np.ndarray, dtype: np.dtype, inputs: Sequence[np.ndarray],
    measured: Measured,
) -> None:  # fmt: skip
    if errors.error.size == 0:
        return
    unit = ulp(np.abs(expected), FORMATS[dtype.name])
    with np.errstate(all="ignore"):
        ratio = np.where(np.isfinite(errors.error), errors.error, np.inf) / np.where(
            errors.allowed > 0, errors.allowed, 1e-300
        )
        ratio = np.where(np.isinf(errors.allowed), 0.0, ratio)
        worst = int(np.argmax(np.where(errors.wrong, np.inf, ratio)))
        in_ulp = float((errors.error / unit).flat[worst])
        limit = float((errors.allowed / unit).flat[worst])
    if errors.wrong.any():
        known = [f"{name} {x:.4g} ULP" for name, x in (("error", in_ulp), ("limit", limit)) if np.isfinite(x)]
        text = f" ({', '.join(known)})" if np.isfinite(expected.flat[worst]) and known else ""
        measured.max_ulp, measured.limit = in_ulp, limit
        raise WrongValuesError(_message(i, count, errors.wrong, got, expected, inputs, text, worst), measured)
    if np.isfinite(limit) and (measured.max_ulp is None or in_ulp >= measured.max_ulp):
        measured.max_ulp, measured.limit = in_ulp, limit
        measured.worst = _point(inputs, expected.shape, worst)


def _message(
    i: int, count: int, wrong: np.ndarray, got: Any, expected: np.ndarray, inputs: Sequence[np.ndarray], text: str,
    at: int | None = None,
) -> str:  # fmt: skip
    at = int(np.argmax(wrong)) if at is None else at
    where = f"output {i} " if count > 1 else ""
    point = _point(inputs, wrong.shape, at)
    return f"{where}{differing(wrong, got, expected, at)}{text}{', for ' + point if point else ''}"


def differing(wrong: np.ndarray, got: Any, expected: np.ndarray, at: int | None = None) -> str:
    """Says how many elements are wrong, and what one of them is and must be: the one at `at`, or the first."""
    at = int(np.argmax(wrong)) if at is None else at
    index = [int(k) for k in np.unravel_index(at, wrong.shape)]
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; at {index}: got {np.asarray(got).flat[at]!r}, "
        f"expected {expected.flat[at]!r}"
    )


def _point(inputs: Sequence[np.ndarray], shape: tuple[int, ...], at: int) -> str:
    """Returns the input values behind one output element, where the op works element by element."""
    try:
        values = [np.broadcast_to(x, shape).flat[at] for x in inputs]
    except ValueError:
        return ""
    return "input " + ", ".join(repr(v.item() if isinstance(v, np.generic) else v) for v in values) if values else ""

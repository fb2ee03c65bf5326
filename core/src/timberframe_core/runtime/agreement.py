"""Whether two devices' results of one node agree, by what the op's accuracy allows each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation, Bound, Pointwise, Residual
from timberframe_core.ops.definition.opdef import OpDef

_FORMATS = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126), "float64": (53, -1022)}
"""Precision in bits, and the least exponent of a normal number."""
_FORMATS |= {"complex64": _FORMATS["float32"], "complex128": _FORMATS["float64"]}
_HALVES = ("float16", "bfloat16")


class Divergence(NamedTuple):
    """An output in which `differing` of `size` elements differ too much, and the first of them, at `place`."""

    output: int
    differing: int
    size: int
    place: tuple[int, ...]
    got: Any
    wanted: Any
    allowed: float


def first_divergence(
    op: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[np.ndarray],
    got: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
) -> Divergence | None:
    """The first output in which two results differ by more than both may be off; None where they agree."""
    with np.errstate(all="ignore"):
        limits = _limits(op, attrs, inputs, wanted)
        for i, (a, b, limit) in enumerate(zip(got, wanted, limits, strict=True)):
            if a.dtype != b.dtype or a.shape != b.shape:
                return Divergence(i, a.size, a.size, (), f"{a.dtype}{a.shape}", f"{b.dtype}{b.shape}", 0.0)
            wrong = _differ(a, b)
            if limit is not None:
                wide = np.promote_types(a.dtype, np.float64) if a.dtype.kind in "fc" else np.float64
                error = np.abs(a.astype(wide) - b.astype(wide))
                wrong &= ~(error <= 2 * limit)
            if wrong.any():
                index = tuple(int(k) for k in np.argwhere(wrong)[0])
                allowed = 0.0 if limit is None else float(np.broadcast_to(2 * limit, wrong.shape)[index])
                return Divergence(i, int(wrong.sum()), wrong.size, index, a[index], b[index], allowed)
    return None


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The elements that are not equal; any NaN equals any other."""
    differ: np.ndarray = np.asarray(a != b)
    if a.dtype.name in _FORMATS:
        differ &= ~(np.isnan(a) & np.isnan(b))
    return differ


def _limits(
    op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """For each output how far one result may be from the truth, elementwise in float64; None where it is exact."""
    accuracy, floating = op.accuracy, [x.dtype.name in _FORMATS for x in results]
    if not any(floating):
        return [None] * len(results)
    wide = [_widened(x) for x in results]
    if isinstance(accuracy, Pointwise):
        errors: list[Any] = [_ulps(accuracy, x.dtype) * _ulp(w, x.dtype) for x, w in zip(results, wide, strict=True)]
    elif isinstance(accuracy, Accumulation):
        terms = max(int(accuracy.terms(attrs, *inputs)), 1)
        given = [_widened(x) for x in inputs]
        sizes = _outputs(
            op.reference(attrs, *map(_magnitude, given)) if accuracy.magnitude is None and op.reference is not None
            else accuracy.magnitude(attrs, *given) if accuracy.magnitude is not None else results,
            len(results),
        )  # fmt: skip
        errors = [_gamma(terms, x.dtype) * np.abs(size) for x, size in zip(results, sizes, strict=True)]
    elif isinstance(accuracy, Bound):
        expected = tuple(wide) if len(wide) > 1 else wide[0]
        unit = _unit(next(x.dtype for x, f in zip(results, floating, strict=True) if f))
        errors = list(_outputs(accuracy.error(attrs, [_widened(x) for x in inputs], expected, unit), len(results)))
    elif isinstance(accuracy, Residual):
        return [np.full((), np.inf) if f else None for f in floating]  # its results are not unique
    else:
        return [None] * len(results)
    return [
        _finite(np.asarray(e, np.float64) + 0.5 * _ulp(w, x.dtype)) if f else None
        for e, w, x, f in zip(errors, wide, results, floating, strict=True)
    ]


def _outputs(found: Any, count: int) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else (found,) * count


def _widened(x: np.ndarray) -> np.ndarray:
    if x.dtype.name not in _FORMATS:
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _magnitude(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "fc":
        return x
    size = np.abs(x)
    return np.where(np.isfinite(size), size, 0.0).astype(x.dtype)


def _finite(limit: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(limit), np.inf, limit)


def _ulps(accuracy: Pointwise, dtype: np.dtype[Any]) -> float:
    if dtype.name in _HALVES:
        return accuracy.float16
    if dtype.kind == "c" and accuracy.complex is not None:
        return accuracy.complex
    return accuracy.float64 if dtype.name in ("float64", "complex128") else accuracy.float32


def _ulp(x: np.ndarray, dtype: np.dtype[Any]) -> Any:
    """The unit in the last place of a dtype at |x|."""
    if dtype.name not in _FORMATS:
        return 0.0
    precision, least = _FORMATS[dtype.name]
    magnitude = np.abs(x)
    exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 0.0))[1] - 1
    return np.ldexp(1.0, np.where(magnitude == 0, least, np.maximum(exponent, least)) - (precision - 1))


def _unit(dtype: np.dtype[Any]) -> float:
    """The unit roundoff of what a kernel computes in for this dtype: float32 for the narrower ones."""
    return 2.0 ** -_FORMATS["float32" if dtype.name in _HALVES else dtype.name][0]


def _gamma(terms: int, dtype: np.dtype[Any]) -> float:
    """Higham's gamma_n: what a sum of n products may be off by, relative to the sum of their magnitudes."""
    if dtype.name not in _FORMATS:
        return 0.0
    n = (4 if dtype.kind == "c" else 1) * terms * _unit(dtype)
    return n / (1 - min(n, 0.5))

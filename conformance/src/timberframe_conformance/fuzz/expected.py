"""The expected results of a graph, and their limits, by the references of its ops.

The truth is one evaluation in float64. The allowed error of a device is found by evaluating again: once with every
result rounded to its dtype, and DRAWS times with every result also perturbed by as much as its op's declared accuracy
allows, and the sign of undetermined zeros chosen at random. Every other time all perturbations have the opposite sign:
where rounding decides the sign of a result, both are seen. An element is *determined* if all evaluations agree on
whether it is finite, NaN or infinite (for integers, bools and strings, on the value); it is not if a comparison or a
rounding to integers can go either way. A determined floating element may be off by SLACK times the largest difference
seen, and SLACK units in the last place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.limits import allowed_error
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.graphs import WIDE
from timberframe_conformance.truth.interpreter import Interpreter, NotInterpretedError
from timberframe_conformance.truth.reference import evaluate as evaluate_op
from timberframe_conformance.truth.reference import quiet
from timberframe_core.ops.definition.accuracy import Accumulation, Bound, Exact, Residual
from timberframe_core.ops.definition.formats import FORMATS, computing_format, ulp
from timberframe_sdk.reference import widen

DRAWS = 6
SLACK = 32.0


@dataclass
class Expected:
    """One tensor's truth. limit: None if values must be equal. determined: the elements to compare."""

    value: np.ndarray
    dtype: np.dtype
    limit: np.ndarray | None
    determined: np.ndarray

    def mismatch(self, got: Any, share: float = 1.0) -> str:
        """Returns what is wrong with a result, or nothing. share: the part of the limit that is allowed."""
        array = np.asarray(got, object if self.dtype.hasobject else None)
        if array.dtype != self.dtype or array.shape != self.value.shape:
            return f"{array.dtype}{list(array.shape)}; it must be {self.dtype}{list(self.value.shape)}"
        wrong = self.determined & self._wrong(array, share)
        if not wrong.any():
            return ""
        at = int(np.argmax(wrong))
        limit = "" if self.limit is None else f", allowed error {share * self.limit.flat[at]:.3g}"
        where = [int(i) for i in np.unravel_index(at, wrong.shape)]
        return (
            f"{int(wrong.sum())} of {wrong.size} elements are wrong; at {where}: {shown(array.flat[at])}, "
            f"expected {shown(self.value.flat[at])}{limit}"
        )

    def _wrong(self, array: np.ndarray, share: float) -> np.ndarray:
        if self.limit is None:
            return np.asarray(array != self.value, bool)
        with np.errstate(all="ignore"):
            wide = widen(array)
            same = (wide == self.value) | (np.isnan(wide) & np.isnan(self.value))
            return np.asarray(~(same | (np.abs(wide - self.value) <= share * self.limit)))


def shown(x: Any) -> str:
    """Returns a number as users write it, without NumPy's type; strings in quotes."""
    return repr(x) if isinstance(x, bytes | str) else str(x)


class Perturbed:
    """Rounds each node's results to their dtypes, after perturbing them by the op's declared accuracy if requested.

    sign: 1 or -1, by which all perturbations are multiplied.
    """

    def __init__(self, rng: np.random.Generator | None = None, flush: bool = False, sign: int = 1) -> None:
        self.rng = rng
        self.flush = flush
        self.sign = sign

    def __call__(self, op: Any, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        dtypes = [t.dtype.base_dtype.numpy for t in op.outputs] or [x.dtype for x in outputs]
        if self.rng is not None and _is_open(op.op_def, op.attrs, inputs, dtypes):
            outputs = tuple(np.where(np.isnan(y), 0.0, np.nan) if y.dtype in WIDE else y for y in outputs)
        elif self.rng is not None:
            errors = allowed_error(op.op_def, op.attrs, inputs, outputs, dtypes)
            outputs = tuple(self._moved(op, y, e, t) for y, e, t in zip(outputs, errors, dtypes, strict=False))
        return tuple(self._rounded(y, t) for y, t in zip(outputs, dtypes, strict=False))

    def _moved(self, op: Any, y: np.ndarray, error: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
        if y.dtype not in WIDE or dtype.name not in FORMATS or self.rng is None:
            return y
        form = FORMATS[dtype.name]
        if error is None:
            error = np.zeros(()) if _moves_only(op) else np.abs(y) * form.unit_roundoff
        error = np.where(np.isinf(error), form.largest, np.where(np.isnan(error), 0.0, error))
        moved = y + self.sign * error * self.rng.uniform(0.5, 1.0, y.shape) * self.rng.choice((-1, 1), y.shape)
        if y.dtype.kind == "f" and not (isinstance(op.op_def.accuracy, Exact) and op.op_def.accuracy.signed_zero):
            moved = np.where(y == 0, moved * self.rng.choice((-1.0, 1.0), y.shape), moved)
        return np.asarray(np.where(np.isfinite(y), moved, y))

    def _rounded(self, y: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if y.dtype not in WIDE or dtype.name not in FORMATS:
            return y
        made = round_to(y, dtype)
        return widen(_flushed(made) if self.flush else made)


def _flushed(x: np.ndarray) -> np.ndarray:
    """Returns zeros in place of subnormal numbers."""
    if x.dtype.name not in FORMATS:
        return x
    if x.dtype.kind == "c":
        made = x.copy()
        made.real, made.imag = _flushed(x.real), _flushed(x.imag)
        return made
    return np.where(np.abs(x) < x.dtype.type(FORMATS[x.dtype.name].smallest_normal), x.dtype.type(0), x)


def _is_open(op: Any, attrs: Mapping[str, Any], inputs: Sequence[Any], dtypes: Sequence[np.dtype]) -> bool:
    """Returns whether the declared accuracy implies nothing for these inputs; then results are not compared.

    Intermediate results may leave the range: a mean may be formed of a sum, a product in any order, a bound of an op's
    own covers functions of any growth. Which of several elements is the largest is undefined if one is NaN.
    """
    arrays = [np.abs(x) for x in inputs if isinstance(x, np.ndarray) and x.dtype in WIDE]
    if op.name in NUMBERS_ONLY and any(np.isnan(x).any() for x in arrays):
        return True
    largest = min((computing_format(t).largest for t in dtypes if t.name in FORMATS), default=np.inf)
    if op.name in PRODUCTS and _leaves_range(op, attrs, inputs, dtypes):
        return True
    sizes = [x[np.isfinite(x)] for x in arrays]
    if isinstance(op.accuracy, Accumulation):
        return float(np.prod([max(1.0, float(np.sum(x))) for x in sizes])) > largest
    narrow = min((FORMATS[t.name].largest for t in dtypes if t.name in FORMATS), default=np.inf)
    return isinstance(op.accuracy, Bound) and any(np.any(x > narrow ** (1 / 4)) for x in sizes)


def _leaves_range(op: Any, attrs: Mapping[str, Any], inputs: Sequence[Any], dtypes: Sequence[np.dtype]) -> bool:
    """Returns whether all factors from 1 on, or all below 1 but zeros, have a product outside
    the dtype's normal numbers.
    """
    forms = [computing_format(t) for t in dtypes if t.name in FORMATS]
    if not forms:
        return False
    factors = np.where(np.isfinite(inputs[0]) & (inputs[0] != 0), np.abs(inputs[0]), 1.0)
    (high,) = evaluate_op(op, attrs, [np.maximum(factors, 1.0), *inputs[1:]])
    (low,) = evaluate_op(op, attrs, [np.minimum(factors, 1.0), *inputs[1:]])
    return bool((high > forms[0].largest).any() or (low < forms[0].smallest_normal).any())


PRODUCTS = frozenset({"Prod", "Cumprod", "SegmentProd", "SegmentProdV2", "UnsortedSegmentProd"})
"""Ops that multiply elements of their first input."""

NUMBERS_ONLY = frozenset({
    "MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradWithArgmax",
    "MaxPoolGradGradWithArgmax", "MaxPoolWithArgmax", "MaxPool3DGrad", "MaxPool3DGradGrad", "Dilation2DBackpropInput",
    "Dilation2DBackpropFilter",
})  # fmt: skip
"""Ops that give a gradient to the largest element of a window."""


def _moves_only(op: Any) -> bool:
    """Returns whether every output element is one of an input's; it is not rounded then."""
    return op.type in EXACT_MOVES or not any(t.dtype.numpy.kind in "fcV" for t in op.inputs)


EXACT_MOVES = frozenset({
    "Identity", "Reshape", "Transpose", "ConcatV2", "Slice", "StridedSlice", "GatherV2", "Pack", "Unpack", "Split",
    "Pad", "PadV2", "Tile", "ExpandDims", "Squeeze", "ReverseV2", "BroadcastTo", "ZerosLike", "OnesLike", "Fill",
    "Neg", "Abs", "Maximum", "Minimum", "Max", "Min", "Relu", "SelectV2", "Select", "Sign", "ReluGrad", "StopGradient",
    "Snapshot",
})  # fmt: skip
"""Exact ops that round nothing. Others are taken to round once, which at worst makes a limit wider."""


def tainted(fetches: Sequence[Any]) -> set[Any]:
    """Returns the tensors that depend on results which are not unique, such as eigenvectors."""
    known: dict[Any, bool] = {}
    return {t for t in fetches if _is_tainted(t.op, known)}


def _is_tainted(op: Any, known: dict[Any, bool]) -> bool:
    if op not in known:
        known[op] = False
        inside = [t for name in functions_of(op) for t in op.graph.find_function(name).outputs]
        known[op] = isinstance(op.op_def.accuracy, Residual) or any(
            _is_tainted(t.op, known) for t in (*op.inputs, *inside)
        )
    return known[op]


def functions_of(op: Any) -> list[str]:
    """Returns the names of the functions that a node calls."""
    names = [v for k, v in op.attrs.items() if op.op_def.attrs[k].kind == "func"]
    return names + [n for k, v in op.attrs.items() if op.op_def.attrs[k].kind == "list(func)" for n in v]


def evaluate(
    fetches: Sequence[Any],
    feeds: Mapping[Any, Any],
    initializers: Sequence[Any] = (),
    after: Any = None,
    number: int = 1,
) -> list[Any]:
    """Returns the tensors' values by references in a session's run of this number, each from
    freshly initialised variables.
    """
    with quiet():
        interpreter = Interpreter(after)
        for _ in range(number):
            if initializers:
                interpreter.run(initializers, feeds)
            found = interpreter.run(fetches, feeds)
        return found


def expect(
    fetches: Sequence[Any],
    feeds: Mapping[Any, Any],
    initializers: Sequence[Any] = (),
    flush: bool = False,
    number: int = 1,
) -> list[Expected | None]:
    """Returns the expected value of each fetch in a session's run of this number; None if
    references do not determine it.

    Raises whatever a reference raises in the plain evaluation: then the program has no result.
    """
    wide = evaluate(fetches, feeds, initializers, number=number)
    others: list[list[Any]] = []
    for draw in range(DRAWS + 1):
        pair, sign = (draw + 1) // 2, 1 if draw % 2 else -1
        rng = np.random.default_rng((0, pair)) if draw else None
        try:
            flushed = flush and pair % 2 == 1
            given = {t: _flushed(np.asarray(x)) for t, x in feeds.items()} if flushed else feeds
            others.append(evaluate(fetches, given, initializers, Perturbed(rng, flushed, sign), number))
        except NotInterpretedError:
            raise
        except Exception:  # an index that rounding decides; NumPy's references may raise any exception
            return [None] * len(wide)
    unsure = tainted(fetches)
    return [
        None if t in unsure else _expected(t.dtype.base_dtype.numpy, np.asarray(w), [np.asarray(o[i]) for o in others])
        for i, (t, w) in enumerate(zip(fetches, wide, strict=True))
    ]


def _expected(dtype: np.dtype, wide: np.ndarray, others: Sequence[np.ndarray]) -> Expected | None:
    if any(o.shape != wide.shape for o in others):
        return None
    if dtype.name not in FORMATS:
        determined = np.ones(wide.shape, bool)
        for o in others:
            determined &= np.asarray(o == wide, bool)
        return Expected(wide, dtype, None, determined)
    form = FORMATS[dtype.name]
    with np.errstate(all="ignore"):
        determined = np.ones(wide.shape, bool)
        change = np.zeros(wide.shape)
        for o in others:
            determined &= _kind(o) == _kind(wide)
            change = np.fmax(change, np.where(np.isfinite(wide) & np.isfinite(o), np.abs(o - wide), 0.0))
        limit = SLACK * (change + ulp(np.abs(wide), form))
        determined &= ~(np.isfinite(wide) & (np.abs(wide) + limit >= form.largest))
        if wide.dtype.kind == "c":
            determined &= np.isfinite(wide)
    return Expected(wide, dtype, limit, determined)


def _kind(x: np.ndarray) -> np.ndarray:
    """0 for finite numbers, 1 for NaN, 2 and 3 for infinities."""
    real = x.real if x.dtype.kind == "c" else x
    return np.where(np.isnan(x), 1, np.where(np.isfinite(x), 0, np.where(real > 0, 2, 3)))

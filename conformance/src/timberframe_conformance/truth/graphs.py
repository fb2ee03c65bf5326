"""Evaluates graphs by the references of their ops, in float64 on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.limits import allowed_error
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_sdk.reference import evaluate, widen

WIDE = frozenset({np.dtype(np.float64), np.dtype(np.complex128)})


class Evaluator:
    """The nodes that some tensors depend on, in order, ready to be evaluated for any feeds.

    Nodes that do not depend on a feed are evaluated once. Used within `quiet`.
    """

    def __init__(self, fetches: Sequence[Any], fed: Sequence[Any]) -> None:
        self.fetches = list(fetches)
        self.fed = list(fed)
        self._steps: list[Any] = []
        self._fixed: dict[Any, np.ndarray] = {}
        varying = set(self.fed)
        needed: set[Any] = set()
        stack = [t for t in self.fetches if t not in varying]
        while stack:
            op = stack.pop().op
            if op not in needed:
                needed.add(op)
                stack.extend(t for t in op.inputs if t not in varying)
        for op in sorted(needed, key=lambda op: op.id):
            if any(t in varying for t in op.inputs):
                self._steps.append(op)
                varying.update(op.outputs)
            else:
                self._fixed.update(zip(op.outputs, _outputs(op, [self._fixed[t] for t in op.inputs]), strict=True))

    def wide(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the fetched values for these of the fed tensors, in float64 and complex128."""
        known = self._start(values)
        for op in self._steps:
            known.update(zip(op.outputs, _outputs(op, [known[t] for t in op.inputs]), strict=True))
        return [known[t] for t in self.fetches]

    def perturbed(
        self, values: Sequence[np.ndarray], rng: np.random.Generator, draws: int
    ) -> tuple[list[np.ndarray], Iterator[list[np.ndarray]]]:
        """Like `wide`, and `draws` times with every node perturbed by as much as its op's declared accuracy allows.

        Each element moves up or down at random. Errors are those of the node's dtype, but of float32 in place of
        float64, so that float64 can hold them.
        """
        start = self._start(values)
        known = dict(start)
        errors = []
        for op in self._steps:
            inputs = [known[t] for t in op.inputs]
            outputs = _outputs(op, inputs)
            known.update(zip(op.outputs, outputs, strict=True))
            errors.append(_errors(op, inputs, outputs))
        return [known[t] for t in self.fetches], (self._moved(start, known, errors, rng) for _ in range(draws))

    def _moved(
        self,
        start: Mapping[Any, np.ndarray],
        known: Mapping[Any, np.ndarray],
        errors: Sequence[Sequence[np.ndarray]],
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        moved = dict(start)
        for op, sizes in zip(self._steps, errors, strict=True):
            if all(moved[t] is known[t] for t in op.inputs):
                outputs = tuple(known[t] for t in op.outputs)
            else:
                outputs = _outputs(op, [moved[t] for t in op.inputs])
            moved.update((t, _off(y, e, rng)) for t, y, e in zip(op.outputs, outputs, sizes, strict=True))
        return [moved[t] for t in self.fetches]

    def _start(self, values: Sequence[np.ndarray]) -> dict[Any, np.ndarray]:
        known = {t: widen(x) for t, x in self._fixed.items()}
        known.update(zip(self.fed, map(widen, values), strict=True))
        return known


NARROWER = {"float64": np.dtype(np.float32), "complex128": np.dtype(np.complex64)}


def _is_cast(op: Any) -> bool:
    """Returns whether the op does nothing but round: floating numbers to others."""
    return bool(op.type == "Cast" and all(t.dtype.name in FORMATS for t in (*op.inputs, *op.outputs)))


def _outputs(op: Any, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    if _is_cast(op) and op.inputs[0].dtype.is_complex == op.outputs[0].dtype.is_complex:
        return (widen(inputs[0]),)
    return evaluate(op.op_def, op.attrs, inputs)


def _errors(op: Any, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the allowed error of each output; None for dtypes that are not floating."""
    dtypes = [NARROWER.get(t.dtype.name, t.dtype.numpy) for t in op.outputs]
    errors = allowed_error(op.op_def, op.attrs, inputs, tuple(outputs), dtypes)
    kept = () if _is_cast(op) else inputs
    found = (_once(y, kept, t) if e is None else e for y, e, t in zip(outputs, errors, dtypes, strict=True))
    return [np.where(np.isfinite(e), e, 0) for e in found]


def moved_by(rng: np.random.Generator) -> Callable[[Any, Sequence[Any], tuple[Any, ...]], tuple[Any, ...]]:
    """Returns what an Interpreter calls after each operation: it moves results by what accuracy allows, up or down."""

    def after(op: Any, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        computed = [x for x in (*inputs, *outputs) if isinstance(x, np.ndarray)]
        if op.type == "Const" or len(computed) < len(inputs) + len(outputs) or len(outputs) != len(op.outputs):
            return outputs
        return tuple(_off(y, e, rng) for y, e in zip(outputs, _errors(op, inputs, outputs), strict=True))

    return after


def _once(y: np.ndarray, inputs: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Returns the error of one rounding for exact results; none for those that are elements of the
    inputs, moved or negated.
    """
    if y.dtype not in WIDE or dtype.name not in FORMATS:
        return np.zeros(())
    known = [np.abs(x).ravel() for x in inputs if x.dtype in WIDE]
    new = ~np.isin(np.abs(y), np.concatenate(known)) if known else np.zeros(y.shape, bool)
    return np.where(new, np.abs(y) * FORMATS[dtype.name].unit_roundoff, 0)


def _off(y: np.ndarray, error: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """y with each element moved up or down, but for zeros, and for finite numbers that would overflow.

    What is zero has no terms, or underflowed far below: an exact result. (Cancelled terms, themselves moved, leave no
    zero.) Numbers near the largest stand for infinity, as in logarithms of zero, and devices keep them finite.
    """
    if y.dtype not in WIDE or not error.any():
        return y
    moved = y + error * rng.choice((-1, 1), y.shape)
    return np.where((y == 0) | (np.isfinite(y) & ~np.isfinite(moved)), y, moved)

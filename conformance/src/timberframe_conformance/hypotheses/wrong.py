"""An output that differs from the truth, as hypotheses look at it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from timberframe_conformance.cluster import output_shapes
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.reference import evaluate, quiet, true_outputs
from timberframe_core.ops.definition.formats import FORMATS, ulp
from timberframe_core.ops.definition.opdef import OpDef

Hypothesis = Callable[["Wrong"], Iterator[str]]

MOST_ELEMENTS = 100_000
"""Of inputs and output together: hypotheses on larger calls are not tried, as each computes the reference once."""

_earlier: ContextVar[Mapping[str, Sequence[np.ndarray]]] = ContextVar("earlier_inputs", default=MappingProxyType({}))


@contextmanager
def after_other_inputs(inputs: Mapping[str, Sequence[np.ndarray]]) -> Iterator[None]:
    """Lets hypotheses of the block try inputs that the device was given before, by the words for them."""
    token = _earlier.set(inputs)
    try:
        yield
    finally:
        _earlier.reset(token)


def _none() -> Iterator[tuple[str, np.ndarray]]:
    """Yields no candidates."""
    return iter(())


@dataclass(frozen=True, eq=False)
class Wrong:
    """Output `number` of a call: what the device gave, what is right in float64, and which elements differ.

    allowed: the absolute error of each element that passes; None where every bit counts. candidates: further outputs to
    compare with, by the words for them, which the maker of the case knows.
    """

    op: OpDef
    attrs: Mapping[str, Any]
    inputs: Sequence[np.ndarray]
    number: int
    got: np.ndarray
    expected: np.ndarray
    dtype: np.dtype
    wrong: np.ndarray
    allowed: np.ndarray | None
    candidates: Callable[[], Iterator[tuple[str, np.ndarray]]] = _none

    @property
    def is_small(self) -> bool:
        """Whether the reference may be computed often."""
        return self.got.size + sum(x.size for x in self.inputs) <= MOST_ELEMENTS

    @property
    def earlier(self) -> Mapping[str, Sequence[np.ndarray]]:
        """Inputs that the device was given before, by the words for them."""
        return _earlier.get()

    def result_of(
        self, attrs: Mapping[str, Any] | None = None, inputs: Sequence[np.ndarray] | None = None
    ) -> np.ndarray | None:
        """Returns the op's results for other attrs or inputs; None where it refuses them, or gives too many elements.

        A limit in the place of a size may ask for more than there is memory, so that the shape is looked at first.
        """
        if not self.is_small:
            return None
        given = self.inputs if inputs is None else inputs
        named = self.attrs if attrs is None else attrs
        compute = true_outputs if any(x.dtype.name in FORMATS for x in given) else evaluate
        try:
            if math.prod(output_shapes(self.op, named, given)[self.number][0]) > MOST_ELEMENTS:
                return None
            with quiet():
                return np.asarray(compute(self.op, named, given)[self.number])
        except Exception:  # a reference may raise anything for what the op does not take
            return None

    def equals(self, candidate: np.ndarray | None) -> bool:
        """Returns whether the elements that differ from the truth are those of a candidate, which is not the truth.

        Where they have few values, and so may do so by chance, all others must be those of the candidate, too.
        """
        if candidate is None or candidate.shape != self.got.shape or self.dtype.hasobject:
            return False
        by_chance = distinct(self.got[self.wrong]) < TELLING
        mask = np.ones_like(self.wrong) if by_chance else self.wrong
        got, right, other = (np.asarray(x)[mask] for x in (self.got, self.expected, candidate))
        if self.dtype.name not in FORMATS:
            return bool(np.array_equal(got, other))
        wide = np.complex128 if self.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            if self.allowed is None:
                return bool(np.all((got == round_to(other, self.dtype)) | (np.isnan(got) & np.isnan(other))))
            unit = ulp(np.abs(other), FORMATS[self.dtype.name])
            allowed = np.maximum(np.broadcast_to(self.allowed, self.got.shape)[mask], unit)
            allowed = np.where(np.isfinite(allowed), allowed, 0)  # where anything passes nothing fits by that
            close = (np.abs(got.astype(wide) - other) <= allowed) | (got.astype(wide) == other)
            close |= np.isnan(got) & np.isnan(other)
            apart = ~(np.abs(other - right) <= 4 * allowed)[self.wrong[mask]]
        return bool(np.all(close) and np.mean(apart) > 0.5)


TELLING = 3
"""Different values of wrong elements that a candidate hardly has by chance."""


def distinct(values: np.ndarray) -> int:
    """Returns the number of different values, of NaN none."""
    return np.unique(values[values == values]).size

"""Checks of random numbers: moments and frequencies, with bounds from their standard errors.

For n independent numbers of variance v and fourth central moment m, the mean errs by sqrt(v / n) and the variance by
sqrt((m - v^2) / n); a chi-square of k classes has mean k - 1 and deviation sqrt(2 (k - 1)). Six of these deviations are
allowed: correct numbers exceed them for one seed in 10^8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DEVIATIONS = 6.0
COUNT = 40_000

Types = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Moments:
    """Independent numbers of a known mean, variance and fourth central moment."""

    name: str
    op: str
    types: Types
    inputs: Sequence[Any]
    mean: float
    variance: float
    fourth: float

    def wrong(self, drawn: np.ndarray) -> str:
        """Returns what is wrong with the numbers; nothing if they could be right."""
        x = drawn.astype(np.float64).reshape(-1)
        spread = np.square(x - self.mean)
        neighbours = (x[1:] - self.mean) * (x[:-1] - self.mean)
        tests = (
            ("mean", x.mean(), self.mean, self.variance, x.size),
            ("variance", spread.mean(), self.variance, self.fourth - self.variance**2, x.size),
            ("covariance of neighbours", neighbours.mean(), 0.0, self.variance**2, x.size - 1),
        )
        for what, got, wanted, variance, n in tests:
            bound = DEVIATIONS * math.sqrt(variance / n)
            if not abs(got - wanted) <= bound:
                return f"the {what} of {x.size} numbers is {got:.6g}; it must be {wanted:.6g} within {bound:.2g}"
        return ""


@dataclass(frozen=True)
class Classes:
    """Independent integers from 0 on with known probabilities."""

    name: str
    op: str
    types: Types
    inputs: Sequence[Any]
    probabilities: Sequence[float]

    def wrong(self, drawn: np.ndarray) -> str:
        """Returns what is wrong with the numbers; nothing if they could be right."""
        x = self.classes(drawn)
        counts = np.bincount(x, minlength=len(self.probabilities))
        if len(counts) > len(self.probabilities):
            return f"class {len(counts) - 1} was drawn; there are {len(self.probabilities)} classes"
        expected = np.array(self.probabilities) * x.size
        if counts[expected == 0].any():
            return f"class {int(np.argmax(np.where(expected == 0, counts, 0)))} was drawn; it has probability 0"
        found = expected > 0
        statistic = float((np.square(counts - expected)[found] / expected[found]).sum())
        freedom = int(found.sum()) - 1
        bound = freedom + DEVIATIONS * math.sqrt(2 * freedom)
        if statistic > bound:
            return f"chi-square is {statistic:.1f} for {freedom} degrees of freedom; it must be at most {bound:.1f}"
        return ""

    def classes(self, drawn: np.ndarray) -> np.ndarray:
        """Returns the integers to count."""
        return np.asarray(drawn.reshape(-1).astype(np.int64))


@dataclass(frozen=True)
class Positions(Classes):
    """Shuffled numbers 0, 1, 2...: pairs of the eighths of positions that each moved from and to."""

    def wrong(self, drawn: np.ndarray) -> str:
        if not np.array_equal(np.sort(drawn), np.arange(drawn.size)):
            return "the rows are not those of the input, each once"
        return super().wrong(drawn)

    def classes(self, drawn: np.ndarray) -> np.ndarray:
        eighth = drawn.size // 8
        return np.asarray(np.arange(drawn.size) // eighth * 8 + drawn.astype(np.int64) // eighth)


def _filled(op: str, dtype: str, mean: float, variance: float, fourth: float) -> Moments:
    return Moments(dtype, op, (("T", "int32"), ("dtype", dtype)), [[COUNT]], mean, variance, fourth)


def _truncated(dtype: str) -> Moments:
    """Returns a standard normal between -2 and 2: with r = 2 phi(2) / P(-2 < x < 2), E x^2 = 1 -
    2 r and E x^4 = 3 - 14 r.
    """
    r = 2 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))
    return _filled("TruncatedNormal", dtype, 0.0, 1 - 2 * r, 3 - 14 * r)


def _uniform(dtype: str, bits: int) -> Moments:
    """Multiples of 2^-bits in [0, 1)."""
    mean = 0.5 - 2.0 ** -(bits + 1)
    return _filled("RandomUniform", dtype, mean, 1 / 12, 1 / 80)


def _gamma(alpha: float) -> Moments:
    types = ("S", "int32"), ("T", "float64")
    return Moments(f"{alpha}", "RandomGamma", types, [[COUNT], np.array(alpha)], alpha, alpha, 3 * alpha**2 + 6 * alpha)


def _poisson(rate: float) -> Moments:
    types = ("S", "int32"), ("R", "float64"), ("dtype", "int64")
    return Moments(f"{rate}", "RandomPoissonV2", types, [[COUNT], np.array(rate)], rate, rate, rate + 3 * rate**2)


def _categories(logits: Sequence[float]) -> Classes:
    weights = np.exp(np.array(logits))
    types = ("T", "float32"), ("output_dtype", "int64")
    given = np.array([logits], np.float32)
    return Classes(f"{len(logits)}", "Multinomial", types, [given, COUNT], tuple(weights / weights.sum()))


DISTRIBUTIONS: tuple[Moments | Classes, ...] = (
    _uniform("float32", 23),
    _uniform("float64", 52),
    _uniform("float16", 10),
    _uniform("bfloat16", 7),
    _filled("RandomStandardNormal", "float32", 0.0, 1.0, 3.0),
    _filled("RandomStandardNormal", "float64", 0.0, 1.0, 3.0),
    _truncated("float32"),
    _truncated("float64"),
    _gamma(0.5),
    _gamma(1.0),
    _gamma(4.0),
    _poisson(3.0),
    _poisson(30.0),
    _categories([0.0, 1.0, -1.0, -math.inf, 2.0]),
    Classes("10", "RandomUniformInt", (("T", "int32"), ("Tout", "int32")), [[COUNT], 0, 10], [0.1] * 10),
    Classes("7", "RandomUniformInt", (("T", "int32"), ("Tout", "int64")), [[COUNT], 0, 7], [1 / 7] * 7),
    Positions("8", "RandomShuffle", (("T", "int32"),), [np.arange(COUNT, dtype=np.int32)], [1 / 64] * 64),
)
"""All that is judged, each by one run."""

"""A family of programs: how they are drawn, what runs them, and how results are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from timberframe_core.ops.definition.formats import FORMATS

T = TypeVar("T")


@dataclass(frozen=True)
class Family:
    """Programs of one kind, as source text over `tf`, `np`, `show` and the other functions of `helpers.py`.

    draw: a program of a generator. model: the module of a model in plain Python, "" where programs judge themselves.
    share: of the largest element of a result, by which floating results may differ. elementwise: each element may differ
    by that of itself, and by a little of the largest that is below 1e3, which sums that cancel need.
    parts: functions of a program that run in turn, each with the folder that the one before wrote; the first in one
    system, the second in another. () where the whole program runs in each.
    """

    name: str
    what: str
    draw: Callable[[Drawer], str]
    model: str = ""
    share: dict[str, float] | None = None
    elementwise: bool = False
    parts: tuple[str, ...] = ()

    def mismatch(self, got: np.ndarray, expected: np.ndarray) -> str:
        """Returns how two results differ, "" where they do not."""
        if got.dtype != expected.dtype or got.shape != expected.shape:
            return f"{got.dtype}{list(got.shape)}; the other gives {expected.dtype}{list(expected.shape)}"
        with np.errstate(all="ignore"):
            wrong = ~_near(self, got, expected)
        if not wrong.any():
            return ""
        at = _farthest(wrong, got, expected)
        return (
            f"{int(wrong.sum())} of {wrong.size} elements differ; at {at}: {got.ravel()[at]!r}, the other gives "
            f"{expected.ravel()[at]!r}"
        )


def _farthest(wrong: np.ndarray, got: np.ndarray, expected: np.ndarray) -> int:
    """Returns the position of the wrong number that is farthest off, of the first wrong element of other dtypes."""
    if got.dtype.kind not in "fc":
        return int(np.argmax(wrong))
    with np.errstate(all="ignore"):
        distance = np.abs(got - expected)
    return int(np.argmax(np.where(wrong, np.where(np.isnan(distance), np.inf, distance), -1)))


def _near(family: Family, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    if got.dtype.name not in FORMATS:
        return np.asarray(got == expected)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    unit = FORMATS[got.dtype.name].unit_roundoff
    share = (family.share or {}).get(got.dtype.name, 64 * unit)
    finite = np.isfinite(b)
    size = np.max(np.abs(b[finite]), initial=0.0)
    if family.elementwise:
        size = np.abs(b) + 0.1 * np.max(np.abs(b[finite & (np.abs(b) < 1e3)]), initial=0.0)
    near = np.abs(a - b) <= share * size + FORMATS[got.dtype.name].smallest_normal
    if got.dtype.kind == "c":  # a part may be compared beside one that is infinite or NaN
        parts = _near(family, got.real, expected.real) & _near(family, got.imag, expected.imag)
        return np.asarray(np.where(finite, near, parts))
    return np.asarray((a == b) | (finite & near) | (np.isnan(a) & np.isnan(b)))


class Drawer:
    """Random choices of a program."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng((seed, number))
        self._names = 0

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, items: Sequence[T]) -> T:
        """Returns one of the items."""
        return items[int(self.rng.integers(len(items)))]

    def whole(self, low: int, high: int) -> int:
        """Returns a whole number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def number(self, low: float = -2.0, high: float = 2.0) -> float:
        """Returns a number of few digits."""
        return round(float(self.rng.uniform(low, high)), 3)

    def numbers(self, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> Any:
        """Returns nested lists of such numbers."""
        return np.round(self.rng.uniform(low, high, shape), 3).tolist()

    def name(self, start: str = "v") -> str:
        """Returns a new name."""
        self._names += 1
        return f"{start}{self._names}"


def indented(lines: Sequence[str], by: int = 4) -> list[str]:
    """Lines of a block."""
    return [" " * by + line for text in lines for line in text.split("\n")]

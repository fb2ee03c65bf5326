"""What conformance found of an output, for devices that write scripts of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Judged:
    """An output of a device beside what it must be. allowed: the absolute error that each element may have.

    Where allowed is None, each element must be as expected, and NaN where that is NaN.
    """

    got: np.ndarray
    expected: np.ndarray
    allowed: np.ndarray | None = None

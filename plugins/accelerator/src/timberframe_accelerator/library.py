"""Products of matrices by a library of the device's maker, as the kernels of this package ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Types = tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]
"""Dtypes of the left operand, the right one, and the result."""


@dataclass(frozen=True)
class Multiplication:
    """A batch of products of row-major matrices, each [rows, depth] by [depth, columns]. All lengths are in elements.

    swaps: whether the operands lie transposed. pitches: from a line of each operand and of the result to the next.
    steps: from a matrix of the batch to the next, 0 where all products take the same. adds: whether the products are
    added to what the result holds.
    """

    rows: int
    columns: int
    depth: int
    swaps: tuple[bool, bool]
    pitches: tuple[int, int, int]
    types: Types
    count: int = 1
    steps: tuple[int, int, int] = (0, 0, 0)
    adds: bool = False

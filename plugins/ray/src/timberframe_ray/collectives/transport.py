"""What carries arrays between the processes of a group, and the sums that are the same whatever does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from timberframe_ray.collectives.links import Waiting

WHOLE = slice(None)
SAME = (1 << 32) - 1
"""The bits of a sign that must be equal in all processes."""


class Transport(Protocol):
    """A way between all processes of a group.

    piece_bytes: the most that one exchange takes. signs: of all processes by rank, as they were in the last call. A
    sign says what a process does: its lower 32 bits must be equal in all of them, the others say more.
    """

    piece_bytes: int
    signs: list[int]

    def exchange(
        self, given: np.ndarray, lengths: Sequence[int], parts: Sequence[slice], sign: int, waiting: Waiting
    ) -> list[np.ndarray]:
        """Returns what this process wants of each one's array, by rank; valid until the next call.

        given: this one's array, of one dimension; lengths: of all of them; parts: which part of each array each process
        wants.
        """

    def all_reduce(self, x: np.ndarray, sign: int, waiting: Waiting) -> None:
        """Overwrites an array of one dimension by the sum of all processes' arrays."""

    def close(self) -> None: ...


class DifferentError(Exception):
    """A process of the group does something else, or with other sizes. rank: of which one."""

    def __init__(self, rank: int) -> None:
        super().__init__(f"rank {rank}")
        self.rank = rank


def chunks(count: int, size: int) -> list[slice]:
    """Returns an array of so many elements in one part for each process."""
    ends = [count * i // size for i in range(size + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def ordered_sum(parts: Sequence[np.ndarray], out: np.ndarray | None = None) -> np.ndarray:
    """Returns the sum, from the first to the last; of two-byte floats in single precision, rounded once.

    out: gets it, and may be one of the parts; then the first part may be written over.
    """
    first, *others = parts
    if first.dtype.itemsize == 2 and first.dtype.kind not in "iu":
        exact = ordered_sum([part.astype(np.float32) for part in parts])
        if out is None:
            return exact.astype(first.dtype)
        out[...] = exact
        return out
    total = first
    for i, part in enumerate(others, 1):
        if out is None:
            target = None if i == 1 else total
        else:
            target = first if i < len(others) else out
        total = np.add(total, part, out=target)
    return total

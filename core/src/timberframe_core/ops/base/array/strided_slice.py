"""The rules of StridedSlice: which dimension each entry of begin, end and strides speaks of, and what it selects.

Shape function, reference and kernels all work on the result of these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INDEX_OUTSIDE = "index {0} of dimension {1} is outside its size {2}; it must lie in [-{2}, {2})"
COUNTS_DIFFER = "begin and end select {0} elements of dimension {1}; the {2} that were planned are required"


@dataclass(frozen=True)
class Selection:
    """How one dimension of the input, or a new one of the output, is treated.

    source: the input's dimension, None for a new dimension of one. entry: the place in begin, end and strides that
    speaks of it, None where the whole dimension is taken. shrink: one index is taken and the dimension disappears.
    """

    source: int | None
    entry: int | None
    shrink: bool = False


def selections(rank: int, entries: int, attrs: Mapping[str, Any]) -> list[Selection]:
    """Returns one Selection for each dimension of the input and each new one, in the output's order.

    Raises ValueError, with fact and requirement, where there are more entries than dimensions or two ellipses.
    """
    ellipsis, new_axis, shrink = attrs["ellipsis_mask"], attrs["new_axis_mask"], attrs["shrink_axis_mask"]
    if (ellipsis & ((1 << entries) - 1)).bit_count() > 1:
        raise ValueError(f"ellipsis_mask is {bin(ellipsis)}; at most one bit may be set")
    uses = sum(1 for i in range(entries) if not ((ellipsis | new_axis) >> i) & 1)
    if uses > rank:
        raise ValueError(f"{uses} dimensions are indexed and the input has rank {rank}; at most its rank may be")
    result: list[Selection] = []
    at = 0
    for i in range(entries):
        if ellipsis >> i & 1:
            result.extend(Selection(d, None) for d in range(at, at + rank - uses))
            at += rank - uses
        elif new_axis >> i & 1:
            result.append(Selection(None, i))
        else:
            result.append(Selection(at, i, bool(shrink >> i & 1)))
            at += 1
    result.extend(Selection(d, None) for d in range(at, rank))
    return result


@dataclass(frozen=True)
class Entry:
    """What begin, end and strides say about one dimension; None for a value that is not known or is masked."""

    begin: int | None
    end: int | None
    stride: int | None
    begin_masked: bool
    end_masked: bool


def interval(size: int, entry: Entry, source: int, shrink: bool) -> tuple[int, int | None, int]:
    """First index, number of indices (None where not known) and stride that an entry selects of a dimension.

    Raises ValueError, with fact and requirement, for an index outside the dimension.
    """
    stride = entry.stride
    if shrink:
        if entry.begin is None:
            return 0, 1, 1
        index = entry.begin + size if entry.begin < 0 else entry.begin
        if not 0 <= index < size:
            raise ValueError(INDEX_OUTSIDE.format(entry.begin, source, size))
        return index, 1, 1
    if stride is None:
        return 0, None, 1
    low, high = (0, size) if stride > 0 else (-1, size - 1)
    first = _clamped(entry.begin, entry.begin_masked, low if stride > 0 else high, size, low, high)
    last = _clamped(entry.end, entry.end_masked, high if stride > 0 else low, size, low, high)
    if first is None or last is None:
        return 0, None, stride
    length = last - first
    count = 0 if length == 0 or (length < 0) != (stride < 0) else -(-abs(length) // abs(stride))
    return first, count, stride


def _clamped(value: int | None, masked: bool, default: int, size: int, low: int, high: int) -> int | None:
    if masked:
        return default
    if value is None:
        return None
    return min(max(value + size if value < 0 else value, low), high)

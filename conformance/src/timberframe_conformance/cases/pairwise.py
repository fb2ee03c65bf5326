"""Rows of choices in which every pair of values meets, as far as the number of rows allows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def extend(rows: Sequence[tuple[Hashable, ...]], values: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
    """Adds a column to rows that exist, choosing for each the value with the most pairs not seen yet.

    This is the horizontal growth of the in-parameter-order strategy (Lei and Tai, 1998), without its vertical growth:
    the number of rows stays. Ties are broken in rotation, so that values are used about equally often.
    """
    seen: set[tuple[int, Hashable, Hashable]] = set()
    used = dict.fromkeys(values, 0)
    result = []
    for row in rows:
        best = max(values, key=lambda v: (sum((i, x, v) not in seen for i, x in enumerate(row)), -used[v]))
        seen.update((i, x, best) for i, x in enumerate(row))
        used[best] += 1
        result.append((*row, best))
    return result

"""The geometry of reductions: what devices share about axes."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import groupby


def reduction_runs(shape: tuple[int, ...], axes: Collection[int]) -> list[tuple[bool, int]]:
    """Returns the shape as alternating (is reduced, size) runs; dimensions of size one vanish."""
    dims = [(i in axes, d) for i, d in enumerate(shape) if d != 1]
    return [(reduced, math.prod(d for _, d in run)) for reduced, run in groupby(dims, key=lambda x: x[0])]


def reduction_passes(shape: tuple[int, ...], axes: Collection[int]) -> list[tuple[int, int, int]]:
    """Returns a reduction as passes over [outer, rows, width], each of which reduces one run of dimensions, the rows.

    The longest run comes first, so that later passes read little. There is always a pass, of one row where nothing is
    reduced, and of none where there is nothing to reduce.
    """
    runs = reduction_runs(shape, axes)
    if any(reduced and not size for reduced, size in runs):
        return [(math.prod(size for reduced, size in runs if not reduced), 0, 1)]
    passes = []
    while any(reduced for reduced, _ in runs):
        k = max((i for i, (reduced, _) in enumerate(runs) if reduced), key=lambda i: runs[i][1])
        outer, width = (math.prod(size for _, size in part) for part in (runs[:k], runs[k + 1 :]))
        passes.append((outer, runs[k][1], width))
        del runs[k]
    return passes or [(math.prod(shape), 1, 1)]

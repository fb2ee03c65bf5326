"""What references check in the values of their inputs, so that NumPy does not take them for something else."""

from __future__ import annotations

import numpy as np

from timberframe_core.errors import InvalidArgumentError


def check_indices(indices: np.ndarray, size: int, what: str = "index", where: str = "position", rule: str = "") -> None:
    """Raises InvalidArgumentError that names the first index outside [0, size): NumPy would count -1 from the end."""
    flat = indices.reshape(-1)
    wrong = np.flatnonzero((flat < 0) | (flat >= size))
    if wrong.size:
        at = int(wrong[0])
        need = f"; {rule}" if rule else f"; it must be at least 0 and below {size}"
        raise InvalidArgumentError(f"{what} {flat[at]} at {where} {at} is outside [0, {size}){need}")


def check_tuples(indices: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for the first of the index tuples in the last dimension that leaves the shape."""
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth) if depth else indices.reshape(0, 0)
    wrong = np.argwhere((rows < 0) | (rows >= np.array(shape[:depth], np.int64)))
    if len(wrong):
        row, d = map(int, wrong[0])
        raise InvalidArgumentError(
            f"index tuple {row} has {rows[row, d]} in dimension {d}; it must lie in [0, {shape[d]})"
        )

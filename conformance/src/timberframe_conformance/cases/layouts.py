"""Ways in which the same values can lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np


def _strided(x: np.ndarray) -> np.ndarray:
    wide = np.empty((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    wide[..., 1::2] = x[..., ::-1]
    return wide[..., ::2]


def _reversed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[::-1])[::-1]


def _offset(x: np.ndarray) -> np.ndarray:
    """Begins one element after an aligned address."""
    room = np.empty(x.size + 1, x.dtype)
    room[1:] = x.ravel()
    return room[1:].reshape(x.shape)


def _misaligned(x: np.ndarray) -> np.ndarray:
    """Begins one byte after an aligned address."""
    room = np.zeros(x.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(x.tobytes(), np.uint8)
    return room[1:].view(x.dtype).reshape(x.shape)


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _swapped(x: np.ndarray) -> np.ndarray:
    """Axes in Fortran's order."""
    return np.array(x, order="F")


LAYOUTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda x: x,
    "strided": _strided,
    "reversed": _reversed,
    "offset": _offset,
    "fortran": _swapped,
    "readonly": _read_only,
    "misaligned": _misaligned,
}


def arrange(x: np.ndarray, layout: str) -> np.ndarray:
    """x in a layout; where the layout makes no sense (0-d, empty, objects by address), a read-only copy."""
    if layout == "dense":
        return x
    if x.ndim == 0 or x.size == 0 or (x.dtype == object and layout == "misaligned"):
        layout = "readonly"
    return LAYOUTS[layout](x)

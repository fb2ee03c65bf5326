"""How values go between a client and its workers: as bytes, which Ray passes on as they are, but for large arrays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

INLINE_BYTES = 100_000
"""Larger arrays go through the object store, where nobody copies them; as Ray does with results."""

_NUMPYS_OWN = 1
"""`isbuiltin` of a dtype of which `str` says all."""


def pack(value: Any) -> Any:
    """Returns the value as bytes; a large array as it is. It must consist of what pickle knows.

    An array of numbers is written as three plain values: pickle takes ten times as long for a small one.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        if value.nbytes > INLINE_BYTES:
            return value
        if value.dtype.isbuiltin == _NUMPYS_OWN:
            return pickle.dumps((value.dtype.str, value.shape, value.tobytes()), pickle.HIGHEST_PROTOCOL)
    return pickle.dumps((None, value), pickle.HIGHEST_PROTOCOL)


def unpack(packed: Any) -> Any:
    """Returns what `pack` was given; arrays are read-only."""
    if isinstance(packed, np.ndarray):
        return packed
    dtype, *rest = pickle.loads(packed)
    return rest[0] if dtype is None else np.ndarray(rest[0], dtype, rest[1])

"""Rounding to a dtype."""

from __future__ import annotations

import numpy as np


def round_to(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x rounded once to a dtype, to nearest and ties to even; integers and others are taken as they are."""
    if x.dtype == dtype or dtype.hasobject:
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype)

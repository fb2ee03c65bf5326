"""Arrays in other dtypes, where nothing is lost."""

from __future__ import annotations

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidTypeError

REAL_KINDS = "biufV"
"""Kinds of NumPy dtypes of real numbers; V is that of ml_dtypes."""


def cast_exactly(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Returns the array in a dtype: floating dtypes round, others must hold each value;
    InvalidTypeError where they do not.

    TensorFlow casts as NumPy does, and wraps, cuts off or takes for true what the dtype does not hold.
    """
    if array.dtype == dtype.numpy:
        return array
    if array.dtype.kind not in (REAL_KINDS if not dtype.is_complex else REAL_KINDS + "c"):
        raise InvalidTypeError(f"value of dtype {array.dtype} given; it must be {dtype.name}")
    if dtype.is_floating or dtype.is_complex or np.can_cast(array.dtype, dtype.numpy):
        with np.errstate(over="ignore"):
            return array.astype(dtype.numpy)
    with np.errstate(invalid="ignore"):
        found = array.astype(dtype.numpy)
    lost = array[found != array]
    if lost.size:
        raise InvalidTypeError(
            f"value {lost.flat[0]} of dtype {array.dtype} given; {dtype.name} does not hold it: give another dtype or, "
            f"if that is meant, value.astype({dtype.name!r})"
        )
    return found

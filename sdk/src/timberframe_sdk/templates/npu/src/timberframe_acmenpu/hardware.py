"""The numbers that describe the NPU: change them to those of yours."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES = ("float16", "bfloat16", "float32", "int32")  # what tensors hold
MEMORY = 64 << 20  # bytes
ALIGNMENT = 64  # of tensors, in bytes
LANES = 16  # elements that the matrix unit takes at once


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the dtype that the units compute in: float32 for floats of 16 bits, others as they are."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype

"""Floating-point formats, and units in the last place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

HALVES = ("float16", "bfloat16")

WIDER: Mapping[np.dtype[Any], type] = {
    np.dtype(np.float16): np.float64,
    np.dtype(ml_dtypes.bfloat16): np.float64,
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
}
"""What an array is converted to before a reference sees it, where the result is to be exact but for one rounding."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: precision in bits, least exponent of a normal number, largest finite value."""

    name: str
    precision: int
    least_exponent: int
    largest: float

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number."""
        return 2.0**-self.precision

    @property
    def smallest(self) -> float:
        """The smallest subnormal number."""
        return float(np.ldexp(1.0, self.least_exponent - self.precision + 1))

    @property
    def smallest_normal(self) -> float:
        """The smallest number of full precision."""
        return float(np.ldexp(1.0, self.least_exponent))


FORMATS = {
    "float16": Format("float16", 11, -14, 65504.0),
    "bfloat16": Format("bfloat16", 8, -126, (2 - 2.0**-7) * 2.0**127),
    "float32": Format("float32", 24, -126, float(np.finfo(np.float32).max)),
    "float64": Format("float64", 53, -1022, float(np.finfo(np.float64).max)),
}
FORMATS["complex64"] = FORMATS["float32"]
FORMATS["complex128"] = FORMATS["float64"]


def computing_format(dtype: np.dtype) -> Format:
    """Returns the format in which kernels compute for this output: float32 for the half-width ones."""
    return FORMATS["float32" if dtype.name in HALVES else dtype.name]


def ulp(x: np.ndarray, form: Format) -> np.ndarray:
    """Returns the unit in the last place at |x|, by Muller's definition, as float64; that of the
    largest number beyond it.

    J.-M. Muller, On the definition of ulp(x), INRIA RR-5504 (2005).
    """
    magnitude = np.minimum(np.abs(np.where(np.isfinite(x), x, form.largest)), form.largest)
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, form.least_exponent, np.maximum(exponent - 1, form.least_exponent))
    step: np.ndarray = np.ldexp(1.0, exponent - (form.precision - 1))
    return step


def widen(array: np.ndarray) -> np.ndarray:
    """float64 or complex128 for narrower floats, the array itself for everything else."""
    wider = WIDER.get(array.dtype)
    return array if wider is None else array.astype(wider)

"""Units in the last place, and rounding to a dtype."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
        return float(np.ldexp(1.0, self.least_exponent))


FORMATS = {
    "float16": Format("float16", 11, -14, 65504.0),
    "bfloat16": Format("bfloat16", 8, -126, (2 - 2.0**-7) * 2.0**127),
    "float32": Format("float32", 24, -126, float(np.finfo(np.float32).max)),
    "float64": Format("float64", 53, -1022, float(np.finfo(np.float64).max)),
}
FORMATS["complex64"] = FORMATS["float32"]
FORMATS["complex128"] = FORMATS["float64"]


def ulp(x: np.ndarray, form: Format) -> np.ndarray:
    """The unit in the last place at |x|, by Muller's definition, as float64; that of the largest number beyond it.

    J.-M. Muller, On the definition of ulp(x), INRIA RR-5504 (2005).
    """
    magnitude = np.minimum(np.abs(np.where(np.isfinite(x), x, form.largest)), form.largest)
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, form.least_exponent, np.maximum(exponent - 1, form.least_exponent))
    step: np.ndarray = np.ldexp(1.0, exponent - (form.precision - 1))
    return step


def round_to(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x rounded once to a dtype, to nearest and ties to even; integers and others are taken as they are."""
    if x.dtype == dtype or dtype.hasobject:
        return x
    with np.errstate(all="ignore"):
        return x.astype(dtype)

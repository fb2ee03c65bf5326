"""NumPy versions of the functions that NumPy lacks, for references: accurate rather than fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np


def _by_element(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """Applies a function of a Python float to every element; the result has the input's dtype."""

    def apply(x: np.ndarray) -> np.ndarray:
        values = [function(float(v)) for v in np.asarray(x, np.float64).flat]
        return np.array(values, np.float64).reshape(np.shape(x)).astype(x.dtype)

    return apply


def _zeta_less_one(k: int) -> float:
    """Returns the sum of n^-k from n = 2 on, its tail by the Euler-Maclaurin formula (DLMF 25.2.8)."""
    n = 100.0
    tail = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12 - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720
    return math.fsum(j ** -float(k) for j in range(2, 100)) + tail


_EULER_GAMMA = 0.57721566490153286061
_LGAMMA_SERIES = [(-1) ** k * _zeta_less_one(k) / k for k in range(2, 32)]
_STIRLING = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156))
_HALF_LOG_2_PI = Decimal("0.91893853320467274178032973640561763986139747363778")


def _lgamma_near_2(z: np.ndarray) -> np.ndarray:
    """log(gamma(2 + z)) for |z| <= 1/2 by its Taylor series (DLMF 5.7.3), which keeps the digits at the root."""
    series = np.zeros_like(z)
    for c in reversed(_LGAMMA_SERIES):
        series = (series + c) * z
    return np.asarray(z * (1 - _EULER_GAMMA) + series * z)


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    """By Stirling's series from 10 on (DLMF 5.11.1), elsewhere from the neighbourhood of 2 by the recurrence."""
    large = np.where(x >= 10, x, 10)
    tail = np.zeros_like(x)
    for numerator, denominator in reversed(_STIRLING):
        tail = tail / (large * large) + numerator / denominator
    stirling = (large - 0.5) * (np.log(large) - 1) - 0.5 + 0.5 * math.log(2 * math.pi) + tail / large
    small = np.where(x >= 10, 2, x)
    steps = np.maximum(np.rint(small) - 2, 0)
    product = np.ones_like(x)
    for k in range(8):
        product = product * np.where(k < steps, small - steps + k, 1)
    z = np.where(small < 0.5, small, np.where(small < 1.5, small - 1, small - 2 - steps))
    below = np.where(small < 0.5, np.log(small) + np.log1p(small), np.where(small < 1.5, np.log1p(z), 0))
    near = _lgamma_near_2(z) + np.log(product) - below
    return np.asarray(np.where(x >= 10, stirling, near))


def _lgamma_at(x: float) -> float:
    """log |gamma(x)| of any x but poles, with 50 digits: by Stirling's series from 200 on, below by the recurrence."""
    with localcontext() as context:
        context.prec = 50
        z, product = Decimal(x), Decimal(1)
        while z < 200:
            product, z = product * z, z + 1
        tail = Decimal(0)
        for numerator, denominator in reversed(_STIRLING):
            tail = tail / (z * z) + Decimal(numerator) / denominator
        stirling = (z - Decimal("0.5")) * z.ln() - z + _HALF_LOG_2_PI + tail / z
        return float(stirling - abs(product).ln())


def lgamma(x: np.ndarray) -> np.ndarray:
    """log |gamma(x)|; infinite at the poles.

    Negative x by reflection (DLMF 5.5.3); about the roots, where its terms cancel, with more digits.
    """
    wide = np.asarray(x, np.float64)
    a = np.abs(wide)
    with np.errstate(all="ignore"):
        positive = _lgamma_positive(a)
        sine = np.abs(np.sin(math.pi * (wide - np.rint(wide))))
        terms = np.array(np.broadcast_arrays(math.log(math.pi), -np.log(a), -np.log(sine), -positive))
        reflected, size = terms.sum(axis=0), np.abs(terms).sum(axis=0)
        pole = np.isinf(wide) | (wide <= 0) & (wide == np.floor(wide))
        tiny = a < 1e-30  # where the sine may be too small to be precise, and both signs have the same logarithm
        result = np.where(pole, np.inf, np.where((wide < 0) & ~tiny, reflected, positive))
        cancelled = (wide < 0) & ~pole & (np.abs(reflected) < 0.1 * size)
    result[cancelled] = [_lgamma_at(v) for v in wide[cancelled].tolist()]
    return result.astype(x.dtype)


def _digamma(x: float) -> float:
    """By the recurrence up to 10 and the asymptotic series there (DLMF 5.11.2); below 0 by reflection (DLMF 5.5.4)."""
    if math.isnan(x) or x == math.inf:
        return x
    if x <= 0:
        if math.isinf(x) or x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    z = 1 / (x * x)
    bernoulli = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
    series = 0.0
    for b in reversed(bernoulli):
        series = (series + b) * z
    return math.log(x) - 0.5 / x - series + shift


def _inverse_erf(a: float, c: float) -> float:
    """y with erf(y) = a and erfc(y) = c, where a + c = 1 and the smaller of the two is exact.

    By Newton's iteration, on log(erfc(y)) from 1/2 on, from Winitzki's formula (A handy approximation for the error
    function and its inverse, 2008).
    """
    log = math.log1p(-a * a) if a < 0.5 else math.log(c * (2 - c))
    k = 2 / (0.147 * math.pi) + log / 2
    root = math.sqrt(k * k - log / 0.147)
    y = math.sqrt(-log / 0.147 / (root + k) if k > 0 else root - k)
    for _ in range(4):
        slope = 2 / math.sqrt(math.pi) * math.exp(-y * y)
        if a < 0.5:
            y -= (math.erf(y) - a) / slope
        else:
            y += math.log1p((math.erfc(y) - c) / c) * math.erfc(y) / slope
    return y


def _erfinv(x: float) -> float:
    a = abs(x)
    if not a < 1:
        return math.copysign(math.inf, x) if a == 1 else math.nan
    return math.copysign(_inverse_erf(a, 1 - a), x)


def _ndtri(p: float) -> float:
    """-sqrt(2) times the inverse of erfc at 2p."""
    if not 0 < p < 1:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    q = min(p, 1 - p)
    return math.copysign(math.sqrt(2) * _inverse_erf(1 - 2 * q, 2 * q), p - 0.5)


erf = _by_element(math.erf)
erfc = _by_element(math.erfc)
digamma = _by_element(_digamma)
erfinv = _by_element(_erfinv)
ndtri = _by_element(_ndtri)

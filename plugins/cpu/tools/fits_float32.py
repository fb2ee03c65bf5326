"""The polynomials of the float32 kernels: see fit_polynomials."""

from __future__ import annotations

from fit_polynomials import Fit, quotient, rounded, value
from fits import common_fits
from mpmath import mp, mpf

TANH_RANGE = mpf("9.02") ** 2


def tanh_ratio(x: mpf) -> mpf:
    """tanh of half the root of x, divided by that root."""
    return mp.tanh(mp.sqrt(x) / 2) / mp.sqrt(x)


def tanh_weight(x: mpf) -> mpf:
    """Returns what a relative error of tanh(a / 2), a the root of x, does to tanh(a): next to
    nothing where both are near 1.
    """
    return max(1 / mp.cosh(mp.sqrt(x)), mpf("1e-3"))


_, _bottom = quotient(lambda x: 2 * tanh_ratio(x), tanh_weight, mpf("1e-12"), TANH_RANGE, 2, 3)
TANH_DENOMINATOR = [2 * rounded(c, 24) for c in _bottom]

FITS = [
    *common_fits("f32", {"exp": 4, "sinh": 2, "log": 6, "sin": 2, "cos": 2, "asin": 4, "atan": 3}),
    Fit(
        "erf_poly_f32",
        "-log(erfc(x)) / x",
        7,
        mpf(0),
        mpf(4),
        lambda x: -mp.log(mp.erfc(x)) / x,
        lambda x: x * mp.erfc(x) / mp.erf(x),
    ),
    Fit(
        "tanh_numerator_f32",
        "(tanh(sqrt(x) / 2) / sqrt(x) * (2 + x * tf_tanh_denominator_f32(x)) - 1) / x",
        1,
        mpf(0),
        TANH_RANGE,
        lambda x: (tanh_ratio(x) * value(TANH_DENOMINATOR, x) - 1) / x,
        lambda x: x * tanh_weight(x) / (tanh_ratio(x) * value(TANH_DENOMINATOR, x)),
    ),
    Fit(
        "tanh_denominator_f32",
        "(denominator - 2) / x of the best quotient, of degrees 2 and 3, for tanh(sqrt(x) / 2) / sqrt(x),",
        2,
        mpf(0),
        TANH_RANGE,
        lambda x: value(TANH_DENOMINATOR[1:], x),
        lambda x: 1 / value(TANH_DENOMINATOR[1:], x),
    ),
]

"""The polynomials of the float32 kernels: see fit_polynomials."""

from __future__ import annotations

from fit_polynomials import Fit, quotient, rounded, value
from mpmath import mp, mpf

HALF_LN2 = mp.log(2) / 2 * mpf("1.001")  # the argument left by the reduction, with room for its rounding
QUARTER_PI = mp.pi / 4 * mpf("1.001")
ROOT_HALF = mp.sqrt(mpf(1) / 2)


def atanh_series(x: mpf) -> mpf:
    """log(1 + x) less its first two terms, divided by x cubed."""
    return (mp.log1p(x) - x + x * x / 2) / x**3


TANH_RANGE = mpf("9.02") ** 2


def tanh_ratio(x: mpf) -> mpf:
    """tanh of half the root of x, divided by that root."""
    return mp.tanh(mp.sqrt(x) / 2) / mp.sqrt(x)


def tanh_weight(x: mpf) -> mpf:
    """What a relative error of tanh(a / 2), a the root of x, does to tanh(a): next to nothing where both are near 1."""
    return max(1 / mp.cosh(mp.sqrt(x)), mpf("1e-3"))


_, _bottom = quotient(lambda x: 2 * tanh_ratio(x), tanh_weight, mpf("1e-12"), TANH_RANGE, 2, 3)
TANH_DENOMINATOR = [2 * rounded(c, 24) for c in _bottom]


FITS = [
    Fit(
        "exp_poly_f32",
        "(exp(x) - 1 - x) / x^2",
        4,
        -HALF_LN2,
        HALF_LN2,
        lambda x: (mp.expm1(x) - x) / x**2,
        lambda x: x * x / mp.expm1(x),
    ),
    Fit(
        "sinh_poly_f32",
        "(sinh(sqrt(x)) / sqrt(x) - 1) / x",
        2,
        mpf(0),
        mpf("1.002"),
        lambda x: (mp.sinh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.sinh(mp.sqrt(x)),
    ),
    Fit(
        "log_poly_f32",
        "(log(1 + x) - x + x^2 / 2) / x^3",
        6,
        ROOT_HALF - 1 - mpf("1e-6"),
        2 * ROOT_HALF - 1 + mpf("1e-6"),
        atanh_series,
        lambda x: x**3 / mp.log1p(x),
    ),
    Fit(
        "sin_poly_f32",
        "(sin(sqrt(x)) / sqrt(x) - 1) / x",
        2,
        mpf(0),
        QUARTER_PI**2,
        lambda x: (mp.sin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.sin(mp.sqrt(x)),
    ),
    Fit(
        "cos_poly_f32",
        "(cos(sqrt(x)) - 1 + x / 2) / x^2",
        2,
        mpf(0),
        QUARTER_PI**2,
        lambda x: (mp.cos(mp.sqrt(x)) - 1 + x / 2) / x**2,
        lambda x: x**2 / mp.cos(mp.sqrt(x)),
    ),
    Fit(
        "asin_poly_f32",
        "(asin(sqrt(x)) / sqrt(x) - 1) / x",
        4,
        mpf(0),
        mpf("0.25"),
        lambda x: (mp.asin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.asin(mp.sqrt(x)),
    ),
    Fit(
        "atan_poly_f32",
        "(atan(sqrt(x)) / sqrt(x) - 1) / x",
        3,
        mpf(0),
        mp.tan(mp.pi / 8) ** 2 * mpf("1.001"),
        lambda x: (mp.atan(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.atan(mp.sqrt(x)),
    ),
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

"""The polynomials that the kernels of both precisions have, of other degrees: see fit_polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fit_polynomials import Fit
from mpmath import mp, mpf

HALF_LN2 = mp.log(2) / 2 * mpf("1.001")  # the argument left by the reduction, with room for its rounding
QUARTER_PI = mp.pi / 4 * mpf("1.001")
ROOT_HALF = mp.sqrt(mpf(1) / 2)


def atanh_series(x: mpf) -> mpf:
    """log(1 + x) less its first two terms, divided by x cubed."""
    return (mp.log1p(x) - x + x * x / 2) / x**3


FITS = [
    Fit(
        "exp",
        "(exp(x) - 1 - x) / x^2",
        0,
        -HALF_LN2,
        HALF_LN2,
        lambda x: (mp.expm1(x) - x) / x**2,
        lambda x: x * x / mp.expm1(x),
    ),
    Fit(
        "sinh",
        "(sinh(sqrt(x)) / sqrt(x) - 1) / x",
        0,
        mpf(0),
        mpf("1.002"),
        lambda x: (mp.sinh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.sinh(mp.sqrt(x)),
    ),
    Fit(
        "log",
        "(log(1 + x) - x + x^2 / 2) / x^3",
        0,
        ROOT_HALF - 1 - mpf("1e-6"),
        2 * ROOT_HALF - 1 + mpf("1e-6"),
        atanh_series,
        lambda x: x**3 / mp.log1p(x),
    ),
    Fit(
        "sin",
        "(sin(sqrt(x)) / sqrt(x) - 1) / x",
        0,
        mpf(0),
        QUARTER_PI**2,
        lambda x: (mp.sin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.sin(mp.sqrt(x)),
    ),
    Fit(
        "cos",
        "(cos(sqrt(x)) - 1 + x / 2) / x^2",
        0,
        mpf(0),
        QUARTER_PI**2,
        lambda x: (mp.cos(mp.sqrt(x)) - 1 + x / 2) / x**2,
        lambda x: x**2 / mp.cos(mp.sqrt(x)),
    ),
    Fit(
        "asin",
        "(asin(sqrt(x)) / sqrt(x) - 1) / x",
        0,
        mpf(0),
        mpf("0.25"),
        lambda x: (mp.asin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.asin(mp.sqrt(x)),
    ),
    Fit(
        "atan",
        "(atan(sqrt(x)) / sqrt(x) - 1) / x",
        0,
        mpf(0),
        mp.tan(mp.pi / 8) ** 2 * mpf("1.001"),
        lambda x: (mp.atan(mp.sqrt(x)) / mp.sqrt(x) - 1) / x,
        lambda x: x * mp.sqrt(x) / mp.atan(mp.sqrt(x)),
    ),
]
"""By the name of the function; each precision has degrees of its own."""


def common_fits(suffix: str, degrees: Mapping[str, int]) -> list[Fit]:
    """Returns the fits of one precision, in their order in the header. degrees: of each function's polynomial."""
    return [replace(fit, name=f"{fit.name}_poly_{suffix}", degree=degrees[fit.name]) for fit in FITS]

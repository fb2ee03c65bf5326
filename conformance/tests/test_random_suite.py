"""The suite of random streams on a device whose numbers come from NumPy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from timberframe_conformance.suites.distributions import DISTRIBUTIONS, Classes, Moments
from timberframe_ops.random.gamma_gradient import gamma_sample_slope


@pytest.mark.slow
def test_a_device_in_numpy_draws_the_right_streams(command: Any) -> None:
    ops = "RandomUniform,TruncatedNormal,Multinomial,StatelessRandomUniformFullIntV2"
    status, output, _ = command("run", "--device=reference", f"--op={ops}", "--suite=random", "--jobs=0")
    assert status == 0, output


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (np.linspace(0, 1.1, 40_000), "mean"),
        (np.tile([0.25, 0.75], 20_000), "variance"),
        (np.linspace(0, 1, 40_000), "covariance of neighbours"),
    ],
)
def test_numbers_that_are_not_uniform_are_noticed(drawn: np.ndarray, message: str) -> None:
    uniform = next(d for d in DISTRIBUTIONS if isinstance(d, Moments) and d.name == "float32")
    assert message in uniform.wrong(drawn)


@pytest.mark.parametrize(
    ("drawn", "message"),
    [(np.arange(40_000) % 9, "chi-square"), (np.arange(40_000) % 11, "class 10 was drawn; there are 10 classes")],
)
def test_classes_of_a_wrong_frequency_are_noticed(drawn: np.ndarray, message: str) -> None:
    ten = next(d for d in DISTRIBUTIONS if isinstance(d, Classes) and d.name == "10")
    assert message in ten.wrong(drawn)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("part", [0.3, 1.0, 1.7])
def test_the_slope_of_gamma_numbers_is_the_derivative_at_an_equal_probability(alpha: float, part: float) -> None:
    """Against differences with 40 digits; the slope's own rounding errors are about 100 times 1e-16."""
    with mpmath.workdps(40):
        x, a = mpmath.mpf(alpha * part), mpmath.mpf(alpha)
        density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
        true = -mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a) / density
    assert float(gamma_sample_slope(alpha, alpha * part)) == pytest.approx(float(true), rel=1e-13)


def test_a_class_of_probability_zero_is_noticed() -> None:
    classes = next(d for d in DISTRIBUTIONS if isinstance(d, Classes) and d.op == "Multinomial")
    assert "class 3 was drawn; it has probability 0" in classes.wrong(np.full(100, 3))

from __future__ import annotations

import math

import numpy as np
import pytest

from timberframe_core.ops.definition import registry
from timberframe_ops.math import special_functions as special


def _reference(op: str, *values: complex, dtype: str = "float64") -> np.ndarray:
    function = registry.get(op).reference
    assert function is not None
    with np.errstate(all="ignore"):
        return np.asarray(function({"alpha": 0.2}, np.array(values, dtype)))


def test_round_reference_goes_to_even() -> None:
    np.testing.assert_array_equal(_reference("Round", 0.5, 1.5, -2.5), [0, 2, -2])


def test_relu_reference_keeps_nan() -> None:
    assert np.isnan(_reference("Relu", math.nan))


def test_softsign_reference_of_infinity_is_nan() -> None:
    assert np.isnan(_reference("Softsign", math.inf))


def test_sigmoid_reference_keeps_the_digits_of_a_tiny_result() -> None:
    np.testing.assert_allclose(_reference("Sigmoid", -700), [math.exp(-700)], rtol=1e-15)


def test_lgamma_reference_is_infinite_at_poles() -> None:
    np.testing.assert_array_equal(special.lgamma(np.array([0.0, -1.0, -math.inf])), [math.inf] * 3)


@pytest.mark.parametrize(
    ("x", "y"),  # by mpmath with 60 digits
    [
        (-2.4570247, 5.792758455100296e-08),
        (-2.7476826, -8.945260991498233e-08),
        (-3.1435808, 6.875295554996998e-07),
        (-2.5, -0.056243716497674054),
        (-15.000000000000764, 0.0011552549067268103),
    ],
)
def test_lgamma_reference_keeps_its_digits_at_the_roots(x: float, y: float) -> None:
    np.testing.assert_allclose(special.lgamma(np.array([x])), [y], rtol=2e-16)


def test_digamma_reference_at_known_points() -> None:
    gamma = 0.57721566490153286
    expected = [-gamma, 1 - gamma, -gamma - 2 * math.log(2), 2 - gamma - 2 * math.log(2)]
    np.testing.assert_allclose(special.digamma(np.array([1.0, 2.0, 0.5, -0.5])), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("p", [1e-300, 1e-20, 0.01, 0.3, 0.5, 0.75, 1 - 1e-10])
def test_ndtri_reference_inverts_the_normal_distribution(p: float) -> None:
    [x] = special.ndtri(np.array([p]))
    assert 0.5 * math.erfc(-x / math.sqrt(2)) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.3, 0.499, 0.501, 0.9, 1 - 1e-15])
def test_erfinv_reference_inverts_erf(x: float) -> None:
    [y] = special.erfinv(np.array([x]))
    assert math.erf(y) == pytest.approx(x, rel=1e-14)


def test_complex_log1p_reference_keeps_the_digits_of_a_tiny_argument() -> None:
    [y] = _reference("Log1p", 1e-20 + 1e-18j, dtype="complex128")
    assert y == pytest.approx(1e-20 + 1e-18j, rel=1e-15)

"""Derivatives where formulas divide by zero or multiply it by infinity: those of mathematics, not NaN or 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

tf: Any = timberframe  # its functions take anything that converts to a tensor


def gradients_at(build: Callable[..., Any], *values: Any) -> list[np.ndarray]:
    """Returns the gradients of the sum of what `build` makes of float64 tensors of these values."""
    with tf.Graph().as_default(), tf.Session() as session:
        xs = [tf.placeholder(tf.float64, np.shape(v)) for v in values]
        found: list[np.ndarray] = session.run(tf.gradients(build(*xs), xs), dict(zip(xs, values, strict=True)))
        return found


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[0, 2, 3], [2, 3, 0], [2, 0, 0, 3], [0], [1, 0, 4, 0, 2, 5], [2, 3, 4]])
def test_running_product_with_zeros(x: list[float], exclusive: bool, reverse: bool) -> None:
    weights = np.arange(1.0, len(x) + 1)

    def total(values: np.ndarray) -> float:
        lines = values[::-1] if reverse else values
        products = np.cumprod(lines)
        if exclusive:
            products = np.concatenate([[1.0], products[:-1]])
        return float((products[::-1] if reverse else products) @ weights)

    wanted = []  # a product is linear in each of its factors, so that its difference over 1 is its derivative
    for i in range(len(x)):
        one, none = np.array(x, float), np.array(x, float)
        one[i], none[i] = 1, 0
        wanted.append(total(one) - total(none))
    (got,) = gradients_at(lambda t: tf.cumprod(t, exclusive=exclusive, reverse=reverse) * weights, x)
    np.testing.assert_allclose(got, wanted)


@pytest.mark.parametrize("x", [[0, 2, 3], [0, 0, 3], [2, 3, 4]])
def test_second_derivative_of_a_product_with_zeros(x: list[float]) -> None:
    (got,) = gradients_at(lambda t: tf.gradients(tf.reduce_prod(t), t)[0], x)
    a, b, c = x
    np.testing.assert_allclose(got, [b + c, a + c, a + b])


def test_products_with_functions_of_y_are_linear_in_x_also_where_it_is_zero() -> None:
    for function, slope in ((tf.math.xlogy, np.log(2.0)), (tf.math.xdivy, 0.5), (tf.math.xlog1py, np.log1p(2.0))):
        gx, gy = gradients_at(function, [0.0, 3.0], [2.0, 2.0])
        np.testing.assert_allclose(gx, [slope] * 2)
        assert gy[0] == 0


def test_mixed_second_derivatives_of_products_with_functions_of_y() -> None:
    for function, mixed in ((tf.math.xlogy, 0.5), (tf.math.xdivy, -0.25), (tf.math.xlog1py, 1 / 3)):
        _, by_y = gradients_at(lambda x, y, f=function: tf.gradients(f(x, y), x)[0] + 0 * x, [0.0, 3.0], [2.0, 2.0])
        by_x, _ = gradients_at(lambda x, y, f=function: tf.gradients(f(x, y), y)[0] + 0 * y, [0.0, 3.0], [2.0, 2.0])
        np.testing.assert_allclose([by_y, by_x], [[mixed] * 2] * 2)


def test_second_derivative_of_a_quotient_by_the_largest_number_is_zero() -> None:
    _, by_y = gradients_at(lambda x, y: tf.gradients(tf.math.xdivy(x, y), y)[0], [2.0], [np.finfo(np.float64).max])
    assert by_y.tolist() == [0]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[0, 0, 3], [0, 3, 0], [0, 0, 0, 2], [2, 0, 4, 0, 5], [2, 3, 4]])
def test_second_derivative_of_a_running_product_with_zeros(x: list[float], exclusive: bool, reverse: bool) -> None:
    def first(t: Any) -> Any:
        return tf.gradients(tf.cumprod(t, exclusive=exclusive, reverse=reverse) * np.arange(1.0, len(x) + 1), t)[0]

    np.testing.assert_allclose(gradients_at(first, x)[0], slopes_of(first, x), atol=1e-6)


def test_second_derivative_of_a_running_product_that_overflows_is_infinite() -> None:
    lines = [[2.0, 3.0, -1e308, 100.0], [1e200, 1e200, 0.0, 2.0]]  # with and without a zero
    (got,) = gradients_at(lambda t: tf.gradients(tf.cumprod(t, axis=1), t)[0], lines)
    assert got[:, 2].tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("x", [[0, 0, 3, 0, 5], [0, 4, 0, 2, 3], [0, 0, 0, 0, 0]])
def test_second_derivative_of_products_of_segments_with_zeros(x: list[float]) -> None:
    def ordered(t: Any) -> Any:
        return tf.gradients(tf.segment_prod(t, [0, 0, 0, 1, 1]), t)[0]

    def unordered(t: Any) -> Any:
        return tf.gradients(tf.unsorted_segment_prod(t, [1, 0, 1, 0, 1], 2), t)[0]

    for first in (ordered, unordered):
        np.testing.assert_allclose(gradients_at(first, x)[0], slopes_of(first, x), atol=1e-6)


def slopes_of(build: Callable[..., Any], x: list[float], step: float = 2.0**-20) -> np.ndarray:
    """Returns the derivatives of the sum of what `build` makes of x by each element, by central differences."""
    with tf.Graph().as_default(), tf.Session() as session:
        t = tf.placeholder(tf.float64, np.shape(x))
        total = tf.reduce_sum(build(t))
        ends = [[session.run(total, {t: np.array(x) + s * step * v}) for s in (1, -1)] for v in np.eye(len(x))]
    return np.array([(a - b) / (2 * step) for a, b in ends])


@pytest.mark.parametrize("function", [
    lambda x: tf.math.segment_prod(x, [0, 0, 0, 1]),
    lambda x: tf.math.unsorted_segment_prod(x, [2, 2, 2, 0], 3),
])  # fmt: skip
def test_second_derivatives_of_products_of_segments_with_two_zeros(function: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([0.0, 0.0, 3.0, 5.0])
        (first,) = tf.gradients(function(x), x)
        (second,) = tf.gradients(first[0], x)
        assert session.run([first, second])[0].tolist() == [0, 0, 0, 1]
        assert session.run(second).tolist() == [0, 3, 0, 0]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_evenly_spaced_numbers_move_with_their_ends(count: int) -> None:
    weights = np.arange(1.0, count + 1)
    share = np.arange(count) / max(count - 1, 1)
    by_start, by_stop = gradients_at(lambda a, b: tf.linspace(a, b, count) * weights, 1.5, -2.0)
    np.testing.assert_allclose([by_start, by_stop], [weights @ (1 - share), weights @ share])


@pytest.mark.parametrize("function", [tf.acosh, tf.asinh, tf.atan, tf.atanh])
def test_second_derivatives_at_the_largest_number_are_zero(function: Callable[..., Any]) -> None:
    largest = float(np.finfo(np.float64).max)
    (got,) = gradients_at(lambda t: tf.gradients(function(t), t)[0], [largest, largest / 4])
    np.testing.assert_array_equal(got, [0, 0])


def test_slopes_of_inverse_hyperbolic_functions_have_all_digits_of_large_numbers() -> None:
    for function in (tf.acosh, tf.asinh):
        (got,) = gradients_at(function, [1e20, 1e300])
        np.testing.assert_allclose(got, [1e-20, 1e-300], rtol=1e-15)


def test_second_derivatives_of_inverse_hyperbolic_functions() -> None:
    x = np.array([1.5, 30.0, 1e6, 1e9])
    for function, side in ((tf.acosh, -1), (tf.asinh, 1)):
        (got,) = gradients_at(lambda t, f=function: tf.gradients(f(t), t)[0], [*x, np.inf])
        np.testing.assert_allclose(got, [*(-x * (x * x + side) ** -1.5), 0], rtol=1e-14)


def _bessel_derivative(x: float, order: int) -> float:
    """Returns a derivative of the modified Bessel function of the first kind of order 1, by its series."""
    terms = [(2 * k + 1, math.factorial(k) * math.factorial(k + 1)) for k in range(30)]
    return sum(math.perm(n, order) * (x / 2) ** (n - order) / 2**order / size for n, size in terms if n >= order)


@pytest.mark.parametrize("x", [1e-300, 1e-8, 0.5, 0.99, 1.01, 4.0])
def test_second_derivatives_of_bessel_functions_near_zero(x: float) -> None:
    def second(function: Callable[..., Any]) -> np.ndarray:
        (found,) = gradients_at(lambda t: tf.gradients(function(t), t)[0], [x, -x])
        return found

    value, slope, bend = (_bessel_derivative(x, order) for order in range(3))
    scaled = math.exp(-x) * (bend - 2 * slope + value)
    np.testing.assert_allclose(second(tf.math.bessel_i1), [bend, -bend], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(second(tf.math.bessel_i1e), [scaled, -scaled], rtol=1e-13, atol=1e-15)


def test_slope_of_the_incomplete_gamma_function_is_nan_where_it_has_no_value() -> None:
    for function in (tf.igamma, tf.igammac):
        _, by_x = gradients_at(function, [1.0, 2.0, 1.0], [-3.0, -3.0, 0.0])
        np.testing.assert_array_equal(np.isnan(by_x), [True, True, False])


def test_second_derivative_of_the_zeta_function_of_the_largest_number_is_zero() -> None:
    largest = np.finfo(np.float64).max
    (got,) = gradients_at(lambda q: tf.gradients(tf.math.zeta(tf.constant([largest], tf.float64), q), q)[0], [3.0])
    np.testing.assert_array_equal(got, [0.0])

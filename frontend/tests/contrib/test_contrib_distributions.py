"""`tf.contrib.distributions`: normal distributions of vectors, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")
ds = tf.contrib.distributions
LOC = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
SCALE = np.array([[0.5, 1.5, 2.0], [1.0, 0.25, 3.0]])
TRIL = np.array([[2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-1.0, 0.3, 0.7]])


def run(value: Any) -> Any:
    with tf.Session() as session:
        return session.run(value)


def normals(covariances: Any) -> list[Any]:
    return [stats.multivariate_normal(m, c) for m, c in zip(LOC, covariances, strict=True)]


def test_log_probabilities_and_entropies_of_independent_numbers_are_those_of_scipy() -> None:
    made = ds.MultivariateNormalDiag(LOC, SCALE)
    expected = normals([np.diag(s**2) for s in SCALE])
    x = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    density, entropy, covariance = run([made.log_prob(x), made.entropy(), made.covariance()])
    np.testing.assert_allclose(density, [e.logpdf(v) for e, v in zip(expected, x, strict=True)], rtol=1e-12)
    np.testing.assert_allclose(entropy, [e.entropy() for e in expected], rtol=1e-12)
    np.testing.assert_allclose(covariance, [np.diag(s**2) for s in SCALE])
    assert [made.batch_shape.as_list(), made.event_shape.as_list()] == [[2], [3]]
    np.testing.assert_allclose(run([made.mean(), made.stddev(), made.variance()]), [LOC, SCALE, SCALE**2])


def test_log_probabilities_of_a_triangular_scale_are_those_of_its_covariance() -> None:
    above = TRIL + np.triu(np.full((3, 3), 9.0), 1)  # which is not read
    made = ds.MultivariateNormalTriL(LOC, above)
    expected = normals([TRIL @ TRIL.T] * 2)
    x = np.array([0.3, -0.7, 2.0])
    density, entropy, covariance = run([made.log_prob(x), made.entropy(), made.covariance()])
    np.testing.assert_allclose(density, [e.logpdf(x) for e in expected], rtol=1e-12)
    np.testing.assert_allclose(entropy, [e.entropy() for e in expected], rtol=1e-12)
    np.testing.assert_allclose(covariance, [TRIL @ TRIL.T] * 2, rtol=1e-12)


@pytest.mark.parametrize("triangular", [False, True])
def test_samples_have_mean_and_covariance_and_gradients(triangular: bool) -> None:
    loc = tf.constant(LOC[0])
    scale = tf.constant(TRIL if triangular else SCALE[0])
    made = ds.MultivariateNormalTriL(loc, scale) if triangular else ds.MultivariateNormalDiag(loc, scale)
    drawn = made.sample(20_000, seed=3)
    values, of_loc = run([drawn, tf.gradients(tf.reduce_mean(drawn), [loc, scale])])
    assert drawn.shape.as_list() == [20_000, 3]
    np.testing.assert_allclose(values.mean(0), LOC[0], atol=0.06)
    expected = TRIL @ TRIL.T if triangular else np.diag(SCALE[0] ** 2)
    np.testing.assert_allclose(np.cov(values.T), expected, atol=0.15)
    np.testing.assert_allclose(of_loc[0], [1 / 3] * 3)


def test_divergences_are_those_of_the_formula() -> None:
    def expected(m: Any, a: Any, n: Any, b: Any) -> float:
        inverse = np.linalg.inv(b)
        logs = np.log(np.linalg.det(b) / np.linalg.det(a))
        return float(0.5 * (np.trace(inverse @ a) + (n - m) @ inverse @ (n - m) - len(m) + logs))

    diagonal, full = ds.MultivariateNormalDiag(LOC[0], SCALE[0]), ds.MultivariateNormalTriL(LOC[1], TRIL)
    other = ds.MultivariateNormalDiag(LOC[1], SCALE[1])
    a, b, c = np.diag(SCALE[0] ** 2), TRIL @ TRIL.T, np.diag(SCALE[1] ** 2)
    found = run([ds.kl_divergence(diagonal, full), ds.kl_divergence(full, diagonal), diagonal.kl_divergence(other)])
    wanted = [expected(LOC[0], a, LOC[1], b), expected(LOC[1], b, LOC[0], a), expected(LOC[0], a, LOC[1], c)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_scales_that_are_given_in_other_ways() -> None:
    one = ds.MultivariateNormalDiag(LOC[0], scale_identity_multiplier=2.0)
    soft = ds.MultivariateNormalDiagWithSoftplusScale(LOC[0], np.array([0.0, 1.0, -1.0]))
    unit, number = ds.MultivariateNormalDiag(loc=[0.0, 0.0]), ds.NormalWithSoftplusScale(0.0, 1.0)
    found = run([one.stddev(), soft.stddev(), unit.stddev(), number.stddev()])
    for value, wanted in zip(found, ([2.0] * 3, np.log1p(np.exp([0, 1, -1])), [1, 1], np.log1p(np.e)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="neither loc nor scale_diag is given"):
        ds.MultivariateNormalDiag()

"""tf.distributions beside SciPy's: probabilities, statistics, samples, divergences, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import timberframe as tf

d = tf.distributions
LOC, SCALE = np.array([-1.0, 0.0, 2.5]), np.array([0.5, 1.0, 3.0])
A, B = np.array([0.7, 2.0, 5.0]), np.array([1.5, 0.9, 3.0])
P = np.array([0.1, 0.5, 0.8])
ROWS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
REAL, POSITIVE, SHARE = (
    np.array([[-3.0], [0.4], [2.0]]),
    np.array([[0.1], [1.0], [4.0]]),
    np.array([[0.1], [0.5], [0.9]]),
)

CONTINUOUS = {
    "Normal": (lambda: d.Normal(LOC, SCALE), stats.norm(LOC, SCALE), REAL),
    "Laplace": (lambda: d.Laplace(LOC, SCALE), stats.laplace(LOC, SCALE), REAL),
    "StudentT": (lambda: d.StudentT(A + 2, LOC, SCALE), stats.t(A + 2, LOC, SCALE), REAL),
    "Uniform": (lambda: d.Uniform(LOC, LOC + SCALE), stats.uniform(LOC, SCALE), REAL),
    "Gamma": (lambda: d.Gamma(A, B), stats.gamma(A, scale=1 / B), POSITIVE),
    "Exponential": (lambda: d.Exponential(B), stats.expon(scale=1 / B), POSITIVE),
    "Beta": (lambda: d.Beta(A, B), stats.beta(A, B), SHARE),
}


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_kinds(session: Any, kind: str) -> None:
    make, right, x = CONTINUOUS[kind]
    made = make()
    with np.errstate(divide="ignore"):
        wanted = {
            "prob": right.pdf(x), "log_prob": right.logpdf(x), "cdf": right.cdf(x),
            "survival_function": right.sf(x), "log_cdf": right.logcdf(x),
        }  # fmt: skip
    for name, value in wanted.items():
        if kind == "Gamma" and "prob" not in name:
            continue  # it needs the incomplete gamma function
        np.testing.assert_allclose(session.run(getattr(made, name)(x)), value, rtol=1e-10, err_msg=name)
    for name, value in (("mean", right.mean()), ("variance", right.var()), ("stddev", right.std())):
        np.testing.assert_allclose(session.run(getattr(made, name)()), value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(session.run(made.entropy()), right.entropy(), rtol=1e-10)
    assert made.batch_shape.as_list() == [3]
    assert made.event_shape.as_list() == []
    drawn = session.run(made.sample(4000, seed=7))
    assert drawn.shape == (4000, 3)
    assert [
        stats.kstest(drawn[:, i], lambda y, i=i: right.cdf(np.tile(y[:, None], 3))[:, i]).pvalue > 1e-3
        for i in range(3)
    ] == [True] * 3


@pytest.mark.parametrize("kind", ["Normal", "Uniform", "Exponential"])
def test_quantiles(session: Any, kind: str) -> None:
    make, right, _ = CONTINUOUS[kind]
    np.testing.assert_allclose(session.run(make().quantile(SHARE)), right.ppf(SHARE), rtol=1e-9)


def test_log_cdf_far_from_the_middle(session: Any) -> None:
    x = np.array([-60.0, -21.0, -19.0, 7.0, 9.0, 30.0])
    found = session.run([d.Normal(np.float64(0), np.float64(1)).log_cdf(x), d.Normal(0.0, 1.0).log_cdf(x.astype("f"))])
    np.testing.assert_allclose(found[0], stats.norm.logcdf(x), rtol=1e-7)
    np.testing.assert_allclose(found[1][:3], stats.norm.logcdf(x)[:3], rtol=1e-4)


def test_bernoulli(session: Any) -> None:
    made, right = d.Bernoulli(probs=P), stats.bernoulli(P)
    x = np.array([[0], [1]])
    np.testing.assert_allclose(session.run(made.log_prob(x)), right.logpmf(x), rtol=1e-6)
    np.testing.assert_allclose(session.run(made.entropy()), right.entropy(), rtol=1e-10)
    np.testing.assert_allclose(session.run([made.mean(), made.variance()]), [P, right.var()])
    assert session.run(made.mode()).tolist() == [0, 0, 1]
    drawn = session.run(made.sample([500, 4], seed=3))
    assert drawn.dtype == np.int32
    np.testing.assert_allclose(drawn.mean((0, 1)), P, atol=0.05)
    np.testing.assert_allclose(
        session.run(d.Bernoulli(logits=[0.0, 1.0]).probs), [0.5, 1 / (1 + np.exp(-1))], rtol=1e-6
    )


def test_categorical(session: Any) -> None:
    logits = tf.placeholder(tf.float32, [None, 3])
    made = d.Categorical(logits=logits)
    fed = {logits: np.log(ROWS)}
    np.testing.assert_allclose(session.run(made.probs, fed), ROWS, rtol=1e-5)
    np.testing.assert_allclose(session.run(made.prob([2, 0]), fed), [0.3, 0.6], rtol=1e-5)
    np.testing.assert_allclose(
        session.run(made.log_prob([[0, 1], [1, 2]]), fed), np.log([[0.2, 0.3], [0.5, 0.1]]), rtol=1e-5
    )
    np.testing.assert_allclose(session.run(made.entropy(), fed), [stats.entropy(row) for row in ROWS], rtol=1e-5)
    assert session.run(made.mode(), fed).tolist() == [1, 0]
    drawn = session.run(made.sample(2000, seed=1), fed)
    assert drawn.shape == (2000, 2)
    np.testing.assert_allclose([np.bincount(c, minlength=3) / 2000 for c in drawn.T], ROWS, atol=0.05)
    assert session.run(made.sample(seed=1), fed).shape == (2,)
    assert d.Categorical(probs=ROWS).batch_shape.as_list() == [2]


def test_counts(session: Any) -> None:
    made, right = d.Multinomial(6.0, probs=ROWS.astype("f")), [stats.multinomial(6, row) for row in ROWS]
    counts = np.array([1, 3, 2], np.float32)
    np.testing.assert_allclose(session.run(made.prob(counts)), [r.pmf(counts) for r in right], rtol=1e-4)
    np.testing.assert_allclose(session.run(made.covariance()), [r.cov() for r in right], rtol=1e-4, atol=1e-6)
    drawn = session.run(made.sample(600, seed=2))
    assert (drawn.sum(-1) == 6).all()
    np.testing.assert_allclose(drawn.mean(0), 6 * ROWS, atol=0.3)
    mixed, alpha = d.DirichletMultinomial(6.0, (A.astype("f"))), stats.dirichlet_multinomial(A, 6)
    np.testing.assert_allclose(session.run(mixed.log_prob(counts)), alpha.logpmf([1, 3, 2]), rtol=1e-4)
    np.testing.assert_allclose(session.run(mixed.covariance()), alpha.cov(), rtol=1e-4)
    drawn = session.run(mixed.sample(800, seed=2))
    assert (drawn.sum(-1) == 6).all()
    np.testing.assert_allclose(drawn.mean(0), alpha.mean(), atol=0.3)


def test_dirichlet(session: Any) -> None:
    made, right = d.Dirichlet(A), stats.dirichlet(A)
    np.testing.assert_allclose(session.run(made.log_prob(ROWS)), [right.logpdf(row) for row in ROWS], rtol=1e-10)
    np.testing.assert_allclose(session.run(made.entropy()), right.entropy(), rtol=1e-10)
    np.testing.assert_allclose(session.run(made.covariance()), right.cov(), rtol=1e-10)
    np.testing.assert_allclose(session.run(made.variance()), right.var(), rtol=1e-10)
    modes = session.run(d.Dirichlet([A, A + 1]).mode())
    assert np.isnan(modes[0]).all()
    np.testing.assert_allclose(modes[1], A / A.sum(), rtol=1e-6)
    np.testing.assert_allclose(session.run(made.sample(2000, seed=4)).mean(0), right.mean(), atol=0.03)


PAIRS = {
    "Normal": (lambda: d.Normal(LOC, SCALE), lambda: d.Normal(LOC + 1, SCALE * 2)),
    "Gamma": (lambda: d.Gamma(A, B), lambda: d.Gamma(B, A)),
    "Exponential": (lambda: d.Exponential(A), lambda: d.Exponential(B)),
    "Beta": (lambda: d.Beta(A, B), lambda: d.Beta(B, B)),
    "Bernoulli": (lambda: d.Bernoulli(probs=P), lambda: d.Bernoulli(probs=P[::-1].copy())),
    "Categorical": (lambda: d.Categorical(probs=ROWS), lambda: d.Categorical(probs=ROWS[::-1].copy())),
    "Dirichlet": (lambda: d.Dirichlet(A), lambda: d.Dirichlet(B)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_divergence_is_the_mean_difference_of_logarithms(session: Any, kind: str) -> None:
    a, b = (make() for make in PAIRS[kind])
    drawn = a.sample(20000, seed=5)
    found, sampled = session.run([d.kl_divergence(a, b), tf.reduce_mean(a.log_prob(drawn) - b.log_prob(drawn), 0)])
    np.testing.assert_allclose(found, sampled, rtol=0.1, atol=0.03)
    np.testing.assert_allclose(session.run(a.kl_divergence(a)), 0, atol=1e-6)
    np.testing.assert_allclose(*session.run([a.cross_entropy(b), a.entropy() + a.kl_divergence(b)]))


def test_samples_have_gradients_where_they_can(session: Any) -> None:
    loc, scale = tf.constant(2.0), tf.constant(3.0)
    made = d.Normal(loc, scale)
    drawn = made.sample(5, seed=1)
    slopes, values = session.run([tf.gradients(drawn, [loc, scale]), drawn])
    assert slopes[0] == 5
    assert slopes[1] == pytest.approx(((values - 2) / 3).sum(), rel=1e-5)
    assert made.reparameterization_type is d.FULLY_REPARAMETERIZED
    assert d.Bernoulli(0.0).reparameterization_type is d.NOT_REPARAMETERIZED


def test_a_kind_of_the_user(session: Any) -> None:
    class Point(d.Distribution):  # type: ignore[misc]  # the base class is untyped for users
        """Always the same number."""

        def __init__(self, at: float) -> None:
            self.at = tf.constant(at)
            super().__init__(tf.float32, d.FULLY_REPARAMETERIZED, False, True, {"at": at}, [self.at], "Point")

        def _batch_shape_tensor(self) -> Any:
            return tf.constant([], tf.int32)

        _event_shape_tensor = _batch_shape_tensor

        def _sample_n(self, n: Any, seed: Any = None) -> Any:
            return tf.fill([n], self.at)

        def _prob(self, x: Any) -> Any:
            return tf.to_float(tf.equal(x, self.at))

    made = Point(3.0).copy(at=4.0)
    assert session.run(made.sample([2, 2])).tolist() == [[4, 4], [4, 4]]
    assert session.run(made.log_prob([4.0, 3.0])).tolist() == [0, -np.inf]
    with pytest.raises(NotImplementedError, match="mean is not implemented: Point"):
        made.mean()

    @d.RegisterKL(Point, d.Normal)
    def divergence(a: Any, b: Any, name: str | None = None) -> Any:
        return -b.log_prob(a.at)

    assert session.run(d.kl_divergence(made, d.Normal(4.0, 1.0))) == pytest.approx(0.919, abs=1e-3)
    with pytest.raises(ValueError, match="Point and Normal have a divergence already"):
        d.RegisterKL(Point, d.Normal)(divergence)
    with pytest.raises(NotImplementedError, match="registered for Normal and Point"):
        d.kl_divergence(d.Normal(0.0, 1.0), made)


def test_what_is_not_defined_is_nan_or_an_error(session: Any) -> None:
    nan, error = (d.StudentT([0.5, 1.5], 0.0, 1.0, allow_nan_stats=allowed) for allowed in (True, False))
    mean, variance = session.run([nan.mean(), nan.variance()])
    assert np.isnan(mean).tolist() == [True, False]
    assert np.isnan(variance[0])
    assert variance[1] == np.inf
    with pytest.raises(tf.errors.InvalidArgumentError, match="mean not defined"):
        session.run(error.mean())
    assert np.isnan(session.run(d.Gamma(0.5, 1.0).mode()))


def test_wrong_parameters(session: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(d.Normal(0.0, -1.0, validate_args=True).sample(seed=1))
    with pytest.raises(ValueError, match="neither of logits and probs given; one is required"):
        d.Categorical()
    with pytest.raises(ValueError, match="both of logits and probs"):
        d.Bernoulli(0.0, 0.5)
    with pytest.raises(ValueError, match="loc is int32, scale is int32; floating parameters"):
        d.Normal(0, 1)


def test_parameters_say_their_shapes_for_a_shape_of_samples() -> None:
    normal = tf.distributions.Normal
    assert normal.param_static_shapes([2, 3]) == {"loc": tf.TensorShape([2, 3]), "scale": tf.TensorShape([2, 3])}
    with tf.Session() as session:
        assert session.run(tf.distributions.Uniform.param_shapes([4]))["low"].tolist() == [4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="every size must be known"):
        normal.param_static_shapes([None])
    with pytest.raises(NotImplementedError, match="Categorical: says no shapes"):
        tf.distributions.Categorical.param_static_shapes([1])

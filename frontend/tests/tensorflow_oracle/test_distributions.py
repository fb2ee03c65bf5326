"""tf.distributions on both sides: all their functions, and samples from equal seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

A, B = np.array([[0.7], [2.5]], np.float32), np.array([1.5, 0.9, 3.0], np.float32)
ROWS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], np.float32)
COUNTS = np.array([[1, 3, 2], [0, 0, 6]], np.float32)
SHARES = np.array([[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]], np.float32)

KINDS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "Normal": (lambda d: d.Normal(A, B), A - B),
    "Laplace": (lambda d: d.Laplace(A, B), A - B),
    "StudentT": (lambda d: d.StudentT(A + B, A - B, A + B), A - 2 * B),
    "Uniform": (lambda d: d.Uniform(-A, B), A - B),
    "Gamma": (lambda d: d.Gamma(A, B), A * B),
    "Exponential": (lambda d: d.Exponential(B), A * B),
    "Beta": (lambda d: d.Beta(A + 0 * B, 0 * A + B), SHARES),
    "Bernoulli": (lambda d: d.Bernoulli(logits=A - B), np.array([[0, 1, 0], [1, 1, 0]])),
    "Categorical": (lambda d: d.Categorical(probs=ROWS), np.array([0, 2])),
    "Multinomial": (lambda d: d.Multinomial([6.0], probs=ROWS[:1]), COUNTS[:1]),
    "DirichletMultinomial": (lambda d: d.DirichletMultinomial(6.0, ROWS * 4), COUNTS),
    "Dirichlet": (lambda d: d.Dirichlet(ROWS * 4), SHARES),
}
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function")
STATISTICS = (
    "mean", "mode", "variance", "stddev", "covariance", "entropy", "batch_shape_tensor", "event_shape_tensor",
    "is_scalar_batch", "is_scalar_event",
)  # fmt: skip
LACKING = {("Gamma", name) for name in ("cdf", "log_cdf", "survival_function", "log_survival_function")} | {
    ("Categorical", name) for name in ("cdf", "log_cdf", "survival_function", "log_survival_function")
}
"""What is not here: the incomplete gamma function, and sums over classes up to one."""
FAILING = {("Dirichlet", "mode")}
"""What TensorFlow cannot do for a batch. Its Student's t and Beta have `cdf` for parameters of one shape alone."""


def results(tf: Any, kind: str) -> dict[str, Any]:
    """Returns what a distribution answers to everything; what is not implemented is left out."""
    make, value = KINDS[kind]
    found: dict[str, Any] = {}
    with tf.Graph().as_default(), tf.Session() as session:
        made = make(tf.distributions)
        calls = {name: lambda name=name: getattr(made, name)(value) for name in OF_VALUES}
        calls |= {name: lambda name=name: getattr(made, name)() for name in STATISTICS}
        calls |= {"sample": lambda: made.sample([4, 2], seed=11), "one": lambda: made.sample(seed=12)}
        calls |= {"shapes": lambda: tf.constant([made.batch_shape.as_list(), made.event_shape.as_list()] != [])}
        for name, call in calls.items():
            if (kind, name) in LACKING | FAILING:
                continue
            try:
                tensor = call()
            except NotImplementedError:
                continue
            found[name] = session.run(tensor)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_distribution(tensorflow: Any, kind: str) -> None:
    ours, theirs = results(timberframe, kind), results(tensorflow, kind)
    assert set(theirs) <= set(ours)
    for name, right in theirs.items():
        np.testing.assert_allclose(ours[name], right, rtol=2e-5, atol=1e-6, err_msg=name)
        assert ours[name].dtype == right.dtype


@pytest.mark.parametrize("kind", ["Normal", "Gamma", "Beta", "Bernoulli", "Categorical", "Dirichlet", "Exponential"])
def test_divergence(tensorflow: Any, kind: str) -> None:
    def found(tf: Any) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            a = KINDS[kind][0](tf.distributions)
            b = a.copy(**{k: v[..., ::-1].copy() for k, v in a.parameters.items() if isinstance(v, np.ndarray)})
            return session.run([a.kl_divergence(b), a.cross_entropy(b), tf.distributions.kl_divergence(b, a)])

    for ours, right in zip(found(timberframe), found(tensorflow), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-6)

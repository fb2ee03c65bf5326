"""The optimizers of tf.contrib.opt against their formulas; weight decay of chosen variables; swapped averages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

opt = tf.contrib.opt

RATE, BETA1, BETA2, EPSILON = 0.1, 0.9, 0.99, 1e-3
START = np.array([[1.0, -2.0], [3.0, 0.5], [-1.5, 2.5]])
ROWS = [0, 2]
GRADIENTS = [np.array([[0.5, -1.0], [2.0, 0.25]]) * k for k in (1.0, -0.5, 2.0)]


def adam(rows: list[int], lazy: bool, nesterov: bool) -> np.ndarray:
    """Returns the variable after steps by GRADIENTS in these rows. lazy: other rows of the averages stay."""
    w, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for step, values in enumerate(GRADIENTS, 1):
        g = np.zeros_like(w)
        g[rows] = values
        kept = rows if lazy else slice(None)
        m[kept] = BETA1 * m[kept] + (1 - BETA1) * g[kept]
        v[kept] = BETA2 * v[kept] + (1 - BETA2) * g[kept] ** 2
        ahead = BETA1 * m + (1 - BETA1) * g if nesterov else m
        rate = RATE * np.sqrt(1 - BETA2**step) / (1 - BETA1**step)
        w[rows] -= (rate * ahead / (np.sqrt(v) + EPSILON))[rows]
    return w


def trained(session: tf.Session, optimizer: Any, sparse: bool, **settings: Any) -> np.ndarray:
    """Returns the variable after steps of an optimizer by GRADIENTS in the rows ROWS."""
    w = tf.Variable(START)
    values = tf.placeholder(tf.float64, [2, 2])
    gradient = tf.IndexedSlices(values, tf.constant(ROWS), tf.constant(START.shape))
    step = optimizer.apply_gradients([(gradient if sparse else tf.convert_to_tensor(gradient), w)], **settings)
    session.run(tf.global_variables_initializer())
    for value in GRADIENTS:
        session.run(step, {values: value})
    return session.run(w)


@pytest.mark.parametrize("sparse", [True, False])
def test_nadam_steps_by_the_average_ahead(session: tf.Session, sparse: bool) -> None:
    found = trained(session, opt.NadamOptimizer(RATE, BETA1, BETA2, EPSILON), sparse)
    np.testing.assert_allclose(found, adam(ROWS, lazy=False, nesterov=True), rtol=1e-6)


def test_lazy_adam_leaves_the_averages_of_other_rows(session: tf.Session) -> None:
    optimizer = opt.LazyAdamOptimizer(RATE, BETA1, BETA2, EPSILON)
    w = tf.Variable(START)
    values, indices = tf.placeholder(tf.float64), tf.placeholder(tf.int32)
    step = optimizer.apply_gradients([(tf.IndexedSlices(values, indices, tf.constant(START.shape)), w)])
    session.run(tf.global_variables_initializer())
    for value in GRADIENTS:
        session.run(step, {values: value, indices: ROWS})
    np.testing.assert_allclose(session.run(w), adam(ROWS, lazy=True, nesterov=False), rtol=1e-6)
    before = session.run([w, optimizer.get_slot(w, "m"), optimizer.get_slot(w, "v")])
    session.run(step, {values: [[1.0, 1.0]], indices: [1]})
    after = session.run([w, optimizer.get_slot(w, "m"), optimizer.get_slot(w, "v")])
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new[ROWS], old[ROWS])
        assert (new[1] != old[1]).all()


def test_lazy_adam_is_adam_for_a_whole_gradient(session: tf.Session) -> None:
    found = trained(session, opt.LazyAdamOptimizer(RATE, BETA1, BETA2, EPSILON), sparse=False)
    np.testing.assert_array_equal(found, trained(session, tf.train.AdamOptimizer(RATE, BETA1, BETA2, EPSILON), False))


DECAYING: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "adam": (lambda d: opt.AdamWOptimizer(d, RATE), lambda: tf.train.AdamOptimizer(RATE)),
    "momentum": (lambda d: opt.MomentumWOptimizer(d, RATE, 0.9), lambda: tf.train.MomentumOptimizer(RATE, 0.9)),
    "nesterov": (
        lambda d: opt.MomentumWOptimizer(d, RATE, 0.9, use_nesterov=True),
        lambda: tf.train.MomentumOptimizer(RATE, 0.9, use_nesterov=True),
    ),
    "extended": (
        lambda d: opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(d, RATE),
        lambda: tf.train.AdagradOptimizer(RATE),
    ),
}


@pytest.mark.parametrize("name", DECAYING)
@pytest.mark.parametrize("sparse", [True, False])
def test_weights_decay_before_the_step(session: tf.Session, name: str, sparse: bool) -> None:
    """The steps of the optimizer itself do not depend on the weights, so that w after n of them is known."""
    decaying, plain = DECAYING[name]
    found = trained(session, decaying(0.01), sparse)
    w = tf.Variable(START)
    values = tf.placeholder(tf.float64, [2, 2])
    gradient = tf.IndexedSlices(values, tf.constant(ROWS), tf.constant(START.shape))
    step = plain().apply_gradients([(gradient if sparse else tf.convert_to_tensor(gradient), w)])
    session.run(tf.global_variables_initializer())
    for value in GRADIENTS:
        weights = session.run(w)
        weights[ROWS if sparse else slice(None)] *= 1 - 0.01
        w.load(weights, session)
        session.run(step, {values: value})
    np.testing.assert_allclose(found, session.run(w), rtol=1e-12)
    assert (found[ROWS] != START[ROWS]).all()


@pytest.mark.parametrize("decay", [lambda: 0.5, lambda: tf.constant(0.5), lambda: lambda: 0.5])
def test_weight_decay_is_a_number_a_tensor_or_a_function(session: tf.Session, decay: Callable[[], Any]) -> None:
    w = tf.Variable([2.0])
    step = opt.MomentumWOptimizer(decay(), 1.0, 0.0).apply_gradients([(tf.constant([1.0]), w)])
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(w).tolist() == [0.0]


def test_only_the_listed_variables_decay(session: tf.Session) -> None:
    a, b = tf.Variable([2.0]), tf.Variable([2.0])
    optimizer = opt.MomentumWOptimizer(0.5, 1.0, 0.0)
    step = optimizer.minimize(tf.reduce_sum(a + b), decay_var_list=[a])
    every = optimizer.minimize(tf.reduce_sum(a + b))
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert [session.run(v).tolist() for v in (a, b)] == [[0.0], [1.0]]
    session.run(every)
    assert [session.run(v).tolist() for v in (a, b)] == [[-1.0], [-0.5]]


def test_the_gradient_is_that_before_the_decay(session: tf.Session) -> None:
    w = tf.Variable([2.0])
    step = opt.MomentumWOptimizer(0.5, 1.0, 0.0).minimize(tf.reduce_sum(w * w))
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(w).tolist() == [-3.0]


def test_a_swapping_saver_saves_the_averages_as_the_variables(session: tf.Session, tmp_path: Path) -> None:
    a = tf.get_variable("a", initializer=[4.0])
    optimizer = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), average_decay=0.5)
    with pytest.raises(tf.errors.FailedPreconditionError, match="call minimize or apply_gradients before it"):
        optimizer.swapping_saver()
    step = optimizer.minimize(tf.reduce_sum(a))
    swapping = optimizer.swapping_saver()
    session.run(tf.global_variables_initializer())
    session.run(step)
    path = swapping.save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "a").tolist() == [3.5]
    assert tf.train.load_variable(path, "a/ExponentialMovingAverage").tolist() == [3.0]
    session.run(step)
    swapping.restore(session, path)
    assert session.run(a).tolist() == [3.0]
    tf.train.Saver([a]).restore(session, path)
    assert session.run(a).tolist() == [3.5]


def test_a_swapping_saver_of_a_partitioned_variable(session: tf.Session, tmp_path: Path) -> None:
    parts = tf.get_variable("w", initializer=tf.constant([4.0, 6.0]), partitioner=tf.fixed_size_partitioner(2))
    optimizer = opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(1.0, 0.9), average_decay=0.5)
    step = optimizer.minimize(tf.reduce_sum(tf.concat(list(parts), 0)))
    session.run(tf.global_variables_initializer())
    session.run(step)
    path = optimizer.swapping_saver().save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "w").tolist() == [3.5, 5.5]
    assert optimizer.get_slot_names() == ["momentum"]
    assert len(optimizer.variables()) == 2

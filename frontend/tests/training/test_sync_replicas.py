"""SyncReplicasOptimizer in one process: what a step is made of, what is dropped, and errors.

Replicas in processes of their own are in plugins/ray/tests.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25], [2.0, 2.0], [-1.0, 1.0], [4.0, 0.5]], np.float32)


def model(optimizer: Any) -> tuple[Any, Any, Any, Any]:
    """Returns a placeholder for a row, the variable, the global step and what trains it."""
    x = tf.placeholder(tf.float32, [2])
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=tf.constant([0.5, -0.5]))
    return x, w, step, optimizer.minimize(tf.reduce_sum(tf.square(w * x - 1.0)), global_step=step)


def alone(count: int) -> list[np.ndarray]:
    """Returns the values of the variable after each step of one process that takes the mean of `count` gradients."""
    values, w = [], np.array([0.5, -0.5], np.float32)
    for part in X.reshape(-1, count, 2):
        w = w - np.float32(0.1) * np.mean([2 * x * (w * x - 1) for x in part], 0, dtype=np.float32)
        values.append(w)
    return values


def test_a_step_is_taken_by_the_mean_of_several_gradients_of_one_replica() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=1
    )
    x, w, step, train = model(optimizer)
    hook = optimizer.make_session_run_hook(True, num_tokens=1)
    found = []
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        for i, row in enumerate(X):
            session.run(train, {x: row})
            if i % 2:  # one token was there before the first step, so that the first gradient does not wait
                found.append(session.run([w, step]))
    for (value, at), wanted, k in zip(found, alone(2), range(1, 4), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
        assert at == k


def test_slots_and_variables_are_those_of_the_other_optimizer() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 1)
    _, w, _, _ = model(optimizer)
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.variables() == [optimizer.get_slot(w, "momentum")]
    assert [v.op.name for v in tf.local_variables()] == ["sync_rep_local_step"]


def test_rows_of_an_embedding_get_the_mean_of_the_gradients_that_have_them() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, 1)
    ids = tf.placeholder(tf.int32, [None])
    step = tf.train.get_or_create_global_step()
    table = tf.get_variable("table", initializer=tf.zeros([4, 2]))
    train = optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, ids)), global_step=step)
    hook = optimizer.make_session_run_hook(True, num_tokens=1)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(train, {ids: [1, 1, 2]})
        session.run(train, {ids: [2]})
        value = session.run(table)
    np.testing.assert_array_equal(value[:, 0], [0, -2, -1, 0])


def test_a_variable_without_a_gradient_stays() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
    x = tf.get_variable("x", initializer=tf.constant(1.0))
    other = tf.get_variable("other", initializer=tf.constant(5.0))
    train = optimizer.minimize(x * x, global_step=tf.train.get_or_create_global_step())
    with tf.train.MonitoredTrainingSession(hooks=[optimizer.make_session_run_hook(True, 0)]) as session:
        session.run(train)
        assert session.run([x, other]) == [np.float32(0.8), 5]


def test_averages_of_variables_follow_each_step() -> None:
    w = tf.get_variable("w", initializer=tf.constant(4.0))
    average = tf.train.ExponentialMovingAverage(0.5)
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.25), 1, variable_averages=average, variables_to_average=[w]
    )
    train = optimizer.minimize(w * w, global_step=tf.train.get_or_create_global_step())
    hook = optimizer.make_session_run_hook(True, 0)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(train)
        session.run(train)  # its token was made after the first average
        assert session.run(average.average(w)) in (3.0, 2.0)  # of 2, and maybe of 1


def test_backups_gradients_of_an_earlier_step_are_dropped() -> None:
    """Two of three replicas make a step; the third's gradient comes when it was taken."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, 3)
    x, w, step, train = model(optimizer)
    add = next(op for op in tf.get_default_graph().get_operations() if op.type == "ResourceAccumulatorApplyGradient")
    held = tf.ConditionalAccumulator(tf.float32, [2], shared_name="w:0/grad_accum").num_accumulated()
    with tf.train.MonitoredTrainingSession(hooks=[optimizer.make_session_run_hook(True, 0)]) as session:
        raw = session._tf_sess()
        threads = [threading.Thread(target=session.run, args=(train, {x: row}), daemon=True) for row in X[:2]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        raw.run(optimizer.local_step_init_op)
        assert session.run(step) == 1
        raw.run(add, {x: X[2], "sync_rep_local_step:0": 0})
        assert session.run(held) == 0
        raw.run(add, {x: X[2]})
        assert session.run(held) == 1
        np.testing.assert_allclose(session.run(w), alone(2)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o, p: o.apply_gradients(p), "global_step is None; a variable is required"),
        (lambda o, p: o.apply_gradients([], tf.train.get_or_create_global_step()), "no variables given"),
        (lambda o, p: o.get_chief_queue_runner(), "before apply_gradients"),
        (lambda o, p: o.get_init_tokens_op(), "before apply_gradients"),
    ],
)
def test_what_is_missing_is_said(call: Any, message: str) -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
    w = tf.get_variable("w", initializer=tf.constant(1.0))
    with pytest.raises((ValueError, RuntimeError), match=message):
        call(optimizer, [(tf.constant(1.0), w)])


def test_too_few_tokens_are_refused() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 3, 1)
    model(optimizer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_tokens is 1; the first step needs 2 at least"):
        optimizer.get_init_tokens_op(1)

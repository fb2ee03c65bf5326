"""Memory over many training steps."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf

from ..conftest import reports_memory, resident_bytes

STEPS = 20_000
ALLOWED_GROWTH = 1 << 20  # pages of malloc come and go; 64 bytes kept in each step would be more


@pytest.mark.slow
@reports_memory
def test_memory_stays_flat_over_20000_training_steps() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x, y = tf.placeholder(tf.float32, [8, 4]), tf.placeholder(tf.float32, [8, 2])
        weights = tf.Variable(np.ones((4, 2), np.float32))
        loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, weights)) - y))
        step = tf.train.AdamOptimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
        session.run(tf.global_variables_initializer())
        rng = np.random.default_rng(0)
        feeds = {x: rng.normal(size=(8, 4)).astype(np.float32), y: rng.normal(size=(8, 2)).astype(np.float32)}
        for _ in range(STEPS // 10):
            session.run([loss, step], feeds)
        before = resident_bytes()
        for _ in range(STEPS):
            session.run([loss, step], feeds)
        assert resident_bytes() - before <= ALLOWED_GROWTH

"""SessionConfig.order_seed: any order that edges allow, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

SEEDS = range(4)


def order(seed: int | None) -> list[str]:
    """Returns the nodes of a run with independent parts, in the order in which they ran."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        parts = [tf.tanh(x * float(i), name=f"t{i}") for i in range(8)]
        total = tf.add_n(parts, name="total")
        metadata = tf.RunMetadata()
        with tf.Session(config=tf.SessionConfig(order_seed=seed)) as session:
            session.run(total, {x: np.ones(3)}, tf.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    return [e["name"] for e in metadata.trace["traceEvents"] if e["name"].startswith("t")]


def test_the_order_follows_from_the_seed() -> None:
    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in SEEDS}) > 1


def test_every_node_runs_once_and_after_its_inputs() -> None:
    for seed in SEEDS:
        ran = [name for name in order(seed) if name != "thread_name"]
        assert sorted(ran) == ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "total"]
        assert ran[-1] == "total"


def run(build: Any, seed: int, runs: int = 2) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = build(x)
        with tf.Session(config=tf.SessionConfig(order_seed=seed)) as session:
            session.run(tf.global_variables_initializer())
            return [session.run(y, {x: [1.0, 2.0]}) for _ in range(runs)]


@pytest.mark.parametrize("seed", SEEDS)
def test_accesses_to_a_variable_keep_their_order(seed: int) -> None:
    def build(x: Any) -> Any:
        v = tf.Variable([0.0, 0.0])
        first = v.assign_add(x)
        with tf.control_dependencies([first]):
            read = v.read_value() * 2.0
        with tf.control_dependencies([read]):
            return read, v.assign_add(x)

    (read, last), (again, end) = run(build, seed)
    np.testing.assert_array_equal([read, last, again, end], [[2, 4], [2, 4], [6, 12], [4, 8]])


@pytest.mark.parametrize("seed", SEEDS)
def test_loops_and_branches_give_the_same(seed: int) -> None:
    def build(x: Any) -> Any:
        loop = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s * 2.0 + x), [tf.constant(0), x])[1]
        return tf.cond(tf.reduce_sum(x) > 1.0, lambda: loop - x, lambda: x)

    np.testing.assert_array_equal(run(build, seed)[1], [62, 124])


def test_a_seed_that_is_no_number_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"SessionConfig\.order_seed is -1; an integer"):
        tf.SessionConfig(order_seed=-1)

"""What `Session.explain` says about the kernels of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def explained(fetch: Any, feeds: Any) -> dict[str, Any]:
    with tf.Session() as session:
        return {k.node: k for k in session.explain(fetch, feeds).kernels}


@pytest.mark.cpu
def test_the_kernel_of_a_node_is_named_with_its_plugin() -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    with tf.device("/cpu:0"):
        found = explained(tf.matmul(x, x, name="product"), {x: np.eye(2)})["product"]
    assert (found.op, found.plugin) == ("MatMul", "cpu")
    assert found.kernel.startswith("timberframe_cpu.kernels.")


@pytest.mark.cpu
def test_the_kernels_of_a_loop_are_those_of_its_body() -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/cpu:0"):
        y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.tanh(v, name="curve")), [0, x])[1]
        assert explained(y, {x: [1, 2]})["curve"].op == "Tanh"


@pytest.mark.cpu
def test_a_chain_is_one_kernel_for_its_nodes() -> None:
    x = tf.placeholder(tf.float32, [100_000])
    with tf.device("/cpu:0"):
        y = tf.tanh(tf.multiply(x, 2.0, name="double"), name="curve")
        assert explained(y, {x: np.zeros(100_000)})["curve"].kernel == "one kernel for the chain double, curve"


def test_kernels_are_known_where_shapes_are() -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        assert session.explain(x * 2.0).kernels == ()
        assert "kernels:" in str(session.explain(x * 2.0, {x: [1, 2]}))


@pytest.mark.cpu
@pytest.mark.parametrize(("update", "nbytes"), [("assign", 400), ("assign_add", 0)])
def test_new_versions_of_variables_are_among_the_outputs_unless_they_lie_over_the_old(update: str, nbytes: int) -> None:
    x = tf.placeholder(tf.float32, [100])
    with tf.device("/cpu:0"), tf.Session() as session:
        v = tf.Variable(tf.zeros([100]))
        session.run(v.initializer)
        explained = session.explain(getattr(v, update)(x, read_value=False), {x: np.zeros(100)})
    assert sum(s.output_bytes or 0 for s in explained.stages) == nbytes
    assert sum(explained.peak_bytes.values()) >= nbytes

"""The wire form of clusters: what is read back is equal, and fingerprints tell clusters apart in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin.contracts import Cluster, RandomStream, RunContext, Value, Variable
from timberframe_core.plugin.wire import write_cluster
from timberframe_core.plugin.wire_reader import read_cluster

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def clusters(build: Callable[[tf.Tensor], Any], shape: tuple[int, ...] = (2, 3)) -> list[Cluster]:
    """Returns the clusters of what `build` makes of a fed tensor, as they were before passes fused them."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        result = build(x)
        session.run(tf.global_variables_initializer())
        runner = session._runner(result, {x: None})
        level = runner.plan.bind([(np.ones(shape, np.float32), None)])
        bound = [level.stages[id(s)] for s in level.schedule.stages]
        return [b.cluster.source or b.cluster for b in bound if b.cluster is not None]


def read(cluster: Cluster) -> Cluster:
    """Returns the cluster, written and read back."""
    variables: dict[str, Variable] = {}
    streams: dict[str, RandomStream] = {}
    return read_cluster(
        write_cluster(cluster),
        cluster.device,
        lambda name, dtype: variables.setdefault(name, Variable(name, len(variables), cluster.device, dtype)),
        lambda name: streams.setdefault(name, RandomStream(name)),
    )


def facts(cluster: Cluster) -> Any:
    """Returns all that a cluster says, in values that can be compared; values are numbered in their order."""
    numbers: dict[int, int] = {}

    def value(v: Value) -> Any:
        number = numbers.setdefault(v.id, len(numbers))
        constant = v.constant
        if isinstance(constant, Variable):
            constant = (constant.name, constant.dtype)
        elif constant is not None:
            constant = np.asarray(constant).tolist()
        return number, v.dtype, v.shape, v.kind, constant, v.dynamic, v.replaced

    def attrs(given: Any) -> dict[str, Any]:
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in given.items()}

    return (
        [value(v) for v in cluster.inputs],
        [value(v) for v in cluster.resources],
        [
            (
                n.op,
                n.name,
                attrs(n.attrs),
                [value(v) for v in n.inputs],
                [value(v) for v in n.outputs],
                n.where,
                [facts(c) for c in n.inner],
                n.stream and n.stream.name,
            )
            for n in cluster.nodes
        ],
        [value(v) for v in cluster.outputs],
        [(u.variable.name, u.old and value(u.old), value(u.new), u.in_place) for u in cluster.updates],
    )


def counted(x: tf.Tensor) -> Any:
    return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y) * 2), [tf.constant(0), x])


def trained(x: tf.Tensor) -> Any:
    w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    return loss, tf.train.AdamOptimizer(0.1).minimize(loss)


GRAPHS: dict[str, Callable[[tf.Tensor], Any]] = {
    "constants": lambda x: tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]])) + 0.1,
    "attrs": lambda x: tf.nn.leaky_relu(tf.transpose(x), alpha=0.3),
    "several outputs": lambda x: tf.nn.top_k(x, 2),
    "a shape known only by running": lambda x: tf.where(x > 0),
    "a loop": counted,
    "a branch": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x - 1.0),
    "a branch that gives a constant": lambda x: tf.cond(
        tf.reduce_sum(x) > 0, lambda: [tf.constant(1.0), tf.exp(x)], lambda: [tf.constant(2.0), x]
    ),
    "an assignment of a constant": lambda x: tf.get_variable("v", []).assign(tf.constant(3.0), read_value=False),
    "random numbers": lambda x: x + tf.random_uniform([2, 3], seed=3),
    "an optimizer": trained,
    "an assignment": lambda x: tf.assign_add(tf.get_variable("v", [2, 3]), x),
    "strings": lambda x: tf.gather(tf.constant(["\x00", "ü", ""]), tf.cast(x, tf.int32)),
}


@pytest.fixture(params=GRAPHS)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found = [c for c in clusters(GRAPHS[request.param]) if c.nodes or c.updates]
    assert found
    return found[0]


def test_a_cluster_that_is_read_back_is_equal(cluster: Cluster) -> None:
    assert facts(read(cluster)) == facts(cluster)


def test_a_cluster_that_is_read_back_has_the_same_wire_form(cluster: Cluster) -> None:
    assert write_cluster(read(cluster)) == write_cluster(cluster)


def test_a_cluster_that_is_read_back_has_the_same_fingerprint(cluster: Cluster) -> None:
    assert read(cluster).fingerprint == cluster.fingerprint


def test_a_cluster_that_is_read_back_computes_the_same() -> None:
    (cluster,) = clusters(lambda x: tf.reduce_sum(tf.exp(counted(x)[1]) + 0.3))
    results = [c.device.compile(c).run([X] * len(c.inputs), RunContext()) for c in (cluster, read(cluster))]
    np.testing.assert_array_equal(results[0], results[1])


def scaled(factor: float) -> Cluster:
    return clusters(lambda x: tf.matmul(x, tf.constant([[factor], [2.0], [3.0]]), name="product"))[0]


def test_names_and_lines_do_not_change_a_fingerprint() -> None:
    other = clusters(lambda x: tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]]), name="elsewhere"))[0]
    assert scaled(1.0).fingerprint == other.fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: tf.exp(x), lambda x: tf.tanh(x)),
        (lambda x: tf.matmul(x, x), lambda x: tf.matmul(x, x, transpose_a=True)),
        (lambda x: tf.nn.leaky_relu(x, 0.1), lambda x: tf.nn.leaky_relu(x, 0.2)),
        (lambda x: tf.exp(x) * tf.constant([0.0, 1.0]), lambda x: tf.exp(x) * tf.constant([-0.0, 1.0])),
        (lambda x: tf.exp(x) - x, lambda x: x - tf.exp(x)),
        (lambda x: tf.exp(tf.cast(x, tf.float64)), lambda x: tf.exp(x)),
        (
            lambda x: tf.cond(x[0, 0] > 0, lambda: tf.exp(x), lambda: x),
            lambda x: tf.cond(x[0, 0] > 0, lambda: tf.tanh(x), lambda: x),
        ),
    ],
    ids=["op", "attr", "float attr", "sign of zero in a constant", "order of inputs", "dtype", "a body"],
)
def test_fingerprints_differ_with_what_is_computed(one: Any, other: Any) -> None:
    assert clusters(one, (2, 2))[-1].fingerprint != clusters(other, (2, 2))[-1].fingerprint


def test_fingerprints_differ_with_shapes() -> None:
    assert clusters(tf.exp, (2, 2))[0].fingerprint != clusters(tf.exp, (4, 1))[0].fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("build", ["counted", "trained"])
def test_fingerprints_are_the_same_in_another_process(build: str) -> None:
    program = f"from core.tests.session.test_wire import {build}, clusters; print(clusters({build})[0].fingerprint)"
    found = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {clusters(globals()[build])[0].fingerprint}


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\x02"])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="wire form of a cluster"):
        read_cluster(data, None, None, None)  # type: ignore[arg-type]  # they are not reached


def test_another_version_is_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="is of version 0; this process reads 1"):
        read_cluster(b"", None, None, None)  # type: ignore[arg-type]  # they are not reached

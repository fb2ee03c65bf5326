"""Graphs as TensorFlow 1 wrote them: loops and branches of single nodes, reference variables, their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as ours

X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


@pytest.fixture
def old(tensorflow: Any) -> Iterator[None]:
    """Makes TensorFlow build loops and branches from Switch, Merge and similar ops."""
    before = tensorflow.control_flow_v2_enabled()
    tensorflow.disable_control_flow_v2()
    yield
    if before:
        tensorflow.enable_control_flow_v2()


def power(tf: Any, f: Any) -> Any:
    factor = f(X)
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, tf.matmul(x, factor) * 0.5), [0, f(X)])


def nested(tf: Any, f: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + tf.cast(j, tf.float32)), [0, total])
        return i + 1, inner[1]

    return tf.while_loop(lambda i, t: i < 6, row, [0, f(np.float32(0.5))])


def collatz(tf: Any, f: Any) -> Any:
    def step(n: Any, count: Any) -> Any:
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), count + 1

    return tf.while_loop(lambda n, count: n > 1, step, [f(np.int32(27)), 0])


def cases(tf: Any, f: Any) -> Any:
    x = f(np.float32(3.0))
    pairs = [(x < 0, lambda: -x), (x < 2, lambda: x * 2)]
    return tf.case(pairs, default=lambda: tf.cond(x < 4, lambda: x * x, lambda: x - 1))


def branch_gradient(tf: Any, f: Any) -> Any:
    x = f(X)
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x) * x, lambda: x)
    return [y, *tf.gradients(y, x)]


def loop_in_a_branch(tf: Any, f: Any) -> Any:
    x = f(X)

    def powers() -> Any:
        return tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * v + 0.1), [0, x])[1]

    y = tf.cond(tf.reduce_sum(x) > 0, powers, lambda: x * 2)
    return [y, *tf.gradients(y, x)]


def branch_in_a_loop(tf: Any, f: Any) -> Any:
    x = f(X)

    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(v) * v, lambda: v * 0.5)

    y = tf.while_loop(lambda i, v: i < 5, body, [0, x])[1]
    return [y, *tf.gradients(y, x)]


def counter(tf: Any, f: Any) -> Any:
    v = tf.Variable(1.0, use_resource=False)
    with tf.control_dependencies([tf.global_variables_initializer()]):
        loop = tf.while_loop(lambda i: i < 3, lambda i: i + tf.cast(tf.assign_add(v, 2.0) * 0 + 1, tf.int32), [0])
    with tf.control_dependencies([loop]):
        return [loop, v + 0.0]


GRAPHS: dict[str, Callable[..., Any]] = {
    "power": power,
    "nested": nested,
    "collatz": collatz,
    "cases": cases,
    "branch_gradient": branch_gradient,
    "loop_in_a_branch": loop_in_a_branch,
    "branch_in_a_loop": branch_in_a_loop,
    "counter": counter,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS.keys())
def test_old_graph_gives_what_tensorflow_gives(build: Any, carry_over: Callable[[Any], int], old: None) -> None:
    assert carry_over(build) > 0


class LSTM:
    """A cell as `tf.compat.v1.nn.dynamic_rnn` takes it."""

    output_size, state_size = 6, (6, 6)

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        return (self.tf.zeros([batch, 6], dtype),) * 2

    def __call__(self, x: Any, state: Any, scope: Any = None) -> Any:
        tf, (c, h) = self.tf, state
        kernel, bias = tf.get_variable("kernel", [10, 24]), tf.get_variable("bias", [24])
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


@pytest.mark.parametrize("lengths", [None, [2, 4, 3]], ids=["whole", "of lengths"])
def test_frozen_dynamic_rnn_gives_what_tensorflow_gives(tensorflow: Any, old: None, lengths: Any) -> None:
    tf = tensorflow
    value = np.random.default_rng(1).standard_normal((3, 5, 4)).astype(np.float32)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, 4], name="x")
        y, _ = tf.nn.dynamic_rnn(LSTM(tf), x, None if lengths is None else tf.constant(lengths), dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        wanted = session.run(y, {x: value})
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), [y.op.name])
    with ours.Graph().as_default() as same, ours.Session(graph=same) as session:
        ours.import_graph_def(frozen, name="")
        np.testing.assert_allclose(session.run(y.name, {"x:0": value}), wanted, rtol=0, atol=1e-6)
        assert len(session.explain(y.name, {"x:0": value}).rewritten("dense_lists")) == 1


def recurrent_training(tf: Any) -> tuple[str, str, str]:
    """Returns an LSTM on tensor arrays, a branch, and Adam, with reference variables: names of
    loss, step and initializer.
    """
    rng = np.random.default_rng(0)

    def variable(name: str, *shape: int) -> Any:
        start = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        return tf.get_variable(name, initializer=start, use_resource=False)

    x, labels = tf.placeholder(tf.float32, [None, 5, 4], name="x"), tf.placeholder(tf.int32, [None], name="labels")
    training = tf.placeholder(tf.bool, [], name="training")
    kernel, bias, output = variable("kernel", 10, 24), variable("bias", 24), variable("output", 6, 3)
    inputs = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))

    def step(t: Any, h: Any, c: Any, outputs: Any) -> Any:
        i, j, f, o = tf.split(tf.matmul(tf.concat([inputs.read(t), h], 1), kernel) + bias, 4, 1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, h, c, outputs.write(t, h)

    zeros = tf.zeros([tf.shape(x)[0], 6])
    start = [0, zeros, zeros, tf.TensorArray(tf.float32, 5)]
    _, h, _, outputs = tf.while_loop(lambda t, *_: t < 5, step, start)
    features = tf.cond(training, lambda: h + tf.reduce_mean(outputs.stack(), 0), lambda: h)
    logits = tf.matmul(features, output)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.AdamOptimizer(1e-3).minimize(loss)
    return loss.name, step.name, tf.global_variables_initializer().name


def test_old_training_graph_gives_tensorflows_losses(tensorflow: Any, old: None) -> None:
    tf = tensorflow
    rng = np.random.default_rng(1)
    batches = [
        {
            "x:0": rng.standard_normal((6, 5, 4)).astype(np.float32),
            "labels:0": rng.integers(0, 3, 6).astype(np.int32),
            "training:0": i % 2 == 0,
        }
        for i in range(10)
    ]
    with tf.Graph().as_default() as graph:
        loss, step, initializer = recurrent_training(tf)
        with tf.Session() as session:
            session.run(initializer)
            wanted = [session.run([loss, step], batch)[0] for batch in batches]
    with ours.Graph().as_default() as same:
        ours.import_graph_def(graph.as_graph_def(), name="")
    with ours.Session(graph=same) as session:
        session.run(initializer)
        found = [session.run([loss, step], batch)[0] for batch in batches]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)  # float32, and Adam at a learning rate where it is not chaotic

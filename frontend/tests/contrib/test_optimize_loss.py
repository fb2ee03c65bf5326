"""tf.contrib.layers.optimize_loss and embed_sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

layers = tf.contrib.layers


@pytest.fixture(autouse=True)
def global_step(session: tf.Session) -> None:
    tf.train.create_global_step()


def start(session: tf.Session) -> Any:
    """Returns a variable [3, 4] and a loss whose gradient is the variable itself."""
    x = tf.get_variable("x", initializer=[3.0, 4.0])
    return x, tf.reduce_sum(tf.square(x)) / 2


@pytest.mark.parametrize(
    "optimizer",
    ["SGD", tf.train.GradientDescentOptimizer, tf.train.GradientDescentOptimizer(0.5),
     lambda rate: tf.train.GradientDescentOptimizer(rate)],
)  # fmt: skip
def test_a_step_of_each_kind_of_optimizer(session: tf.Session, optimizer: Any) -> None:
    x, loss = start(session)
    train = layers.optimize_loss(loss, None, 0.5, optimizer)
    session.run(tf.global_variables_initializer())
    assert session.run(train) == 12.5
    assert session.run(x).tolist() == [1.5, 2.0]
    assert session.run(tf.train.get_global_step()) == 1


def test_the_learning_rate_is_a_variable(session: tf.Session) -> None:
    _, loss = start(session)
    layers.optimize_loss(loss, tf.train.get_global_step(), 0.25, "Adam")
    names = [v.op.name for v in tf.global_variables()]
    assert "OptimizeLoss/learning_rate" in names
    assert "OptimizeLoss/x/Adam" in names


def test_a_decayed_rate(session: tf.Session) -> None:
    x, loss = start(session)
    train = layers.optimize_loss(loss, None, 1.0, "SGD", learning_rate_decay_fn=lambda rate, step: rate * 0.5)
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(x).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("clip", [1.0, lambda pairs: [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs]])
def test_gradients_are_clipped(session: tf.Session, clip: Any) -> None:
    x, loss = start(session)
    train = layers.optimize_loss(loss, None, 1.0, "SGD", clip_gradients=clip)
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run(x), [2.4, 3.2], rtol=1e-6)


def test_factors_of_gradients(session: tf.Session) -> None:
    x, loss = start(session)
    train = layers.optimize_loss(loss, None, 0.5, "SGD", gradient_multipliers={x: 2.0})
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(x).tolist() == [0.0, 0.0]


def test_updates_run_before_the_step(session: tf.Session) -> None:
    _, loss = start(session)
    count = tf.get_variable("count", initializer=0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1))
    train = layers.optimize_loss(loss, None, 0.5, "SGD", increment_global_step=False)
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run([count, tf.train.get_global_step()]) == [1, 0]


def test_summaries(session: tf.Session) -> None:
    _, loss = start(session)
    layers.optimize_loss(loss, None, 0.5, "SGD", summaries=layers.OPTIMIZER_SUMMARIES)
    session.run(tf.global_variables_initializer())
    written = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    tags = {value.tag: value.simple_value for value in written.value}
    assert tags["OptimizeLoss/global_norm/gradient_norm"] == 5.0
    assert tags["OptimizeLoss/learning_rate_1"] == 0.5  # the variable has the name itself
    assert {"OptimizeLoss/loss", "OptimizeLoss/gradients/x_0", "OptimizeLoss/gradient_norm/x_0"} < set(tags)


def test_norms_before_and_after_clipping(session: tf.Session) -> None:
    _, loss = start(session)
    layers.optimize_loss(loss, None, 0.5, "SGD", clip_gradients=1.0, summaries=["gradient_norm"])
    session.run(tf.global_variables_initializer())
    written = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    tags = {value.tag: value.simple_value for value in written.value}
    assert tags["OptimizeLoss/global_norm/gradient_norm"] == 5.0
    assert tags["OptimizeLoss/global_norm/clipped_gradient_norm"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer is 'sgd'; Adagrad, Adam"),
        ({"optimizer": 3}, "optimizer is 3; an optimizer is required"),
        ({"learning_rate": None}, "learning_rate is None"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0; it must not be negative"),
        ({"summaries": ["losses"]}, "summaries are"),
    ],
)
def test_wrong_arguments(session: tf.Session, arguments: dict[str, Any], message: str) -> None:
    _, loss = start(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        layers.optimize_loss(loss, None, **{"learning_rate": 0.5, "optimizer": "SGD", **arguments})


def test_embedded_sequences_share_a_table(session: tf.Session) -> None:
    ids = np.array([[1, 2], [0, 1]])
    first = layers.embed_sequence(ids, 3, 4, scope="words")
    again = layers.embed_sequence(ids, scope="words", reuse=True)
    session.run(tf.global_variables_initializer())
    one, two, table = session.run([first, again, tf.trainable_variables()[0]])
    assert one.tolist() == two.tolist() == table[ids].tolist()
    assert tf.trainable_variables()[0].op.name == "words/embeddings"


def test_an_embedding_needs_its_size() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="both are required without reuse"):
        layers.embed_sequence([[1]], 3)

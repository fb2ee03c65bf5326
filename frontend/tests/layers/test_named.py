"""Functions of layers by Keras's names, and what layers require of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import run

pytestmark = pytest.mark.usefixtures("session")

X = np.array([[-4.0, -1.0, 0.5, 3.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("hard_sigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        ("linear", lambda x: x),
        ("exponential", np.exp),
        ("softmax", lambda x: np.exp(x) / np.exp(x).sum()),
        ("tanh", np.tanh),
    ],
)
def test_activations_by_name(session: tf.Session, name: str, function: Callable[[Any], Any]) -> None:
    made = tf.layers.dense(X, 4, activation=name, kernel_initializer="identity")
    np.testing.assert_allclose(run(session, made), function(X), rtol=1e-6)


def test_convolutions_and_cells_take_names(session: tf.Session) -> None:
    image = tf.layers.conv1d(X[..., None], 1, 1, activation="relu", kernel_initializer="ones")
    output, _ = tf.nn.rnn_cell.BasicRNNCell(4, activation="relu")(X, -np.ones((1, 4), np.float32))
    got, outputs = run(session, [image, output])
    assert got[0, :, 0].tolist() == [0.0, 0.0, 0.5, 3.0]
    assert (outputs >= 0).all()


@pytest.mark.parametrize(("name", "bound"), [("random_uniform", 0.05), ("lecun_uniform", (3 / 4) ** 0.5)])
def test_initializers_by_name(session: tf.Session, name: str, bound: float) -> None:
    tf.layers.dense(X, 200, kernel_initializer=name)
    kernel = run(session, tf.global_variables()[0])
    assert 0.9 * bound < np.abs(kernel).max() <= bound


@pytest.mark.parametrize(("name", "loss"), [("l1", 0.16), ("l2", 0.16), ("l1_l2", 0.32)])
def test_regularizers_by_name(session: tf.Session, name: str, loss: float) -> None:
    tf.layers.dense(X, 4, kernel_initializer="ones", kernel_regularizer=name)
    np.testing.assert_allclose(run(session, tf.losses.get_regularization_loss()), loss, rtol=1e-6)


@pytest.mark.parametrize(("name", "kernel"), [("non_neg", [[0.0], [4.0]]), ("unit_norm", [[-0.6], [0.8]]),
                                              ("max_norm", [[-1.2], [1.6]])])  # fmt: skip
def test_constraints_by_name(session: tf.Session, name: str, kernel: list[list[float]]) -> None:
    start = tf.constant_initializer([[-3.0], [4.0]])
    y = tf.layers.dense(np.zeros((1, 2), np.float32), 1, kernel_initializer=start, kernel_constraint=name)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    run(session, train)
    np.testing.assert_allclose(session.run(tf.global_variables()[0]), kernel, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.layers.dense(X, 2, activation="rleu"), "layer 'dense': activation is 'rleu'; the names are elu, "),
        (lambda: tf.layers.dense(X, 2, activation=3), "activation is 3; a function, the name of one, or None"),
        (lambda: tf.layers.dense(X, 2, kernel_initializer="x"), "variable 'kernel': initializer is 'x'; the names are"),
        (lambda: tf.layers.dense(X, "2"), "units is '2'; an integer is required"),
        (lambda: tf.layers.dense(X.astype(int), 2), "the inputs have dtype int64; a floating or complex dtype"),
        (lambda: tf.layers.batch_normalization(X.astype(int)), "the inputs have dtype int64; a floating or complex"),
        (lambda: tf.nn.rnn_cell.GRUCell(2, activation="x"), "GRUCell: activation is 'x'; the names are"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.OpError, match=message):
        call()


def test_a_layer_of_integers_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        tf.layers.dense(np.ones((2, 3), np.int32), 2)

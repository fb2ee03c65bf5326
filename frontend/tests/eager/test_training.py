"""Variables, layers, losses and optimizers in eager execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

X: Any = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


def test_a_variable_has_its_value() -> None:
    assert tf.Variable([1, 2]).numpy().tolist() == [1, 2]


def test_a_variables_initial_value_may_be_a_function() -> None:
    assert tf.Variable(lambda: tf.ones([2])).numpy().tolist() == [1, 1]


def test_a_variables_name_is_the_users() -> None:
    with tf.name_scope("a"):
        assert tf.Variable(1.0, name="b").name == "a/b:0"


def test_variables_of_one_name_are_apart() -> None:
    a, b = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="v")
    a.assign(5.0)
    assert (float(a), float(b)) == (5, 2)


def test_assignments_change_the_value_and_give_the_variable() -> None:
    v = tf.Variable([1.0, 2.0])
    assert v.assign([3.0, 4.0]).numpy().tolist() == [3, 4]
    assert v.assign_add([1.0, 1.0]).numpy().tolist() == [4, 5]
    assert v.assign_sub([1.0, 2.0]).numpy().tolist() == [3, 3]


def test_tf_assign_changes_the_value() -> None:
    v = tf.Variable(1.0)
    tf.assign(v, 2.0)
    tf.assign_add(v, 3.0)
    assert float(v) == 5


def test_a_value_that_was_read_stays_as_it_was() -> None:
    v = tf.Variable([1.0, 2.0])
    before = v.read_value()
    v.assign_add([1.0, 1.0])
    assert before.numpy().tolist() == [1, 2]


def test_a_variable_computes_like_a_tensor() -> None:
    v = tf.Variable(X)
    np.testing.assert_array_equal((v * 2.0 + v[0]).numpy(), X * 2 + X[0])


def test_rows_of_a_variable_are_updated() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    tf.scatter_add(v, [0, 2], [10.0, 20.0])
    assert v.numpy().tolist() == [11, 2, 23]


def test_a_wrong_assignment_is_the_users_error() -> None:
    v = tf.Variable([1.0, 2.0], name="weights")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_training.py"):
        v.assign([1.0, 2.0, 3.0])
    assert v.numpy().tolist() == [1, 2]


def test_repr_shows_name_and_value() -> None:
    shown = repr(tf.Variable(1.0, name="w"))
    assert shown == "<tf.Variable 'w:0' shape=() dtype=float32, numpy=np.float32(1.0)>"


def test_get_variable_makes_a_new_variable_each_time() -> None:
    a, b = (tf.get_variable("same", [2], initializer=tf.zeros_initializer()) for _ in range(2))
    a.assign([1.0, 1.0])
    assert b.numpy().tolist() == [0, 0]


def test_collections_stay_empty() -> None:
    tf.Variable(1.0)
    tf.layers.Dense(2, kernel_regularizer=lambda w: tf.reduce_sum(w))(X)
    assert tf.global_variables() == tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []


def test_the_global_step_counts() -> None:
    v = tf.Variable(1.0)
    step = tf.train.get_or_create_global_step()
    before = int(step)
    tf.train.GradientDescentOptimizer(0.1).minimize(lambda: v * v, global_step=step)
    assert int(tf.train.get_global_step()) == before + 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.GradientDescentOptimizer(0.1), lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.AdamOptimizer(0.1), lambda: tf.train.AdagradOptimizer(0.1),
        lambda: tf.train.RMSPropOptimizer(0.1), lambda: tf.train.AdadeltaOptimizer(0.1),
        lambda: tf.train.FtrlOptimizer(0.1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [False, True])
def test_optimizers_step_as_they_do_in_a_graph(make: Any, rows: bool) -> None:
    def loss(v: Any) -> Any:
        return tf.reduce_sum(tf.gather(v, [0, 2, 2]) ** 2 if rows else v * v)

    v = tf.Variable(X)
    optimizer = make()
    for _ in range(3):
        optimizer.minimize(lambda: loss(v))
    with tf.Graph().as_default(), tf.Session() as session:
        other = tf.Variable(X)
        train = make().minimize(loss(other))
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        np.testing.assert_allclose(v.numpy(), session.run(other), rtol=1e-6)


def test_apply_gradients_takes_a_tapes() -> None:
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = v * v
    tf.train.GradientDescentOptimizer(0.5).apply_gradients([(tape.gradient(loss, v), v)])
    assert float(v) == 0


def test_a_loss_that_is_a_tensor_is_refused() -> None:
    v = tf.Variable(3.0)
    with pytest.raises(RuntimeError, match="a function that computes it is required"):
        tf.train.GradientDescentOptimizer(0.5).minimize(v * v)


def test_slots_are_found_by_their_variable() -> None:
    a, b = tf.Variable([1.0], name="v"), tf.Variable([1.0, 2.0], name="v")
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(lambda: tf.reduce_sum(a) + tf.reduce_sum(b))
    assert optimizer.get_slot(a, "momentum").shape.as_list() == [1]
    assert optimizer.get_slot(b, "momentum").shape.as_list() == [2]


def test_a_learning_rate_decays_with_the_step() -> None:
    step = tf.Variable(2, trainable=False)
    assert float(tf.train.exponential_decay(1.0, step, 1, 0.5)) == 0.25


def test_a_layer_keeps_its_variables() -> None:
    layer = tf.layers.Dense(4, name="hidden")
    first, second = layer(X), layer(X)
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert [v.name for v in layer.variables] == ["hidden/kernel:0", "hidden/bias:0"]


def test_a_layers_losses_are_those_of_its_present_weights() -> None:
    layer = tf.layers.Dense(1, kernel_initializer=tf.ones_initializer(), kernel_regularizer=tf.reduce_sum)
    layer(X)
    layer.kernel.assign(tf.zeros([2, 1]))
    assert [float(x) for x in layer.losses] == [0]


def test_batch_normalization_moves_its_means() -> None:
    layer = tf.layers.BatchNormalization(momentum=0.5)
    layer(X, training=True)
    np.testing.assert_allclose(layer.moving_mean.numpy(), X.mean(0) / 2)


def test_losses_are_values() -> None:
    assert float(tf.losses.mean_squared_error(X, X + 1.0)) == 1


def test_a_network_learns() -> None:
    tf.set_random_seed(1)
    inputs, labels = tf.constant([[0.0, 0], [0, 1], [1, 0], [1, 1]]), tf.constant([[0.0], [1], [1], [0]])
    hidden, output = tf.layers.Dense(8, tf.tanh), tf.layers.Dense(1)
    optimizer = tf.train.AdamOptimizer(0.1)
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = tf.losses.sigmoid_cross_entropy(labels, output(hidden(inputs)))
        variables = hidden.variables + output.variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    np.testing.assert_array_equal(output(hidden(inputs)).numpy() > 0, labels.numpy() > 0.5)


def test_recurrent_cells_step() -> None:
    cell = tf.nn.rnn_cell.BasicLSTMCell(3)
    output, _ = cell(tf.constant(X), cell.zero_state(3, tf.float32))
    assert output.shape.as_list() == [3, 3]

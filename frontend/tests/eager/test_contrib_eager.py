"""tf.contrib.eager: gradients of functions, metrics, stores of variables, savers, tests in both modes."""

from __future__ import annotations

import gc
import threading
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

tfe = tf.contrib.eager


def test_gradients_function_differentiates_the_arguments() -> None:
    assert [float(g) for g in tfe.gradients_function(lambda x, y: x * x * y)(2.0, 3.0)] == [12, 4]


def test_gradients_function_differentiates_those_named() -> None:
    assert [float(g) for g in tfe.gradients_function(lambda x, y: x * x * y, params=[1])(2.0, 3.0)] == [4]


def test_gradients_functions_nest() -> None:
    def first(x: Any) -> Any:
        return tfe.gradients_function(lambda v: v**3)(x)[0]

    assert float(tfe.gradients_function(first)(2.0)[0]) == 12


def test_value_and_gradients_function_takes_a_gradient_to_begin_with() -> None:
    value, (gradient,) = tfe.value_and_gradients_function(lambda x: x * x)(3.0, dy=10.0)
    assert (float(value), float(gradient)) == (9, 60)


def test_implicit_gradients_differentiate_the_variables() -> None:
    v = tfe.Variable(3.0)
    ((gradient, variable),) = tfe.implicit_gradients(lambda x: x * v * v)(2.0)
    assert (float(gradient), variable) == (12, v)


def test_implicit_value_and_gradients_suit_an_optimizer() -> None:
    v = tfe.Variable(3.0)
    value, pairs = tfe.implicit_value_and_gradients(lambda: v * v)()
    tf.train.GradientDescentOptimizer(0.5).apply_gradients(pairs)
    assert (float(value), float(v)) == (9, 0)


def test_implicit_gradients_without_variables_are_the_users_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no trainable variable"):
        tfe.implicit_gradients(lambda x: x)(1.0)


def test_metrics_add_up() -> None:
    mean, accuracy = tfe.metrics.Mean("loss"), tfe.metrics.Accuracy()
    mean([1.0, 2.0])
    mean(6.0)
    accuracy([1, 2, 3], [1, 2, 4])
    assert float(mean.result()) == 3
    np.testing.assert_allclose(accuracy.result().numpy(), 2 / 3)


def test_metrics_begin_anew() -> None:
    mean = tfe.metrics.Mean()
    mean(5.0)
    mean.init_variables()
    mean(1.0, weights=2.0)
    assert float(mean.result()) == 1


def test_a_variable_store_finds_variables_again() -> None:
    store = tfe.EagerVariableStore()
    for _ in range(2):
        with store.as_default():
            tf.layers.dense(tf.ones([1, 3]), 2, name="layer")
    assert [v.name for v in store.variables()] == ["layer/bias:0", "layer/kernel:0"]


def test_a_template_shares_its_variables() -> None:
    template = tfe.make_template("shared", lambda x: tf.layers.dense(x, 2, name="layer"))
    first, second = template(tf.ones([1, 3])), template(tf.ones([1, 3]))
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert len(template.trainable_variables) == 2


def test_a_saver_restores_what_it_saved(tmp_path: Path) -> None:
    v, w = tfe.Variable([1.0, 2.0], name="v"), tfe.Variable(3, name="w")
    path = tfe.Saver([v, w]).save(str(tmp_path / "model"), global_step=tf.Variable(7))
    v.assign([0.0, 0.0])
    w.assign(0)
    tfe.Saver([v, w]).restore(path)
    assert path.endswith("model-7")
    assert (v.numpy().tolist(), int(w)) == ([1, 2], 3)


def test_a_graph_restores_what_was_saved_eagerly(tmp_path: Path) -> None:
    path = tf.train.Saver([tf.Variable([1.0, 2.0], name="v")]).save(None, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([0.0, 0.0], name="v")
        tf.train.Saver().restore(session, path)
        assert session.run(v).tolist() == [1, 2]


def test_a_saver_needs_its_variables() -> None:
    with pytest.raises(RuntimeError, match="var_list is None"):
        tf.train.Saver()


def test_devices_are_listed() -> None:
    assert tf.constant(1).device in tfe.list_devices()
    assert tfe.num_gpus() == len(tfe.list_devices()) - 1


@tfe.run_all_tests_in_graph_and_eager_modes
class BothModes(tf.test.TestCase):
    modes: list[bool] = []

    def test_both(self) -> None:
        self.modes.append(tf.executing_eagerly())
        self.assertAllEqual(self.evaluate(tf.constant([1, 2]) + 1), [2, 3])


BothModes.__test__ = False  # type: ignore[attr-defined]  # pytest would run it where all is eager


def test_a_test_runs_in_a_graph_and_eagerly() -> None:
    suite, result = unittest.defaultTestLoader.loadTestsFromTestCase(BothModes), unittest.TestResult()
    thread = threading.Thread(target=suite.run, args=(result,))  # where no graph is open
    thread.start()
    thread.join()
    assert (result.errors, result.failures) == ([], [])
    assert BothModes.modes == [False, True]


def test_variables_of_a_template_are_in_collections_as_long_as_it_lives() -> None:
    template = tf.make_template("t", lambda: tf.get_variable("v", [2]))
    assert template() is tf.trainable_variables()[0]
    assert tf.trainable_variables() == tf.global_variables()
    del template
    gc.collect()
    assert tf.trainable_variables() == tf.global_variables() == []


def test_losses_of_a_templates_variables_are_those_of_their_present_values() -> None:
    template = tf.make_template(
        "t", lambda: tf.get_variable("v", initializer=[3.0], regularizer=lambda v: tf.reduce_sum(v * v))
    )
    template().assign([2.0])
    assert float(tf.convert_to_tensor(tf.losses.get_regularization_losses()[0])) == 4.0


def test_a_template_that_is_made_in_another_one_keeps_its_variables_there() -> None:
    def inner_made_anew() -> Any:
        return tf.make_template("inner", lambda: tf.get_variable("v", [2]))()

    outer = tf.make_template("outer", inner_made_anew)
    assert outer() is outer()
    assert [v.name for v in outer.trainable_variables] == ["outer/inner/v:0"]

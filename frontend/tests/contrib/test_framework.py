"""tf.contrib.framework: variables from checkpoints and arrays, and choices between two functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf

framework = tf.contrib.framework


def test_variables_take_the_values_of_a_checkpoint(session: tf.Session, tmp_path: Path) -> None:
    a, b = (tf.get_variable(n, initializer=[1.0, 2.0]) for n in "ab")
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver([a]).save(session, str(tmp_path / "model"))
    session.run([tf.assign(v, [0.0, 0.0]) for v in (a, b)])
    framework.assign_from_checkpoint_fn(path, [a, b], ignore_missing_vars=True)(session)
    assert session.run(a).tolist() == [1, 2]
    assert session.run(b).tolist() == [0, 0]
    tf.contrib.slim.assign_from_checkpoint_fn(path, {"a": b})(session)
    assert session.run(b).tolist() == [1, 2]
    assert framework.assign_from_checkpoint_fn(path, [b], ignore_missing_vars=True) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="var_list is empty"):
        framework.assign_from_checkpoint_fn(path, [])


def test_variables_take_the_values_of_arrays(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        a = tf.get_variable("a", initializer=[1.0, 2.0])
    framework.assign_from_values_fn({"net/a": np.array([3.0, 4.0])})(session)
    assert session.run(a).tolist() == [3, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no variable 'b'"):
        framework.assign_from_values_fn({"b": 1.0})


def test_variables_by_their_whole_names(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        a, local = tf.get_variable("a", [2]), framework.local_variable(0.0)
    assert framework.get_unique_variable("net/a") is a
    assert framework.get_local_variables("net") == [local]
    assert local not in tf.global_variables()
    with pytest.raises(tf.errors.InvalidArgumentError, match="there are 0 variables 'a'"):
        framework.get_unique_variable("a")


def test_a_known_condition_is_decided_at_once(session: tf.Session) -> None:
    choices = (lambda: tf.constant(1), lambda: tf.constant(2))
    for known in (True, 1, tf.constant(True)):
        assert session.run(framework.smart_cond(known, *choices)) == 1
    assert not [op for op in tf.get_default_graph().get_operations() if op.type == "If"]
    x = tf.placeholder(tf.bool, [])
    chosen = framework.smart_cond(x, *choices)
    assert [session.run(chosen, {x: b}) for b in (True, False)] == [1, 2]
    with pytest.raises(tf.errors.InvalidTypeError, match="both must be functions"):
        framework.smart_cond(True, 3)


def test_the_open_name_scope(session: tf.Session) -> None:
    with tf.name_scope("a"), tf.name_scope("b"):
        assert framework.get_name_scope() == "a/b"
    assert framework.get_name_scope() == ""
    assert framework.is_tensor(tf.constant(1))
    assert not framework.is_tensor(1)

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


def test_an_assignment_from_a_checkpoint_feeds_its_values(session: tf.Session, tmp_path: Path) -> None:
    part = tf.fixed_size_partitioner(2)
    with tf.variable_scope("net", partitioner=part):
        divided = tf.get_variable("divided", initializer=tf.constant([1.0, 2.0, 3.0]))
    whole = tf.get_variable("whole", initializer=[4.0, 5.0])
    absent = tf.get_variable("absent", initializer=[6.0])
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver({"net/divided": divided, "whole": whole}).save(session, str(tmp_path / "model"))
    session.run([tf.assign(v, tf.zeros_like(v)) for v in (*divided, whole)])
    op, feed_dict = framework.assign_from_checkpoint(path, [*divided, whole])
    session.run(op, feed_dict)
    assert session.run(tf.concat([*divided, whole], 0)).tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="lacks 'absent'; it must have all variables"):
        framework.assign_from_checkpoint(path, [whole, absent])
    op, feed_dict = framework.assign_from_checkpoint(path, {"whole": whole, "absent": absent}, ignore_missing_vars=True)
    assert [list(x) for x in feed_dict.values()] == [[4, 5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'whole' has shape \(2,\) in it and \(1,\) in the graph"):
        framework.assign_from_checkpoint(path, {"whole": absent})


def test_an_assignment_from_arrays_reshapes_them(session: tf.Session) -> None:
    a = tf.get_variable("a", [2, 1])
    op, feed_dict = framework.assign_from_values({"a": [3.0, 4.0]})
    session.run(op, feed_dict)
    assert session.run(a).tolist() == [[3], [4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value of 'a' has shape \(3,\)"):
        framework.assign_from_values({"a": [3.0, 4.0, 5.0]})


def test_variables_by_parts_of_their_names(session: tf.Session) -> None:
    for scope in ("one", "two"):
        with tf.variable_scope(scope):
            tf.get_variable("kernel", [1])
            tf.get_variable("other_kernel", [1])
    tf.get_variable("kernel", [1])

    def names(variables: list[tf.Variable]) -> list[str]:
        return [v.op.name for v in variables]

    assert names(framework.get_variables_by_name("kernel")) == ["one/kernel", "two/kernel", "kernel"]
    assert names(framework.get_variables_by_name("kernel", "one")) == ["one/kernel"]
    assert names(framework.get_variables_by_suffix("kernel", "one")) == ["one/kernel", "one/other_kernel"]
    assert names(framework.get_variables("two", "two/kernel")) == []
    assert names(framework.get_variables(suffix="two/kernel")) == ["two/kernel"]
    chosen = framework.filter_variables(tf.global_variables(), ["one", "kernel:0$"], ["other"])
    assert names(chosen) == ["one/kernel", "two/kernel", "kernel"]
    assert names(framework.filter_variables(tf.global_variables(), ["kernel"], reg_search=False)) == ["kernel"]


def test_a_global_variable_is_saved_and_not_trained(session: tf.Session) -> None:
    made = framework.global_variable(1.0, name="count")
    assert tf.global_variables() == [made]
    assert tf.trainable_variables() == []
    assert framework.get_variable_full_name(made) == "count"


def test_the_name_of_a_part_is_that_of_the_whole(session: tf.Session) -> None:
    parts = tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2))
    assert {framework.get_variable_full_name(v) for v in parts} == {"w"}


def test_arguments_that_take_defaults(session: tf.Session) -> None:
    @framework.add_arg_scope
    def scaled(x: float, by: float = 1.0, name: str | None = None) -> float:
        return x * by

    assert framework.arg_scoped_arguments(scaled) == ("by", "name")
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes no defaults"):
        framework.arg_scoped_arguments(len)


def test_a_device_chooser_takes_the_tasks_in_rotation(session: tf.Session) -> None:
    choose = framework.VariableDeviceChooser(num_tasks=2, replica=1)
    made = [framework.variable(name, [1], device=choose) for name in "abc"]
    assert [v.device for v in made] == [f"/job:ps/replica:1/task:{i}/device:CPU:0" for i in (0, 1, 0)]


def test_a_device_chooser_without_tasks_gives_one_device(session: tf.Session) -> None:
    assert framework.VariableDeviceChooser(device_type="GPU", device_index=None)(None) == "/device:GPU:*"

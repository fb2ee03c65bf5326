"""Values of variables, read out of a session and assigned in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def test_values_that_were_read_outlive_later_updates(session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    (before,) = session.read_variables([v])
    session.run(v.assign_add([1.0, 1.0]))
    np.testing.assert_array_equal(before, [1, 2])


@pytest.mark.parametrize(
    "view",
    [lambda x: x.numpy(), np.asarray, lambda x: np.asarray(x)[1:], np.from_dlpack, lambda x: x.numpy().reshape(2, 1)],
)
def test_an_array_over_a_value_that_was_read_keeps_it(view: Callable[[Any], np.ndarray], session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    held = view(session.read_variables([v])[0])
    before = held.copy()
    for _ in range(3):
        session.run(v.assign_add([1.0, 1.0]))
    np.testing.assert_array_equal(held, before)
    np.testing.assert_array_equal(session.run(v), [4, 5])


def test_a_variable_is_written_in_place_again_when_what_was_read_is_dropped(session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    update = v.assign_add([1.0, 1.0], read_value=False)  # what is fetched is not written over

    def address() -> int:
        return session.read_variables([v])[0].numpy().ctypes.data

    before = address()
    session.run(update)
    assert address() == before
    held = session.read_variables([v])[0].numpy()
    session.run(update)
    assert address() != before
    del held


def test_values_that_were_read_cannot_be_written(session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    found = session.read_variables([v])[0].numpy()
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 5


@pytest.mark.parametrize(
    "copied", [np.array, lambda x: np.asarray(x, copy=True), lambda x: np.from_dlpack(x, copy=True)]
)
def test_a_copy_of_a_value_that_was_read_may_be_written(
    copied: Callable[[Any], np.ndarray], session: tf.Session
) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    copied(session.read_variables([v])[0])[:] = 5
    np.testing.assert_array_equal(session.run(v), [1, 2])


def test_a_copy_of_strings_that_were_read_may_be_written(session: tf.Session) -> None:
    v = tf.Variable(["a", "b"])
    session.run(v.initializer)
    copied = np.array(session.read_variables([v])[0])
    copied[0] = b"c"
    assert (copied.tolist(), session.run(v).tolist()) == ([b"c", b"b"], [b"a", b"b"])


def test_a_value_in_the_memory_of_the_host_needs_no_copy_but_for_another_dtype(session: tf.Session) -> None:
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    (found,) = session.read_variables([v])
    np.testing.assert_array_equal(np.asarray(found, copy=False), [1, 2])
    with pytest.raises(ValueError, match="nable to avoid copy"):
        np.asarray(found, np.float64, copy=False)


@pytest.mark.parametrize("value", [np.array([b"a", b"bc"], object), np.zeros((0, 3)), np.float32(2), [1 + 2j]])
def test_values_of_any_kind_are_read(value: Any, session: tf.Session) -> None:
    v = tf.Variable(value)
    session.run(v.initializer)
    (found,) = session.read_variables([v])
    np.testing.assert_array_equal(found.numpy(), value)
    assert found.numpy().shape == np.shape(value)


def test_values_of_bfloat16_are_read(session: tf.Session) -> None:
    v = tf.Variable(tf.constant([1.5, 2.5], tf.bfloat16))
    session.run(v.initializer)
    found = session.read_variables([v])[0].numpy()
    assert found.dtype == tf.bfloat16.as_numpy_dtype
    assert found.astype(float).tolist() == [1.5, 2.5]


def test_a_variable_without_a_value_reads_as_none(session: tf.Session) -> None:
    assert session.read_variables([tf.Variable(1.0)]) == [None]


def test_assigned_values_are_what_runs_see(session: tf.Session) -> None:
    v, words = tf.Variable([1.0, 2.0]), tf.Variable(["a"])
    session.assign_variables([v, words], [[3, 4], ["b"]])
    np.testing.assert_array_equal(session.run(v * 2), [6, 8])
    assert session.run(words) == [b"b"]


def test_values_are_assigned_in_a_session_whose_graph_is_finalized(session: tf.Session) -> None:
    v = tf.Variable(1)
    session.graph.finalize()
    session.assign_variables([v], [5])
    assert session.run(v) == 5


def test_no_variable_changes_where_one_value_does_not_suit(session: tf.Session) -> None:
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable([3.0], name="w")
    session.run([v.initializer, w.initializer])
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        session.assign_variables([v, w], [[5, 6], [7, 8]])
    assert str(error.value) == "VarHandleOp 'w': the value has shape (2,); the variable's, (1,), is required"
    np.testing.assert_array_equal(session.run(v), [1, 2])


def test_a_variable_of_another_graph_is_refused(session: tf.Session) -> None:
    with tf.Graph().as_default():
        foreign = tf.Variable(1, name="foreign")
    with pytest.raises(tf.errors.InvalidArgumentError, match="'foreign': is of another graph; a variable of"):
        session.read_variables([foreign])


def test_variables_of_a_closed_session_are_gone(session: tf.Session) -> None:
    v = tf.Variable(1)
    session.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="session is closed"):
        session.read_variables([v])


def test_as_many_values_as_variables_are_required(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        session.assign_variables([tf.Variable(1)], [1, 2])
    assert str(error.value) == "assign_variables: 2 values for 1 variables; each needs one"


@pytest.mark.parametrize("given", [3, None, "v"])
def test_what_is_no_variable_is_refused(session: tf.Session, given: object) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{given!r} is no variable; a tf.Variable"):
        session.read_variables([given])


def test_a_tensor_is_no_variable(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'Const:0' .*is no variable"):
        session.assign_variables([tf.constant(1)], [2])


def test_assigning_to_no_variables_changes_nothing(session: tf.Session) -> None:
    v = tf.Variable(1)
    session.run(v.initializer)
    session.assign_variables([], [])
    assert session.run(v) == 1

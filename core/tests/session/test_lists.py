"""Lists of tensors as a session runs them: kept by the executor, or as dense tensors inside a device's program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

ROWS = np.arange(8.0).reshape(4, 2) / 4


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


@pytest.fixture
def no_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor carries out nothing itself: whatever runs, runs inside programs of devices."""

    def refuse(node: Any, *_: Any) -> Any:
        raise AssertionError(f"the executor was to do {node.op.name} '{node.name}'")

    monkeypatch.setattr("timberframe_core.runtime.executor.prepare", refuse)


def recurrent(x: Any) -> Any:
    """Returns a small recurrent network over the rows of x, and all its states."""
    weights = tf.constant([[0.5, -0.3], [0.2, 0.7]], tf.float64)
    return tf.scan(lambda h, row: tf.tanh(tf.matmul([h], weights)[0] + row), x, tf.zeros([2], tf.float64))


def early_exit(x: Any) -> Any:
    return tf.while_loop(
        lambda _, v: tf.reduce_sum(v) < 50.0, lambda i, v: (i + 1, v * v + 1.5), (0, x), maximum_iterations=9
    )[1]


def nested(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return tf.while_loop(lambda j, _: j < 2, lambda j, u: (j + 1, tf.sin(u) * x), (0, v))[1]

    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, inner(v)), (0, x))[1]


LOOPS = [recurrent, early_exit, nested, lambda x: tf.map_fn(lambda r: r * r, x)]


@pytest.mark.parametrize("build", LOOPS, ids=["recurrent", "early exit", "nested", "map"])
def test_loops_and_their_gradients_run_inside_programs(
    session: tf.Session, no_executor: None, build: Callable[[Any], Any]
) -> None:
    x = tf.placeholder(tf.float64, [None, 2])
    assert session.run(tf.gradients(build(x), x)[0], {x: ROWS}).shape == ROWS.shape


@pytest.mark.parametrize("build", LOOPS, ids=["recurrent", "early exit", "nested", "map"])
def test_both_ways_give_the_same_bits(
    session: tf.Session, monkeypatch: pytest.MonkeyPatch, build: Callable[[Any], Any]
) -> None:
    x = tf.placeholder(tf.float64, [None, 2])
    y = build(x)
    fetches = [y, tf.gradients(y, x)[0]]
    dense = session.run(fetches, {x: ROWS})
    with tf.Session(graph=session.graph, config=tf.SessionConfig(optimizations={"dense_lists": False})) as plain:
        kept = plain.run(fetches, {x: ROWS})
    assert [a.tobytes() for a in dense] == [a.tobytes() for a in kept]


def test_gradient_of_loops_within_many_others_runs_inside_programs(session: tf.Session, no_executor: None) -> None:
    def level(depth: int, v: Any) -> Any:
        if not depth:
            return tf.sin(v)
        return tf.while_loop(lambda i, _: i < 1, lambda i, u: (i + 1, tf.sin(level(depth - 1, u))), (0, v))[1]

    x = tf.placeholder(tf.float64, [])
    y = level(20, x)
    (slope,) = tf.gradients(y, x)
    step = 1e-6
    found, above, below = session.run(slope, {x: 0.5}), *(session.run(y, {x: 0.5 + s}) for s in (step, -step))
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6)


def test_another_length_is_another_plan(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [None, 2])
    total = tf.scan(lambda a, r: a + r, x)
    for rows in (ROWS, ROWS[:1], ROWS[:3], ROWS):
        assert session.run(total, {x: rows}).tolist() == rows.cumsum(0).tolist()


def test_number_of_iterations_may_be_fed(session: tf.Session) -> None:
    x, count = tf.placeholder(tf.float64, []), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, _: i < count, lambda i, v: (i + 1, v * x), (0, x))[1]
    grad = tf.gradients(y, x)[0]
    assert [session.run(grad, {x: 2.0, count: n}) for n in (0, 1, 3)] == [1, 4, 32]


def test_elements_may_change_their_shape(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [None])
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    grown = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.concat([v, v * x[0]], 0)), (0, x), shapes)[1]
    grad = tf.gradients(grown, x)[0]
    assert session.run(grown, {x: [2.0]}).tolist() == [2, 4, 4, 8, 4, 8, 8, 16]
    assert session.run(grad, {x: [2.0]}).tolist() == [1 + 3 * 4 + 3 * 12 + 32]


def test_index_outside_an_array_fails_inside_a_program_too(session: tf.Session, no_executor: None) -> None:
    rows = tf.TensorArray(tf.float64, 4).unstack(ROWS)
    y = tf.while_loop(lambda i, _: i < 9, lambda i, v: (i + 1, v + rows.read(i)), (0, tf.zeros([2], tf.float64)))[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"TensorArrayRead.*index 4 .*\[0, 4\)"):
        session.run(y)


def test_error_leaves_the_session_usable(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [None, 2])
    total = tf.scan(lambda a, r: a + r, x)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.TensorArray(tf.float64, 2).unstack(ROWS[:2]).read(5))
    assert session.run(total, {x: ROWS}).tolist() == ROWS.cumsum(0).tolist()


def test_ops_of_lists_without_loops(session: tf.Session) -> None:
    dtype, scalar = {"element_dtype": tf.float32}, np.zeros(0, np.int32)
    empty = apply_op("EmptyTensorList", [scalar, 2], dtype)
    pushed = apply_op("TensorListPushBack", [apply_op("TensorListPushBack", [empty, 1.0]), 2.0])
    popped, last = apply_op("TensorListPopBack", [pushed, scalar], dtype)
    both = apply_op("TensorListConcatLists", [pushed, popped], dtype)
    lengths = [apply_op("TensorListLength", [x]) for x in (empty, pushed, popped, both)]
    assert session.run([last, *lengths]) == [2, 0, 2, 1, 3]
    grown = apply_op("TensorListResize", [pushed, 4])
    assert session.run(apply_op("TensorListStack", [grown, scalar], dtype)).tolist() == [1, 2, 0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the list has 2 elements; it may have 2 at most"):
        session.run(apply_op("TensorListLength", [apply_op("TensorListPushBack", [pushed, 3.0])]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the list is empty"):
        session.run(apply_op("TensorListPopBack", [empty, scalar], dtype)[1])


def test_older_lists_stay_as_they_were(session: tf.Session) -> None:
    dtype = {"element_dtype": tf.int32}
    first = apply_op("TensorListFromTensor", [[1, 2, 3], np.zeros(0, np.int32)], dtype)
    second = apply_op("TensorListSetItem", [first, 1, 20])
    third = apply_op("TensorListSetItem", [first, 2, 30])
    found = session.run(
        [apply_op("TensorListStack", [x, np.zeros(0, np.int32)], dtype) for x in (first, second, third)]
    )
    assert [f.tolist() for f in found] == [[1, 2, 3], [1, 20, 3], [1, 2, 30]]


def test_loop_within_a_loop_that_the_executor_drives(session: tf.Session) -> None:
    """The inner loop changes a shape, which no program can do, so the outer one cannot be a program either."""
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]

    def body(i: Any, v: Any) -> Any:
        inner = tf.while_loop(lambda j, _: j < 2, lambda j, u: (j + 1, tf.concat([u, u], 0)), (0, v[:1]), shapes)[1]
        return i + 1, inner

    x = tf.placeholder(tf.float64, [None])
    y = tf.while_loop(lambda i, _: i < 3, body, (0, x), shapes)[1]
    assert session.run(y, {x: [1.0, 2.0, 3.0, 4.0]}).tolist() == [1, 1, 1, 1]


def test_tensor_array_of_an_older_graph(session: tf.Session) -> None:
    handle, flow = apply_op("TensorArrayV3", [3], {"dtype": tf.float32})
    for i, value in enumerate([1.0, 2.0, 3.0]):
        flow = apply_op("TensorArrayWriteV3", [handle, i, value, flow])
    values = apply_op("TensorArrayGatherV3", [handle, [2, 0], flow], {"dtype": tf.float32})
    assert session.run(values).tolist() == [3, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 has been written already"):
        session.run(apply_op("TensorArrayWriteV3", [handle, 0, 1.0, flow]))


def test_array_of_an_older_graph_has_gradients(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    handle, flow = apply_op("TensorArrayV3", [2], {"dtype": tf.float32, "clear_after_read": False})
    flow = apply_op("TensorArrayWriteV3", [handle, 1, x * x, apply_op("TensorArrayWriteV3", [handle, 0, x, flow])])
    read = [apply_op("TensorArrayReadV3", [handle, i, flow], {"dtype": tf.float32}) for i in (0, 1)]
    assert session.run(tf.gradients(read[0] * read[1], x)[0], {x: 3.0}) == 27


def test_variable_may_hold_lists(session: tf.Session) -> None:
    handle = apply_op("VarHandleOp", [], {"dtype": tf.variant, "shape": [2]}, "held")
    lists = [apply_op("TensorListFromTensor", [[x, x], np.zeros(0, np.int32)]) for x in (1.0, 2.0)]
    assign = apply_op("AssignVariableOp", [handle, apply_op("Pack", [lists])])
    one = apply_op("ResourceGather", [handle, 1], {"dtype": tf.variant})
    found = apply_op("TensorListStack", [one, np.zeros(0, np.int32)], {"element_dtype": tf.float32})
    with pytest.raises(tf.errors.FailedPreconditionError, match="variable 'held' has no value"):
        session.run(found)
    session.run(assign)
    assert session.run(found).tolist() == [2, 2]


def user_line(op: tf.Operation) -> str:
    return re.escape(op.where)


def test_error_in_a_program_names_the_line_of_the_read(session: tf.Session) -> None:
    count, reads = tf.placeholder(tf.int32, []), []
    array = tf.TensorArray(tf.float32, 3).unstack(tf.placeholder_with_default([1.0, 2.0, 3.0], [3]))

    def body(i: Any, total: Any) -> Any:
        reads.append(array.read(i))
        return i + 1, total + reads[0]

    total = tf.while_loop(lambda i, _: i < count, body, [0, 0.0])[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"index 3 .*{user_line(reads[0].op)}\]"):
        session.run(total, {count: 5})


def test_error_in_a_program_names_the_line_of_the_write(session: tf.Session) -> None:
    count, written = tf.placeholder(tf.int32, []), []

    def body(i: Any, array: Any) -> Any:
        written.append(array.write(i, 1.0))
        return i + 1, written[0]

    array = tf.while_loop(lambda i, _: i < count, body, [0, tf.TensorArray(tf.float32, 3)])[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"3 .*{user_line(written[0].flow.op)}\]"):
        session.run(array.stack(), {count: 5})


def test_error_of_a_list_that_the_executor_keeps_names_the_line_of_the_read(session: tf.Session) -> None:
    at = tf.placeholder(tf.int32, [])
    read = tf.TensorArray(tf.float32, 3).unstack([1.0, 2.0, 3.0]).read(at)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"index 5 .*{user_line(read.op)}\]"):
        session.run(read, {at: 5})

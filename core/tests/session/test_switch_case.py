"""tf.switch_case: which branch runs, and what its gradient is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.array([1, -2, 3], np.float32)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def three_ways(index: Any, x: Any) -> Any:
    return tf.switch_case(index, [lambda: x * x, lambda: tf.sin(x), lambda: 2.0 * x * x * x])


EXPECTED = [X * X, np.sin(X), 2 * X * X * X]
SLOPES = [2 * X, np.cos(X), 6 * X * X]
SECOND = [0 * X + 2, -np.sin(X), 12 * X]


@pytest.mark.parametrize(("index", "branch"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2), (2**31 - 1, 2)])
def test_branch_is_chosen_by_number_and_the_last_one_stands_for_all_others(
    session: tf.Session, index: int, branch: int
) -> None:
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    np.testing.assert_allclose(session.run(three_ways(i, x), {i: index, x: X}), EXPECTED[branch], rtol=1e-6)


def test_default_stands_for_numbers_that_no_function_has(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, [])
    result = tf.switch_case(i, {1: lambda: "one", 0: lambda: "none"}, default=lambda: "many")
    assert [session.run(result, {i: k}) for k in (0, 1, 2, -1)] == [b"none", b"one", b"many", b"many"]


def test_constant_index(session: tf.Session) -> None:
    assert session.run(tf.switch_case(tf.constant(1), [lambda: 5, lambda: 6])) == 6


def test_single_branch_runs_for_every_index(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, [])
    assert session.run(tf.switch_case(i, [lambda: i + 5]), {i: 7}) == 12


def test_only_the_chosen_branch_writes(session: tf.Session) -> None:
    v = tf.get_variable("v", initializer=1.0)
    session.run(v.initializer)
    i = tf.placeholder(tf.int32, [])
    step = tf.switch_case(i, [lambda: v.assign_add(1.0), lambda: v.assign_sub(10.0), lambda: v.read_value()])
    assert [float(session.run(step, {i: k})) for k in (0, 1, 2, 0)] == [2, -8, -8, -7]


def test_branches_may_give_different_shapes(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, [])
    result = tf.switch_case(i, [lambda: tf.constant(X), lambda: tf.constant(X[:1]), lambda: tf.constant(X[:2])])
    assert [session.run(result, {i: k}).shape for k in range(3)] == [(3,), (1,), (2,)]


def test_branches_of_operations_give_an_operation(session: tf.Session) -> None:
    v = tf.get_variable("v", initializer=1.0)
    session.run(v.initializer)
    i = tf.placeholder(tf.int32, [])
    step = tf.switch_case(i, [lambda: v.assign(5.0).op, tf.no_op])
    assert session.run(step, {i: 0}) is None
    assert session.run(v) == 5


def test_structure_of_a_branch_is_kept(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, [])
    result = tf.switch_case(i, [lambda: {"a": [1]}, lambda: {"a": [2]}])
    assert session.run(result, {i: 1}) == {"a": [2]}


def test_within_a_loop(session: tf.Session) -> None:
    def body(k: Any, total: Any) -> Any:
        return k + 1, total * 10 + tf.switch_case(k % 3, [lambda: 1, lambda: k, lambda: 7])

    n = tf.placeholder(tf.int32, [])
    assert session.run(tf.while_loop(lambda k, _: k < n, body, [0, 0]), {n: 6})[1] == 117147


def test_nested(session: tf.Session) -> None:
    i, j = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    inner = [lambda: tf.switch_case(j, [lambda: 1, lambda: 2]), lambda: tf.cond(j > 0, lambda: 3, lambda: 4)]
    result = tf.switch_case(i, inner)
    assert [int(session.run(result, {i: a, j: b})) for a in (0, 1) for b in (0, 1)] == [1, 2, 4, 3]


def test_list_made_in_a_branch(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, [])
    made = [lambda: tf.TensorArray(tf.float32, 3).unstack(X).stack(), lambda: tf.constant(X) * 2]
    assert session.run(tf.switch_case(i, made), {i: 0}).tolist() == X.tolist()


@pytest.mark.parametrize("index", range(4))
def test_gradient(session: tf.Session, index: int) -> None:
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    gradient = tf.gradients(three_ways(i, x), x)[0]
    np.testing.assert_allclose(session.run(gradient, {i: index, x: X}), SLOPES[min(index, 2)], rtol=1e-6)


@pytest.mark.parametrize("index", range(3))
def test_second_gradient(session: tf.Session, index: int) -> None:
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    second = tf.gradients(tf.gradients(three_ways(i, x), x)[0], x)[0]
    np.testing.assert_allclose(session.run(second, {i: index, x: X}), SECOND[index], rtol=1e-6)


def test_gradient_where_a_branch_leaves_the_input_out(session: tf.Session) -> None:
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
    y = tf.switch_case(i, [lambda: x * x, lambda: tf.constant(X), lambda: tf.exp(x)])
    gradient = tf.gradients(y, x)[0]
    assert session.run(gradient, {i: 1, x: X}).tolist() == [0, 0, 0]


def test_index_that_is_no_scalar_is_an_error_of_the_run(session: tf.Session) -> None:
    i = tf.placeholder(tf.int32, None)
    result = tf.switch_case(i, [lambda: 1, lambda: 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"branch_index has shape \(1,\); it must be a scalar"):
        session.run(result, {i: [1]})


def test_exported_and_imported_graph_gives_the_same(session: tf.Session) -> None:
    i, x = tf.placeholder(tf.int32, [], "i"), tf.placeholder(tf.float32, [3], "x")
    tf.identity(tf.gradients(three_ways(i, x), x)[0], "y")
    message = tf.get_default_graph().as_graph_def()
    assert sum(n.op == "StatelessCase" for n in message.node) == 2
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        assert graph.as_graph_def() == message
        with tf.Session() as other:
            for k in range(3):
                got = other.run("y:0", {"i:0": k, "x:0": X})
                np.testing.assert_allclose(got, SLOPES[k], rtol=1e-6)


def test_branches_run_inside_the_program_of_the_device(session: tf.Session) -> None:
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    explained = str(session.explain(three_ways(i, x), {i: 0, x: X}))
    assert "driven" not in explained

"""Variables, branches and loops of tf.* as a session runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def initialized(session: tf.Session, value: Any, **rest: Any) -> tf.Variable:
    variable = tf.Variable(value, **rest)
    session.run(variable.initializer)
    return variable


def test_assigns_return_the_new_value(session: tf.Session) -> None:
    v = initialized(session, X)
    assert session.run(v.assign_add([1.0, 1.0, 1.0])).tolist() == [2, -1, 4]
    assert session.run(v.assign_sub([2.0, 0.0, 0.0])).tolist() == [0, -1, 4]
    assert session.run(v.assign(X)).tolist() == X.tolist()


def test_variable_reads_like_a_tensor(session: tf.Session) -> None:
    v = initialized(session, X)
    assert session.run(2 * v + X).tolist() == (3 * X).tolist()
    assert session.run(v[1:]).tolist() == [-2, 3]


def test_uninitialized_variable_is_named_with_both_locations(session: tf.Session) -> None:
    v = tf.Variable(X, name="weights")
    made = r"variable 'weights' has no value; run its initializer first \(the variable was made at .*flow\.py:\d+\)"
    for needs in (v + 1, v.assign_add(X)):
        with pytest.raises(tf.errors.FailedPreconditionError, match=rf"{made}  \[.*flow\.py:\d+\]"):
            session.run(needs)


@pytest.mark.parametrize("shape", ["static", "unknown"])
def test_uninitialized_variable_is_named_in_bodies(session: tf.Session, shape: str) -> None:
    v = tf.Variable(1.0, name="weights", validate_shape=shape == "static")
    pred = tf.placeholder(tf.bool, [])
    branch = tf.cond(pred, lambda: v.assign_add(1.0), lambda: v * 2.0)
    loop = tf.while_loop(lambda x: x < 3.0, lambda x: x + tf.reshape(v, []), [0.0])
    for fetch, feeds in ((branch, {pred: True}), (branch, {pred: False}), (loop, {})):
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"'weights' has no value.*\[.*flow\.py:\d+\]"):
            session.run(fetch, feeds)
    session.run(v.initializer)
    assert session.run(branch, {pred: True}) == 2


def test_assertion_names_the_uninitialized(session: tf.Session) -> None:
    a, _ = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    check = tf.assert_variables_initialized()
    session.run(a.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"variables without a value:\] \[b\]"):
        session.run(check)
    session.run(tf.global_variables_initializer())
    session.run(check)


def test_initialized_value_falls_back_on_the_initial_value(session: tf.Session) -> None:
    v = tf.Variable(X)
    value = v.initialized_value()
    assert session.run(value).tolist() == X.tolist()
    session.run(v.assign(-X))
    assert session.run(value).tolist() == (-X).tolist()


def test_uninitialized_variables_are_reported(session: tf.Session) -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    report = tf.report_uninitialized_variables()
    assert session.run(report).tolist() == [b"a", b"b"]
    session.run(b.initializer)
    assert session.run(report).tolist() == [b"a"]
    session.run(a.initializer)
    assert session.run(report).tolist() == []


def test_variable_may_depend_on_another(session: tf.Session) -> None:
    a = tf.Variable(2.0)
    b = tf.Variable(a.initialized_value() * 3)
    session.run(tf.global_variables_initializer())
    assert session.run(b) == 6


def test_shape_may_change_without_validation(session: tf.Session) -> None:
    v = initialized(session, X, validate_shape=False)
    session.run(v.assign([[1.0]]))
    assert session.run(v).tolist() == [[1]]


def test_load_sets_the_value_at_once(session: tf.Session) -> None:
    v = initialized(session, X)
    v.load(-X, session)
    assert v.eval(session).tolist() == (-X).tolist()


def test_variables_of_every_kind_of_dtype(session: tf.Session) -> None:
    for value in (True, 7, np.int8(3), np.float16(0.5), 1 + 2j, "text"):
        v = initialized(session, value)
        assert session.run(v) == (value.encode() if isinstance(value, str) else value)


def test_branch_runs_only_what_was_chosen(session: tf.Session) -> None:
    v = initialized(session, 0.0)
    pred = tf.placeholder(tf.bool, [])
    result = tf.cond(pred, lambda: v.assign_add(1.0), lambda: v.assign_sub(10.0))
    assert session.run(result, {pred: True}) == 1
    assert session.run(result, {pred: False}) == -9


def test_branch_keeps_its_structure(session: tf.Session) -> None:
    result = tf.cond(tf.constant(False), lambda: {"a": 1, "b": [2, 3]}, lambda: {"a": 4, "b": [5, 6]})
    assert session.run(result) == {"a": 4, "b": [5, 6]}


def test_branches_may_give_different_shapes(session: tf.Session) -> None:
    pred = tf.placeholder(tf.bool, [])
    result = tf.cond(pred, lambda: tf.constant(X), lambda: tf.constant(X)[:1])
    assert [session.run(result, {pred: p}).shape for p in (True, False)] == [(3,), (1,)]


def test_branch_of_unknown_size(session: tf.Session) -> None:
    pred, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [None])
    result = tf.cond(pred, lambda: x + 1, lambda: x * 2)
    assert session.run(result, {pred: True, x: X}).tolist() == (X + 1).tolist()


def test_case_takes_the_first_true_predicate(session: tf.Session) -> None:
    n = tf.placeholder(tf.int32, [])
    result = tf.case([(n > 10, lambda: "large"), (n > 5, lambda: "middle")], default=lambda: "small")
    assert [session.run(result, {n: v}) for v in (11, 6, 1)] == [b"large", b"middle", b"small"]


def test_loop_over_a_size_that_feeds_decide(session: tf.Session) -> None:
    x, n = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    result = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), [0, tf.zeros_like(x)])
    assert session.run(result[1], {x: X, n: 4}).tolist() == (4 * X).tolist()
    assert session.run(result[1], {x: X[:1], n: 0}).tolist() == [0]


def test_loop_stops_at_its_maximum(session: tf.Session) -> None:
    assert session.run(tf.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=7)) == 7


def test_loop_may_grow_with_a_shape_invariant(session: tf.Session) -> None:
    result = tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, y], 0)), [0, tf.constant(X)], [[], [None]]
    )
    assert session.run(result[1]).shape == (24,)


def test_size_that_is_computed_long_before_it_is_needed(session: tf.Session) -> None:
    """It is on the host when nothing else is planned, and used when the loop has given its shape."""
    x, scores = tf.placeholder(tf.float32, [1]), tf.placeholder(tf.float32, [2, 4])
    shapes = (tf.TensorShape([]), tf.TensorShape([None]))
    grown = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.concat([v, v], 0)), (0, x * 2.0), shapes)[1]
    y = tf.reshape(grown, tf.argmax(scores * 2.0, axis=1, output_type=tf.int32))
    feeds = {x: [1.0], scores: [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]}
    assert session.run(y, feeds).tolist() == [[2, 2], [2, 2]]


def test_loop_changes_a_variable_in_each_iteration(session: tf.Session) -> None:
    v = initialized(session, 1.0)
    loop = tf.while_loop(lambda i: i < 5, lambda i: tf.tuple([i + 1], control_inputs=[v.assign(v * 2)])[0], [0])
    session.run(loop)
    assert session.run(v) == 32


def test_branch_within_a_loop_within_a_branch(session: tf.Session) -> None:
    x = tf.placeholder(tf.int32, [])

    def collatz() -> Any:
        def body(n: Any, steps: Any) -> Any:
            return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), steps + 1

        return tf.while_loop(lambda n, steps: n > 1, body, [x, 0])[1]

    result = tf.cond(x > 0, collatz, lambda: -1)
    assert [session.run(result, {x: n}) for n in (27, 1, -5)] == [111, 0, -1]


def test_gated_tensors_wait_for_the_update(session: tf.Session) -> None:
    v = initialized(session, 1.0)
    (x,) = tf.tuple([tf.constant(5.0)], control_inputs=[v.assign(9.0)])
    assert session.run(x) == 5
    assert session.run(v) == 9


def test_dense_value_of_indexed_slices(session: tf.Session) -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([2, 0, 2]), tf.constant([4, 1]))
    assert session.run(tf.convert_to_tensor(slices)).ravel().tolist() == [2, 0, 4, 0]


def test_indexed_slices_are_fetched_as_they_are(session: tf.Session) -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]))
    values, indices, dense_shape = session.run(slices)
    assert (values.tolist(), indices.tolist(), dense_shape) == ([[1]], [2], None)


def test_destroyed_variable_has_no_value(session: tf.Session) -> None:
    v = initialized(session, X)
    session.run(apply_op("DestroyResourceOp", [v.handle]))
    assert not session.run(v.is_initialized())
    session.run(v.initializer)
    assert session.run(v).tolist() == X.tolist()


def test_rows_of_a_variable_are_read_alone(session: tf.Session) -> None:
    v = initialized(session, np.arange(6, dtype=np.float32).reshape(3, 2))
    rows, slices = tf.gather(v, [2, 0]), tf.gather_nd(v, [[1, 1]])
    assert [x.op.type for x in (rows, slices)] == ["ResourceGather", "ResourceGatherNd"]
    assert session.run(rows).tolist() == [[4, 5], [0, 1]]
    assert session.run(slices).tolist() == [3]


def test_gradient_of_a_lookup_has_its_rows_alone(session: tf.Session) -> None:
    v = initialized(session, np.arange(6, dtype=np.float32).reshape(3, 2))
    (gradient,) = tf.gradients(tf.gather(v, [2, 0, 2]) * [[1.0], [2.0], [3.0]], v)
    found = session.run(gradient)
    assert found.indices.tolist() == [2, 0, 2]
    assert found.values.tolist() == [[1, 1], [2, 2], [3, 3]]
    (dense,) = tf.gradients(tf.gather_nd(v, [[2, 0], [2, 0]]), v)
    assert session.run(dense).tolist() == [[0, 0], [0, 0], [2, 0]]


def test_counter_stops_at_its_limit(session: tf.Session) -> None:
    v = initialized(session, 0)
    step = v.count_up_to(2)
    assert [session.run(step), session.run(step)] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="the counter has reached its limit 2"):
        session.run(step)
    assert session.run(v) == 2


def test_accesses_keep_program_order(session: tf.Session) -> None:
    v = initialized(session, 1.0)
    before = v.value()
    v.assign_add(1.0, read_value=False)
    grown = tf.group(v.assign(v * 10.0, read_value=False), v.assign_sub(3.0, read_value=False))
    after = v.value()
    assert session.run([after, grown, before]) == [7, None, 1]


def test_accesses_keep_program_order_in_bodies(session: tf.Session) -> None:
    v = initialized(session, 1.0)

    def body(i: tf.Tensor, seen: tf.Tensor) -> Any:
        before = v * 1.0
        v.assign_add(1.0, read_value=False)
        v.assign(v * 2.0, read_value=False)
        return i + 1, seen + before * 100.0 + v

    loop = tf.while_loop(lambda i, seen: i < 2, body, [0, 0.0])
    branch = tf.cond(tf.constant(True), lambda: v.assign_add(0.5) + 0.0, lambda: v.value())
    assert session.run([loop[1], branch, v.value()]) == [514, 10.5, 10.5]


def partial_accesses(v: tf.Variable) -> tf.Tensor:
    """Reads of a part between updates of parts, without control edges."""
    seen = [tf.gather(v, [0]) * 1.0]
    v.update("ResourceScatterAdd", [[0], [10.0]], None, read_value=False)
    seen.append(tf.gather(v, [0]) * 1.0)
    v.assign(v * 2.0, read_value=False)
    seen.append(tf.gather_nd(v, [[0]]))
    v.update("ResourceScatterNdAdd", [[[0]], [1.0]], None, read_value=False)
    return tf.concat([*seen, v[:1]], 0)


def test_partial_accesses_keep_program_order(session: tf.Session) -> None:
    v = initialized(session, [1.0, 2.0])
    flat = partial_accesses(v)
    updates = [op for op in session.graph.get_operations() if op.type.startswith("ResourceScatter")]
    assigns = [op for op in session.graph.get_operations() if op.type == "AssignVariableOp" and op is not v.initializer]
    assert session.run([flat, *updates, *assigns])[0].tolist() == [1, 11, 22, 23]
    branch = tf.cond(tf.constant(True), lambda: partial_accesses(v), lambda: tf.zeros([4]))
    assert session.run(branch).tolist() == [23, 33, 66, 67]
    loop = tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, partial_accesses(v)), [0, tf.zeros([4])])
    assert session.run(loop[1]).tolist() == [155, 165, 330, 331]

"""tf.cond, tf.case and tf.while_loop: what they build and what they refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

pytestmark = pytest.mark.usefixtures("graph")


def below(limit: Any) -> Callable[[Any], Any]:
    return lambda i, *_: apply_op("Less", [i, limit])


def plus_one(i: Any) -> Any:
    return apply_op("AddV2", [i, 1])


def test_pure_branches_make_a_stateless_if() -> None:
    x = tf.placeholder(tf.float32, [2])
    assert tf.cond(tf.placeholder(tf.bool, []), lambda: x, lambda: tf.constant([0.0, 0.0])).op.type == "StatelessIf"


def test_branch_that_reads_a_variable_makes_a_stateful_if() -> None:
    v = tf.Variable(1.0)
    assert tf.cond(tf.placeholder(tf.bool, []), v.read_value, lambda: 0.0).op.type == "If"


def test_branches_share_what_they_capture() -> None:
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    result = tf.cond(tf.placeholder(tf.bool, []), lambda: x, lambda: apply_op("AddV2", [y, x]))
    assert result.op.inputs[1:] == (x, y)


def test_result_shape_is_what_both_branches_have() -> None:
    a, b = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2, 4])
    assert tf.cond(tf.placeholder(tf.bool, []), lambda: a, lambda: b).static_shape == (2, None)


def test_structure_of_the_branches_comes_back() -> None:
    result = tf.cond(tf.placeholder(tf.bool, []), lambda: {"a": 1, "b": (2, 3)}, lambda: {"a": 4, "b": (5, 6)})
    assert set(result) == {"a", "b"}
    assert isinstance(result["b"], tuple)


def test_branches_of_operations_make_an_operation() -> None:
    v = tf.Variable(1.0)
    result = tf.cond(tf.placeholder(tf.bool, []), lambda: v.assign(2.0, read_value=False), lambda: tf.group())
    assert isinstance(result, tf.Operation)


@pytest.mark.parametrize(
    ("branches", "message"),
    [
        ((lambda: 1, lambda: 1.0), "result 0 is int32 in true_fn and float32 in false_fn"),
        ((lambda: [1, 2], lambda: [1]), "differ; they must have one form"),
        ((lambda: 1, None), "a branch is not callable"),
    ],
)
def test_branches_must_agree(branches: tuple[Any, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.cond(tf.placeholder(tf.bool, []), *branches)


def test_python_bool_is_no_predicate() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="pred is the Python bool True"):
        tf.cond(True, lambda: 1, lambda: 2)


def test_case_nests_its_choices() -> None:
    p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    result = tf.case([(p, lambda: 1), (q, lambda: 2)], default=lambda: 3)
    assert result.op.inputs[0] is p


def test_loop_over_one_variable_returns_it_bare() -> None:
    assert tf.while_loop(below(10), plus_one, [0]).op.type == "StatelessWhile"


def test_loop_keeps_the_structure() -> None:
    result = tf.while_loop(below(10), lambda i, d: (plus_one(i), {"x": d["x"]}), (0, {"x": 1.0}))
    assert isinstance(result, tuple)
    assert result[1]["x"].dtype is tf.float32


def test_loop_captures_outer_tensors() -> None:
    limit = tf.placeholder(tf.int32, [])
    assert tf.while_loop(below(limit), plus_one, [0]).op.inputs[1] is limit


def test_inner_loop_captures_through_the_outer_one() -> None:
    limit = tf.placeholder(tf.int32, [])
    result = tf.while_loop(below(10), lambda i: tf.while_loop(below(limit), plus_one, [i]), [0])
    assert result.op.inputs[1] is limit


def test_changing_shape_needs_an_invariant() -> None:
    x = tf.placeholder(tf.float32, [2])

    def grow(i: Any, t: Any) -> Any:
        return plus_one(i), apply_op("ConcatV2", [[t, x], 0])

    changes = r"has shape \(2,\) before an iteration and \(4,\) after it"
    with pytest.raises(tf.errors.InvalidArgumentError, match=changes):
        tf.while_loop(below(3), grow, [0, x])
    grown = tf.while_loop(below(3), grow, [0, x], shape_invariants=[[], [None]])
    assert grown[1].static_shape == (None,)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda i: (i, i), "differ; they must have one form"),
        (lambda i: apply_op("Cast", [i], {"DstT": tf.float32}), "has dtype float32; it must be int32"),
    ],
)
def test_body_must_return_what_it_got(body: Callable[..., Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.while_loop(below(3), body, [0])


def test_condition_must_be_a_scalar() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cond returns shape \(2,\)"):
        tf.while_loop(lambda i: tf.constant([True, False]), plus_one, [0])


def test_shape_invariant_must_hold_at_the_start() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"its shape invariant \(2,\) must hold from the start"):
        tf.while_loop(below(3), plus_one, [0], shape_invariants=[[2]])


def test_a_branch_divides_tensors_of_the_graph_around_it() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([3.0, 4.0])
        unit = tf.cond(tf.constant(True), lambda: x / tf.norm(x), lambda: x)
        np.testing.assert_allclose(session.run(unit), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("taken", [True, False])
def test_operations_of_a_branch_beside_others_become_tensors_that_run_them(taken: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.Variable(0.0), tf.Variable(0.0)
        done, value = tf.cond(
            tf.constant(taken), lambda: (a.assign(1.0).op, tf.constant(5)), lambda: (b.assign(1.0).op, tf.constant(6))
        )
        session.run(tf.global_variables_initializer())
        assert session.run([done, value]) == [True, 5 if taken else 6]
        assert session.run([a, b]) == [1.0 * taken, 1.0 * (not taken)]


def test_several_operations_of_a_branch_are_as_many_results() -> None:
    with tf.Graph().as_default():
        first, second = tf.cond(
            tf.placeholder(tf.bool), lambda: (tf.no_op(), tf.no_op()), lambda: (tf.no_op(), tf.no_op())
        )
        assert [first.dtype, second.dtype] == [tf.bool, tf.bool]


def test_random_ops_of_branches_and_loops_draw_other_numbers_than_all_others_of_the_graph() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        draw = functools.partial(tf.random_uniform, [4])
        seven = tf.placeholder_with_default(7, [])
        found = [
            draw(), tf.cond(seven > 0, draw, lambda: tf.zeros([4])), tf.cond(seven > 0, draw, lambda: tf.zeros([4])),
            tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, draw()), [0, tf.zeros([4])])[1], draw(),
        ]  # fmt: skip
        assert len({row.tobytes() for row in session.run(found)}) == len(found)


def test_an_operation_of_one_branch_is_true_where_the_other_returns_a_bool() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v, pred = tf.Variable(0.0), tf.placeholder(tf.bool)
        done = tf.cond(pred, lambda: v.assign(1.0).op, lambda: tf.constant(False))
        session.run(v.initializer)
        assert session.run(done, {pred: False}) == False  # noqa: E712 - a NumPy bool
        assert session.run(v) == 0
        assert session.run(done, {pred: True}) == True  # noqa: E712 - as above
        assert session.run(v) == 1


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_an_operation_made_outside_of_the_branch_that_returns_it_runs_before_either(taken: bool, nested: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0.0)
        made_outside = v.assign_add(1.0).op
        always = tf.constant(True)
        branch = (lambda: tf.cond(always, lambda: made_outside, tf.no_op)) if nested else lambda: made_outside
        chosen = tf.cond(tf.constant(taken), branch, tf.no_op)
        session.run(v.initializer)
        session.run(chosen)
        assert session.run(v) == 1

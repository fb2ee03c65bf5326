"""Loops and branches inside a program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from timberframe_core.errors import CancelledError, UnknownError
from timberframe_core.plugin.contracts import RunContext

F = np.float32


def scalar(x):
    return np.array(x, F)


def step(body, i):
    return body.op("AddV2", i, body.const(1.0))


def test_loop_counts(graph, counting):
    body = graph.body()
    i, a = body.input(F), body.input(F, 2)
    body = body.cluster(step(body, i), body.op("Mul", a, body.const(2.0)))
    x = graph.input(F, 2)
    out = graph.loop(graph.const(0.0), x, cond=counting(graph, 5, [(F, (2,))]), body=body)
    i, a = graph.run(out, np.array([1, 3], F))
    assert i == 5
    np.testing.assert_array_equal(a, [32, 96])


def test_loop_leaves_its_feed_alone(graph, counting):
    body = graph.body()
    body = body.cluster(step(body, body.input(F)))
    start = graph.input(F)
    feed = scalar(2)
    out = graph.loop(start, cond=counting(graph, 9), body=body)
    assert graph.run(out, feed)[0] == 9
    assert feed == 2


def test_loop_without_a_turn_gives_its_inputs(graph, counting):
    body = graph.body()
    i, a = body.input(F), body.input(F, 3)
    body = body.cluster(step(body, i), body.op("Mul", a, body.const(2.0)))
    x = graph.input(F, 3)
    out = graph.loop(graph.const(4.0), x, cond=counting(graph, 4, [(F, (3,))]), body=body)
    np.testing.assert_array_equal(graph.run([out[1]], np.array([1, 2, 3], F))[0], [1, 2, 3])


@pytest.mark.parametrize(("turns", "expected"), [(0, (1, 2)), (1, (2, 1)), (2, (1, 2)), (3, (2, 1))])
def test_loop_that_swaps_two_variables(graph, counting, turns, expected):
    body = graph.body()
    i, a, b = body.input(F), body.input(F), body.input(F)
    body = body.cluster(step(body, i), b, a)
    x, y = graph.input(F), graph.input(F)
    cond = counting(graph, turns, [(F, ()), (F, ())])
    out = graph.loop(graph.const(0.0), x, y, cond=cond, body=body)
    assert tuple(graph.run(out[1:], scalar(1), scalar(2))) == expected


def test_loop_result_used_for_two_variables(graph, counting):
    body = graph.body()
    i, a, _ = body.input(F), body.input(F), body.input(F)
    double = body.op("AddV2", a, a)
    body = body.cluster(step(body, i), double, double)
    x = graph.input(F)
    cond = counting(graph, 3, [(F, ()), (F, ())])
    out = graph.loop(graph.const(0.0), x, x, cond=cond, body=body)
    assert graph.run(out[1:], scalar(1)) == [8, 8]


def test_loop_variable_set_to_a_constant(graph, counting):
    body = graph.body()
    i, _ = body.input(F), body.input(F)
    body = body.cluster(step(body, i), body.const(7.0))
    x = graph.input(F)
    out = graph.loop(graph.const(0.0), x, cond=counting(graph, 3, [(F, ())]), body=body)
    assert graph.run(out[1:], scalar(1)) == [7]


def test_loop_variable_that_never_changes(graph, counting):
    body = graph.body()
    i, total, w = body.input(F), body.input(F, 2), body.input(F, 2)
    body = body.cluster(step(body, i), body.op("AddV2", total, w), w)
    x = graph.input(F, 2)
    cond = counting(graph, 4, [(F, (2,)), (F, (2,))])
    out = graph.loop(graph.const(0.0), graph.const([0.0, 0.0]), x, cond=cond, body=body)
    total, w = graph.run(out[1:], np.array([1, 2], F))
    np.testing.assert_array_equal(total, [4, 8])
    np.testing.assert_array_equal(w, [1, 2])


def nested(graph, counting, inner_op="AddV2"):
    """Doubles x three times in each of two turns, in an inner loop."""
    inner = graph.body()
    j, a = inner.input(F), inner.input(F, 2)
    doubled = inner.op("AddV2", a, a)
    if inner_op != "AddV2":
        doubled = inner.op(inner_op, doubled, node="inside")
    inner = inner.cluster(step(inner, j), doubled)
    outer = graph.body()
    i, a = outer.input(F), outer.input(F, 2)
    result = outer.loop(outer.const(0.0), a, cond=counting(outer, 3, [(F, (2,))]), body=inner, node="inner")[1]
    outer = outer.cluster(step(outer, i), result)
    x = graph.input(F, 2)
    return graph.loop(graph.const(0.0), x, cond=counting(graph, 2, [(F, (2,))]), body=outer)[1]


def test_nested_loops(graph, counting):
    (out,) = graph.run([nested(graph, counting)], np.array([1, 3], F))
    np.testing.assert_array_equal(out, [64, 192])


def test_loop_runs_again_on_the_same_instance(graph, counting):
    executable = graph.device.compile(graph.cluster(nested(graph, counting)))
    for k in range(3):
        (out,) = executable.run([np.array([k, 1], F)], RunContext())
        np.testing.assert_array_equal(out, [64 * k, 64])


def test_python_kernel_inside_nested_loops(graph, counting):
    (out,) = graph.run([nested(graph, counting, "Test>Negate")], np.array([1, 3], F))
    np.testing.assert_array_equal(out, [64, 192])


def test_error_of_a_python_kernel_inside_a_loop_names_the_node(graph, counting):
    y = nested(graph, counting, "Test>Raise")
    with pytest.raises(UnknownError, match=r"Test>Raise 'inside': RuntimeError: no luck .*CPU:0, model.py:7"):
        graph.run([y], np.array([1, 3], F))


def chooser(graph):
    then, otherwise = graph.body(), graph.body()
    a = then.input(F, 2)
    then = then.cluster(then.op("AddV2", a, a), a)
    a = otherwise.input(F, 2)
    otherwise = otherwise.cluster(otherwise.op("Mul", a, a), otherwise.const([5.0, 6.0]))
    return then, otherwise


@pytest.mark.parametrize(("predicate", "expected"), [(True, ([4, 6], [2, 3])), (False, ([4, 9], [5, 6]))])
def test_branch_runs_what_the_predicate_chooses(graph, predicate, expected):
    then, otherwise = chooser(graph)
    p, x = graph.input(np.bool_), graph.input(F, 2)
    out = graph.branch(p, x, then=then, otherwise=otherwise)
    first, second = graph.run(out, np.array(predicate), np.array([2, 3], F))
    np.testing.assert_array_equal(first, expected[0])
    np.testing.assert_array_equal(second, expected[1])


@pytest.mark.parametrize(
    ("value", "truth"),
    [(0.0, False), (-0.0, False), (0.5, True), (np.nan, True), (np.int64(1 << 40), True), (np.float16(-0.0), False)],
)
def test_number_as_predicate(graph, value, truth):
    then, otherwise = chooser(graph)
    value = np.asarray(value)
    p, x = graph.input(value.dtype), graph.input(F, 2)
    out = graph.branch(p, x, then=then, otherwise=otherwise)
    np.testing.assert_array_equal(graph.run([out[1]], value, np.array([2, 3], F))[0], [2, 3] if truth else [5, 6])


def test_branch_inside_a_loop(graph, counting):
    then, otherwise = graph.body(), graph.body()
    a = then.input(F)
    then = then.cluster(then.op("AddV2", a, a))
    a = otherwise.input(F)
    otherwise = otherwise.cluster(otherwise.op("AddV2", a, otherwise.const(10.0)))
    body = graph.body()
    i, a = body.input(F), body.input(F)
    result = body.branch(i, a, then=then, otherwise=otherwise)[0]  # turn 0 adds ten, the others double
    body = body.cluster(step(body, i), result)
    x = graph.input(F)
    out = graph.loop(graph.const(0.0), x, cond=counting(graph, 3, [(F, ())]), body=body)
    assert graph.run(out[1:], scalar(1)) == [44]


def string_loop(graph, counting, turns):
    """Returns a loop that carries a string, which only Python can run."""
    body = graph.body()
    i, text = body.input(F), body.input(object)
    body = body.cluster(step(body, i), body.op("Identity", text))
    x = graph.input(object)
    return graph.loop(graph.const(0.0), x, cond=counting(graph, turns, [(object, ())]), body=body)


def test_loop_that_carries_a_string(graph, counting):
    i, text = graph.run(string_loop(graph, counting, 3), np.array(b"abc", object))
    assert i == 3
    assert text.item() == b"abc"


def test_loop_that_carries_a_string_stops_when_cancelled(graph, counting):
    context = RunContext()
    out = string_loop(graph, counting, 1e9)
    threading.Timer(0.1, context.cancel.cancel, (CancelledError("closed"),)).start()
    with pytest.raises(CancelledError, match="closed"):
        graph.run(out, np.array(b"abc", object), context=context)

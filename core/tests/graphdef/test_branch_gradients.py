"""Gradients of imported branches of TensorFlow 1 (Switch and Merge): first and second order, exported and imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Write = Any
SIDES = {"then": np.array([0.3, -0.2, 0.8]), "else": np.array([-0.3, -0.9, 0.4])}
STEP = 1e-5
F64 = {"T": tf.float64}


def placeholder(write: Write) -> None:
    """x, and p: whether its sum is positive."""
    write("Placeholder", "x", dtype=tf.float64, shape=[3]).const("axis", np.array([0], np.int32))
    write("Sum", "sum", "x", "axis", Tidx=tf.int32, **F64).const("none", np.zeros(()))
    write("Greater", "p", "sum", "none", **F64)


def branch(write: Write) -> Write:
    """sin(x) * x where p holds, else exp(x) * x."""
    placeholder(write)
    write("Switch", "s", "x", "p", **F64)("Sin", "sin", "s:1", **F64)("Exp", "exp", "s:0", **F64)
    write("Mul", "then", "sin", "s:1", **F64)("Mul", "else", "exp", "s:0", **F64)
    return write("Merge", "y", "else", "then", N=2, **F64)


def side_alone(write: Write) -> Write:
    """sin(x) * x where p holds, else a constant."""
    placeholder(write)
    write("Switch", "s", "x", "p", **F64)("Sin", "sin", "s:1", **F64)("Mul", "then", "sin", "s:1", **F64)
    write("Identity", "pivot", "s:0", **F64).const("else", np.ones(3), "^pivot")
    return write("Merge", "y", "else", "then", N=2, **F64)


def value_from_outside(write: Write) -> Write:
    """z * (z * x where p holds, else z), z being sin(x)."""
    placeholder(write)
    write("Sin", "z", "x", **F64)("Switch", "s", "x", "p", **F64)("Switch", "sz", "z", "p", **F64)
    write("Mul", "then", "sz:1", "s:1", **F64)("Identity", "else", "sz:0", **F64)
    return write("Merge", "m", "else", "then", N=2, **F64)("Mul", "y", "m", "z", **F64)


def branch_in_a_branch(write: Write) -> Write:
    """Returns where p holds: x^3 if the sum is above 0.5, else sin(x); where it does not hold: x^2."""
    placeholder(write)
    write.const("half", np.full((), 0.5))("Greater", "q", "sum", "half", **F64)
    write("Switch", "s", "x", "p", **F64)("Switch", "sq", "q", "p", T=tf.bool)
    write("Switch", "t", "s:1", "sq:1", **F64)
    write("Mul", "square", "t:1", "t:1", **F64)("Mul", "cube", "square", "t:1", **F64)("Sin", "sin", "t:0", **F64)
    write("Merge", "then", "sin", "cube", N=2, **F64)("Mul", "else", "s:0", "s:0", **F64)
    return write("Merge", "y", "else", "then", N=2, **F64)


def branch_behind_a_branch(write: Write) -> Write:
    """Returns the second one on the value of the first."""
    branch(write)
    write("Sum", "total", "y", "axis", Tidx=tf.int32, **F64).const("limit", np.full((), 0.3))
    write("Greater", "r", "total", "limit", **F64)("Switch", "u", "y", "r", **F64)
    write("Mul", "more", "u:1", "u:1", **F64)("Cos", "less", "u:0", **F64)
    return write("Merge", "last", "less", "more", N=2, **F64)


BUILDS = {
    branch: "y:0", side_alone: "y:0", value_from_outside: "y:0", branch_in_a_branch: "y:0",
    branch_behind_a_branch: "last:0",
}  # fmt: skip


def differences(session: tf.Session, y: Any, at: np.ndarray) -> np.ndarray:
    moved = [at + STEP * unit for unit in np.eye(3)], [at - STEP * unit for unit in np.eye(3)]
    up, down = ([session.run(y, {"x:0": x}) for x in side] for side in moved)
    return (np.array(up) - np.array(down)) / (2 * STEP)


def source(graph: tf.Graph) -> Any:
    return graph.get_tensor_by_name("x:0")


def second_order(y: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns a scalar of y and its gradient; a scalar of that and its gradient."""
    total = tf.reduce_sum(y * y)
    first = tf.gradients(total, x)[0]
    further = tf.reduce_sum(tf.sin(first))
    return total, first, further, tf.gradients(further, x)[0]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("build", BUILDS)
def test_gradients_of_an_imported_branch(write: Write, build: Callable[[Write], Write], side: str) -> None:
    graph, at = build(write).graph(), SIDES[side]
    with graph.as_default(), tf.Session(graph=graph) as session:
        total, first, further, second = second_order(graph.get_tensor_by_name(BUILDS[build]), source(graph))
        for y, found in ((total, first), (further, second)):
            np.testing.assert_allclose(session.run(found, {"x:0": at}), differences(session, y, at), rtol=1e-6)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("build", BUILDS)
def test_gradients_survive_a_round_trip(write: Write, build: Callable[[Write], Write], side: str) -> None:
    """TensorFlow writes gradients of gradients in this form, too."""
    graph, feeds = build(write).graph(), {"x:0": SIDES[side]}
    with graph.as_default(), tf.Session(graph=graph) as session:
        *_, second = second_order(graph.get_tensor_by_name(BUILDS[build]), source(graph))
        expected = session.run(second, feeds)
    with tf.Graph().as_default() as again:
        tf.import_graph_def(graph.as_graph_def(), name="")
    with tf.Session(graph=again) as session:
        np.testing.assert_array_equal(session.run(second.name, feeds), expected)


def test_gradient_of_an_imported_loop_is_refused(write: Write) -> None:
    """Anything else would leave it out, and be a wrong gradient wherever another path leads to the source."""
    write("Placeholder", "x", dtype=tf.float32).const("n", 3)
    for name, dtype in (("i", tf.int32), ("v", tf.float32)):
        write("Enter", f"{name}_in", "n" if name == "i" else "x", T=dtype, frame_name="loop")
        write("Merge", f"{name}_now", f"{name}_in", f"{name}_next", N=2, T=dtype)
        write("Switch", f"{name}_if", f"{name}_now", "more", T=dtype)("Exit", f"{name}_out", f"{name}_if", T=dtype)
    write.const("zero", 0, "^i_now")("Less", "less", "zero", "i_now")("LoopCond", "more", "less")
    write.const("one", 1, "^i_if")("Sub", "i_new", "i_if:1", "one")("NextIteration", "i_next", "i_new")
    write("Mul", "v_new", "v_if:1", "v_if:1", T=tf.float32)("NextIteration", "v_next", "v_new", T=tf.float32)
    graph = write("Mul", "y", "v_out", "x", T=tf.float32).graph()
    with graph.as_default(), pytest.raises(tf.errors.UnimplementedError, match="Exit 'v_out': is part of a loop"):
        tf.gradients(graph.get_tensor_by_name("y:0"), source(graph))

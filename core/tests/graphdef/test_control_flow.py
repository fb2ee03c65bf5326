"""Loops and branches of TensorFlow 1: what goes through, what is computed, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph

Write = Any


def counting_loop(write: Write, frame: str = "loop", limit: int = 5) -> Write:
    """i = 0, total = 0; while i < limit: total += i, i += 1."""
    p = f"{frame}/"
    write.const("zero", 0)
    for variable in ("i", "total"):
        write("Enter", f"{p}{variable}", "zero", frame_name=frame)
        write("Merge", f"{p}{variable}_now", f"{p}{variable}", f"{p}{variable}_next", N=2)
        write("Switch", f"{p}{variable}_if", f"{p}{variable}_now", f"{p}more")
    write.const(f"{p}limit", limit, f"^{p}i_now")
    write("Less", f"{p}less", f"{p}i_now", f"{p}limit")("LoopCond", f"{p}more", f"{p}less")
    write.const(f"{p}one", 1, f"^{p}i_if")
    write("AddV2", f"{p}i_new", f"{p}i_if:1", f"{p}one")("NextIteration", f"{p}i_next", f"{p}i_new")
    write("AddV2", f"{p}total_new", f"{p}total_if:1", f"{p}i_if:1")
    write("NextIteration", f"{p}total_next", f"{p}total_new")
    return write("Exit", f"{p}i_out", f"{p}i_if")("Exit", f"{p}total_out", f"{p}total_if")


def branch(write: Write) -> Write:
    """x + 1 where p holds, else x * 10."""
    write("Placeholder", "p", dtype=tf.bool)("Placeholder", "x")("Switch", "s", "x", "p")
    write("Identity", "then", "s:1")("Identity", "else", "s:0")
    write.const("one", 1, "^then").const("ten", 10, "^else")
    return write("AddV2", "more", "then", "one")("Mul", "times", "else", "ten")("Merge", "m", "times", "more", N=2)


def test_loop_survives_a_round_trip(write: Write) -> None:
    first = counting_loop(write).graph().as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(first, name="")
    assert graph.as_graph_def() == first


def test_exits_are_fetchable_together_and_alone(write: Write) -> None:
    with tf.Session(graph=counting_loop(write).graph()) as session:
        assert session.run(["loop/i_out:0", "loop/total_out:0"]) == [5, 10]
        assert session.run("loop/i_out:0") == 5


def test_value_inside_of_a_loop_cannot_be_fetched(write: Write) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="'loop/i_new': is inside of loop 'loop'"):
        counting_loop(write).run("loop/i_new:0")


def test_loop_is_one_kernel_node_where_its_shapes_stay(write: Write) -> None:
    with tf.Session(graph=counting_loop(write).graph()) as session:
        assert "StatelessWhile" in str(session.explain("loop/total_out:0"))


def test_branch_within_the_body_of_a_function(write: Write) -> None:
    body = branch(write).graph()
    with tf.Graph().as_default() as graph, tf.Session() as session:
        function = FuncGraph("body", graph)
        with function.as_default():
            tf.import_graph_def(body.as_graph_def(), name="")
        names = ("p:0", "x:0")
        function.inputs = [function.get_tensor_by_name(name) for name in names]
        function.finish([function.get_tensor_by_name("m:0")])
        result = apply_op("PartitionedCall", [[True, 7]], {"f": function, "Tout": [tf.int32]})
        assert session.run(result) == [8]


def test_loop_without_an_iteration_returns_what_enters(write: Write) -> None:
    assert counting_loop(write, limit=0).run("loop/total_out:0") == 0


def test_constant_enter_is_the_same_in_every_iteration(write: Write) -> None:
    write.const("start", 1).const("end", 100).const("factor", 3)
    write("Enter", "x", "start", frame_name="w")("Merge", "now", "x", "next", N=2)
    write("Enter", "end_in", "end", frame_name="w", is_constant=True)
    write("Enter", "factor_in", "factor", frame_name="w", is_constant=True)
    write("Less", "less", "now", "end_in")("LoopCond", "more", "less")("Switch", "if", "now", "more")
    write("Mul", "new", "if:1", "factor_in")("NextIteration", "next", "new")("Exit", "out", "if")
    assert write.run("out:0") == 243


def test_nested_loops(write: Write) -> None:
    """For i in range(3): while x < 10 * i: x += 4."""
    write.const("zero", 0)
    for v in ("i", "x"):
        write("Enter", f"a/{v}", "zero", frame_name="a")("Merge", f"a/{v}_now", f"a/{v}", f"a/{v}_next", N=2)
        write("Switch", f"a/{v}_if", f"a/{v}_now", "a/more")
    write.const("a/three", 3, "^a/i_now")("Less", "a/less", "a/i_now", "a/three")("LoopCond", "a/more", "a/less")
    write.const("a/one", 1, "^a/i_if")("AddV2", "a/i_new", "a/i_if:1", "a/one")("NextIteration", "a/i_next", "a/i_new")
    write.const("a/ten", 10, "^a/i_if")("Mul", "a/bound", "a/i_if:1", "a/ten")
    write("Enter", "b/x", "a/x_if:1", frame_name="b")("Merge", "b/now", "b/x", "b/next", N=2)
    write("Enter", "b/bound", "a/bound", frame_name="b", is_constant=True)
    write("Less", "b/less", "b/now", "b/bound")("LoopCond", "b/more", "b/less")("Switch", "b/if", "b/now", "b/more")
    write.const("b/four", 4, "^b/if")("AddV2", "b/new", "b/if:1", "b/four")("NextIteration", "b/next", "b/new")
    write("Exit", "b/out", "b/if")("NextIteration", "a/x_next", "b/out")("Exit", "a/out", "a/x_if")
    assert write.run("a/out:0") == 20


@pytest.mark.parametrize(("p", "expected"), [(True, [8, 1]), (False, [70, 0])])
def test_merge_gives_the_branch_that_was_taken_and_its_number(write: Write, p: bool, expected: list[int]) -> None:
    assert branch(write).run(["m:0", "m:1"], {"p:0": p, "x:0": 7}) == expected


def test_value_of_the_branch_that_was_taken_can_be_fetched(write: Write) -> None:
    assert branch(write).run("more:0", {"p:0": True, "x:0": 7}) == 8


def test_value_of_the_other_branch_cannot_be_fetched(write: Write) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="'more': output 0 is on a branch that was not taken"):
        branch(write).run("more:0", {"p:0": False, "x:0": 7})


def test_values_of_one_branch_reach_a_later_branch_of_the_same_predicate(write: Write) -> None:
    branch(write)("Switch", "again", "m", "p")("Mul", "product", "again:1", "more")
    write("Identity", "else_again", "again:0")("Merge", "m2", "else_again", "product", N=2)
    assert write.run("m2:0", {"p:0": True, "x:0": 7}) == 64
    assert write.run("m2:0", {"p:0": False, "x:0": 7}) == 70


@pytest.mark.parametrize(("p", "q", "expected"), [(True, True, 1), (True, False, 2), (False, True, 3)])
def test_branches_within_branches(write: Write, p: bool, q: bool, expected: int) -> None:
    write("Placeholder", "p", dtype=tf.bool)("Placeholder", "q", dtype=tf.bool)
    write.const("a", 1).const("b", 2).const("c", 3)
    for name, kind in (("a", tf.int32), ("b", tf.int32), ("q", tf.bool), ("c", tf.int32)):
        write("Switch", f"{name}_p", name, "p", T=kind)
    write("Switch", "a_q", "a_p:1", "q_p:1")("Switch", "b_q", "b_p:1", "q_p:1")("Merge", "inner", "b_q", "a_q:1", N=2)
    write("Merge", "outer", "c_p", "inner", N=2)
    assert write.run("outer:0", {"p:0": p, "q:0": q}) == expected


def test_branch_within_a_loop(write: Write) -> None:
    """x doubles while it is odd, else grows by one, until 20."""
    write.const("start", 1)("Enter", "x", "start", frame_name="w")("Merge", "now", "x", "next", N=2)
    write.const("end", 20, "^now")("Less", "less", "now", "end")("LoopCond", "more", "less")(
        "Switch", "if", "now", "more"
    )
    write.const("two", 2, "^if").const("one", 1, "^if").const("zero", 0, "^if")
    write("FloorMod", "rest", "if:1", "two")("Equal", "even", "rest", "zero")("Switch", "s", "if:1", "even")
    write("AddV2", "plus", "s:1", "one")("Mul", "double", "s", "two")("Merge", "new", "double", "plus", N=2)
    write("NextIteration", "next", "new")("Exit", "out", "if")
    assert write.run("out:0") == 30


def test_loop_within_a_branch(write: Write) -> None:
    write("Placeholder", "p", dtype=tf.bool).const("start", 1)("Switch", "s", "start", "p")
    write("Enter", "x", "s:1", frame_name="w")("Merge", "now", "x", "next", N=2).const("end", 50, "^now")
    write("Less", "less", "now", "end")("LoopCond", "more", "less")("Switch", "if", "now", "more")
    write("AddV2", "new", "if:1", "if:1")("NextIteration", "next", "new")("Exit", "out", "if")
    write("Merge", "m", "s", "out", N=2)
    assert write.run("m:0", {"p:0": True}) == 64
    assert write.run("m:0", {"p:0": False}) == 1


def test_what_waits_for_a_control_trigger_runs_though_its_branch_is_dead(write: Write) -> None:
    branch(write)("ControlTrigger", "trigger", "^more").const("done", 4, "^trigger")
    assert write.run("done:0", {"p:0": False, "x:0": 7}) == 4


def test_shape_of_a_loop_variable_may_change(write: Write) -> None:
    write.const("start", [1.0]).const("eight", 8)
    write("Enter", "x", "start", frame_name="w", T=tf.float32)("Merge", "now", "x", "next", N=2, T=tf.float32)
    write("Size", "size", "now", T=tf.float32)("Enter", "bound", "eight", frame_name="w", is_constant=True)
    write("Less", "less", "size", "bound")("LoopCond", "more", "less")("Switch", "if", "now", "more", T=tf.float32)
    write.const("axis", 0, "^if")("ConcatV2", "new", "if:1", "if:1", "axis", N=2, T=tf.float32)
    write("NextIteration", "next", "new", T=tf.float32)("Exit", "out", "if", T=tf.float32)
    assert write.run("out:0").shape == (8,)


def test_frame_with_a_condition_for_its_first_iteration_alone_has_one_iteration(write: Write) -> None:
    write.const("never", np.bool_(False)).const("ten", 10)
    write("Enter", "p", "never", frame_name="w", T=tf.bool)("Enter", "x", "ten", frame_name="w")
    write("Merge", "now", "x", "next", N=2)("Switch", "if", "now", "p")
    write("NextIteration", "next", "if")("Exit", "out", "if")
    assert write.run("out:0") == 10


def test_merge_of_unrelated_branches_is_refused(write: Write) -> None:
    write("Placeholder", "p", dtype=tf.bool)("Placeholder", "q", dtype=tf.bool).const("x", 1)
    write("Switch", "s", "x", "p")("Switch", "t", "x", "q")("Merge", "m", "s", "t", N=2)
    with pytest.raises(tf.errors.UnimplementedError, match=r"Merge 'm': its inputs are of branches .* opposites"):
        write.run("m:0", {"p:0": True, "q:0": True})


def test_loop_without_a_condition_is_refused(write: Write) -> None:
    write.const("x", 1)("Enter", "in", "x", frame_name="w")("Merge", "now", "in", "next", N=2)
    write("NextIteration", "next", "now")("Exit", "out", "now")
    with pytest.raises(tf.errors.UnimplementedError, match=r"loop 'w': has 0 conditions"):
        write.run("out:0")


def test_values_of_two_loops_do_not_meet(write: Write) -> None:
    write.const("x", 1)("Enter", "a", "x", frame_name="f")("Enter", "b", "x", frame_name="g")("AddV2", "sum", "a", "b")
    write("Exit", "out", "sum")
    with pytest.raises(tf.errors.InvalidArgumentError, match="AddV2 'sum': has inputs from different frames"):
        write.run("out:0")


def test_cycle_without_next_iteration_is_refused(write: Write) -> None:
    write("Identity", "a", "b")("Identity", "b", "a")
    with pytest.raises(tf.errors.InvalidArgumentError, match="form a cycle"):
        write.graph()


def loop_over_a_list(write: Write) -> Write:
    """As TensorFlow lowers `while i < 4: out[i] = 2 * rows[i]`, out being a list: rows is the Placeholder `x`."""
    v, enter = tf.variant, {"frame_name": "loop"}
    write("Placeholder", "x", dtype=tf.float32, shape=[4, 2]).const("zero", 0).const("n", 4)
    write.const("row", np.array([2], np.int32))
    write("TensorListFromTensor", "rows", "x", "row", element_dtype=tf.float32, shape_type=tf.int32)
    write("TensorListReserve", "out", "row", "n", element_dtype=tf.float32, shape_type=tf.int32)
    write("Enter", "rows_in", "rows", T=v, is_constant=True, **enter)
    write("Enter", "n_in", "n", is_constant=True, **enter)
    for name, start, dtype in (("i", "zero", tf.int32), ("o", "out", v)):
        write("Enter", f"{name}_in", start, T=dtype, **enter)
        write("Merge", f"{name}_now", f"{name}_in", f"{name}_next", N=2, T=dtype)
        write("Switch", f"{name}_if", f"{name}_now", "more", T=dtype)
        write("Identity", f"{name}_body", f"{name}_if:1", T=dtype)
        write("Exit", f"{name}_out", f"{name}_if", T=dtype)
    write("Less", "less", "i_now", "n_in")("LoopCond", "more", "less")
    write.const("one", 1, "^i_body").const("shape", np.array([2], np.int32), "^i_body")
    write("TensorListGetItem", "item", "rows_in", "i_body", "shape", element_dtype=tf.float32)
    write("AddV2", "double", "item", "item", T=tf.float32)("AddV2", "i_new", "i_body", "one")
    write("TensorListSetItem", "o_new", "o_body", "i_body", "double", element_dtype=tf.float32)
    write("NextIteration", "i_next", "i_new")("NextIteration", "o_next", "o_new", T=v)
    return write("TensorListStack", "y", "o_out", "row", element_dtype=tf.float32)


def test_lowered_loop_on_lists(write: Write) -> None:
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(loop_over_a_list(write).run("y:0", {"x:0": x}), 2 * x)


def test_lowered_loop_on_lists_is_one_kernel_node(write: Write) -> None:
    with tf.Session(graph=loop_over_a_list(write).graph()) as session:
        found = session.explain("y:0", {"x:0": np.zeros((4, 2), np.float32)})
    assert [stage.kind for stage in found.stages] == ["cluster"]


def test_loop_on_lists_in_a_function(write: Write) -> None:
    """A body that holds lowered loops itself keeps its lists."""
    lowered = loop_over_a_list(write).graph()
    with tf.Graph().as_default() as graph:
        function = FuncGraph("twice", graph)
        with function.as_default():
            x = function.add_input(tf.float32, [4, 2])
            (y,) = tf.import_graph_def(lowered.as_graph_def(), {"x": x}, ["y:0"], name="")
            function.finish([y])

        def body(i: Any, v: Any, kept: tf.TensorArray) -> Any:
            (after,) = apply_op("PartitionedCall", [[v]], {"f": function, "Tout": [tf.float32]})
            after.set_shape(v.shape)
            return i + 1, after, kept.write(i, v)

        fed = tf.placeholder(tf.float32, [4, 2])
        _, last, rows = tf.while_loop(lambda i, *_: i < 2, body, (0, fed, tf.TensorArray(tf.float32, 2)))
        with tf.Session() as session:
            one = np.ones((4, 2), np.float32)
            found, kept = session.run([last, rows.stack()], {fed: one})
    np.testing.assert_array_equal(found, 4 * one)
    np.testing.assert_array_equal(kept, [one, 2 * one])

"""Passes over whole graphs: control flow of TensorFlow 1, lists as dense tensors, and passes of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import fallback
from timberframe_core.compiler.passes.graph_rewriter import GraphRewriter
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph
from timberframe_core.plugin import loader
from timberframe_core.plugin.passes import Pass

Join = Callable[..., None]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Join:
    """Adds passes for the time of a test."""
    monkeypatch.setattr(loader.registry.passes, "_owners", dict(loader.registry.passes._owners))
    return lambda *passes: loader.registry.passes.register(passes)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def switched() -> Any:
    """x * 2 where p, else x, of Switch and Merge."""
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [], name="p")
    no, yes = apply_op("Switch", [x, p], name="switch")
    return apply_op("Merge", [[no, yes * 2.0]], name="merge")[0]


def running_sum(x: Any, n: Any) -> Any:
    """Returns the sums of the first 1, 2, ... n elements."""

    def body(i: Any, total: Any, sums: tf.TensorArray) -> Any:
        return i + 1, total + x[i], sums.write(i, total + x[i])

    return tf.while_loop(lambda i, *_: i < n, body, [0, 0.0, tf.TensorArray(tf.float32, n, element_shape=[])])[
        2
    ].stack()


def off(name: str) -> tf.SessionConfig:
    return tf.SessionConfig(optimizations={name: False})


def test_explain_says_what_was_made_loops_and_branches() -> None:
    y = switched()
    with tf.Session() as session:
        assert session.run(y, {"x:0": 3, "p:0": True}) == 6
        assert session.explain(y).rewritten("functionalize") == ("switch", "merge")


def test_without_functionalize_a_node_of_control_flow_is_refused_by_name() -> None:
    y = switched()
    with tf.Session(config=off("functionalize")) as session:
        assert session.run(tf.constant(1.0) + 1.0) == 2
        with pytest.raises(tf.errors.UnimplementedError, match=r"Switch 'switch': .*'functionalize'"):
            session.run(y, {"x:0": 3, "p:0": True})


def test_explain_says_which_loops_got_dense_lists() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = running_sum(x, tf.size(x))
    with tf.Session() as session:
        assert session.run(y, {x: [1, 2, 3]}).tolist() == [1, 3, 6]
        report = session.explain(y, {x: [1, 2, 3]})
    assert report.rewritten("dense_lists") == (report.loops[0].node,)
    assert report.loops[0].driver == "kernel"


def test_lists_stay_where_dense_lists_is_switched_off() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = running_sum(x, tf.size(x))
    with tf.Session(config=off("dense_lists")) as session:
        assert session.run(y, {x: [1, 2, 3]}).tolist() == [1, 3, 6]
        report = session.explain(y, {x: [1, 2, 3]})
    assert report.loops[0].driver == "executor"
    assert "dense_lists" not in [p.name for p in report.passes]


def test_explain_says_why_a_loop_keeps_its_lists() -> None:
    x, n = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    y = running_sum(x, n)
    with tf.Session() as session:
        assert session.run(y, {x: [1, 2, 3], n: 3}).tolist() == [1, 3, 6]
        (loop,) = session.explain(y, {x: [1, 2, 3], n: 3}).loops
    assert loop.driver == "executor"
    assert "which the executor keeps; dense_lists: the value of" in loop.reason


def test_a_loop_gets_dense_lists_though_the_executor_drives_one_without_lists() -> None:
    x = tf.placeholder(tf.float32, [None])
    fetches = [running_sum(x, tf.size(x))]
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    with tf.name_scope("scope"):
        fetches += tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tf.concat([v, v], 0)), [0, x], shapes)[1:]
    with tf.Session() as session:
        assert [y.shape for y in session.run(fetches, {x: [1, 2, 3]})] == [(3,), (24,)]
        loops = session.explain(fetches, {x: [1, 2, 3]}).loops
    assert {r.node: r.driver for r in loops} == {"while": "kernel", "scope/while": "executor"}


def test_all_loops_keep_their_lists_where_the_executor_must_drive_one_of_them() -> None:
    x = tf.placeholder(tf.float32, [None])

    def body(i: Any, v: Any, sums: tf.TensorArray) -> Any:
        return i + 1, tf.concat([v, v], 0), sums.write(i, tf.reduce_sum(v))

    start = [0, x, tf.TensorArray(tf.float32, 3, element_shape=[])]
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([])]
    fetches = [running_sum(x, tf.size(x)), tf.while_loop(lambda i, *_: i < 3, body, start, shapes)[2].stack()]
    with tf.Session() as session:
        assert [y.tolist() for y in session.run(fetches, {x: [1, 2]})] == [[1, 3], [3, 6, 12]]
        first, second = session.explain(fetches, {x: [1, 2]}).loops
    assert [first.driver, second.driver] == ["executor", "executor"]
    assert f"dense_lists: the executor would drive '{second.node}' all the same" in first.reason
    assert "dense_lists: the executor would drive it all the same: loop variable 1 changes" in second.reason


def summed_in_a_call(n: Any) -> Any:
    """Returns the running sums of a vector that is fed, by a function that is called."""
    graph = tf.get_default_graph()
    function = FuncGraph("sums", graph)
    with function.as_default():
        given = function.add_input(tf.float32, (None,), "x"), function.add_input(tf.int32, (), "n")
        function.finish([running_sum(*given)])
    graph.functions["sums"] = function
    x = tf.placeholder(tf.float32, [None], name="x")
    return apply_op("PartitionedCall", [[x, n]], {"f": "sums", "Tout": (tf.float32,)}, name="call")[0]


def test_explain_names_a_loop_in_a_function_as_it_does_its_node() -> None:
    y = summed_in_a_call(tf.constant(3))
    with tf.Session() as session:
        assert session.run(y, {"x:0": [1, 2, 3]}).tolist() == [1, 3, 6]
        report = session.explain(y, {"x:0": [1, 2, 3]})
    assert report.rewritten("dense_lists") == (report.loops[0].node,) == ("call/while",)


def test_explain_says_why_a_loop_in_a_function_keeps_its_lists() -> None:
    n = tf.placeholder(tf.int32, [])
    y = summed_in_a_call(n)
    with tf.Session() as session:
        (loop,) = session.explain(y, {"x:0": [1, 2, 3], n: 3}).loops
    assert loop.driver == "executor"
    assert "dense_lists: the value of" in loop.reason


def doubled(rewriter: GraphRewriter) -> None:
    """Each fetch twice: a graph that shows that it was used."""
    made = tf.Graph()
    with made.as_default():
        x = tf.placeholder(tf.float32, rewriter.feeds[0].shape)
        y = tf.exp(x) * 2.0
    rewriter.substitute(made, [[y]], [x], [op for op in rewriter.operations if op.type == "Exp"])


@pytest.mark.parametrize("phase", ["graph", "fed_graph"])
def test_a_pass_of_a_plugin_puts_another_graph_in_the_place_of_one(join: Join, phase: str) -> None:
    join(Pass("doubled", phase, doubled, "doubles"))
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x, name="y")
    with tf.Session() as session:
        for _ in range(2):
            assert session.run(y, {x: [0, 0]}).tolist() == [2, 2]
        assert session.explain(y, {x: [0, 0]}).rewritten("doubled") == ("y",)


def test_a_pass_over_a_fed_graph_is_asked_once_for_each_set_of_shapes(join: Join) -> None:
    seen: list[Any] = []

    def look(rewriter: GraphRewriter) -> None:
        seen.append(rewriter.shapes)
        rewriter.decline(rewriter.operations[-1], "it was only looked at")

    join(Pass("look", "fed_graph", look, "looks"))
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x)
    with tf.Session() as session:
        for n in (2, 3, 2):
            session.run(y, {x: np.zeros(n)}, tf.RunOptions(trace=True))
    assert seen == [((2,),), ((3,),)]


def test_a_pass_that_finds_nothing_in_a_graph_is_not_asked_again(join: Join) -> None:
    seen: list[Any] = []
    join(Pass("look", "fed_graph", lambda rewriter: seen.append(rewriter.shapes), "looks"))
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x)
    with tf.Session() as session:
        for n in (2, 3, 2):
            session.run(y, {x: np.zeros(n)})
    assert seen == [((2,),)]


def relus(rewriter: GraphRewriter) -> None:
    """Maximum with 0 is Relu."""

    def instead(op: Any, inputs: Any) -> Any:
        if op.type != "Maximum" or inputs[1].host_value is None or inputs[1].host_value != 0:
            return None
        return [apply_op("Relu", inputs[:1], name=op.name)]

    rewriter.copy(instead)


@pytest.mark.parametrize("phase", ["graph", "fed_graph"])
def test_a_pass_may_copy_a_graph_but_for_some_operations(join: Join, phase: str) -> None:
    join(Pass("relus", phase, relus, "makes Relus", after=("functionalize",)))
    x = tf.placeholder(tf.float32, [None], name="x")
    v = tf.get_variable("v", initializer=3.0, use_resource=True)
    positive = tf.maximum(x, 0.0, name="positive")
    with tf.control_dependencies([v.assign_add(1.0)]):
        fetches = {"y": positive + v.read_value(), "x": x, "step": tf.group(positive)}
    with tf.Session() as session:
        session.run(v.initializer)
        for i in range(2):
            found = session.run(fetches, {x: [-1, 2]})
            assert (found["y"].tolist(), found["x"].tolist(), found["step"]) == ([4 + i, 6 + i], [-1, 2], None)
        assert session.explain(fetches, {x: [-1, 2]}).rewritten("relus") == ("positive",)


def test_a_copied_graph_has_the_functions_of_bodies_within_bodies(join: Join) -> None:
    join(Pass("relus", "graph", relus, "makes Relus", after=("functionalize",)))
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])

    def inner(y: Any) -> Any:
        return tf.switch_case(n, [lambda: tf.maximum(y, 0.0), lambda: tf.while_loop(lambda z: z[0] < 3, add, [y])])

    def add(z: Any) -> Any:
        return tf.maximum(z, 0.0) + 1.0

    y = tf.cond(x[0] < 0, lambda: tf.reduce_sum(inner(x)), lambda: tf.maximum(x[0], 0.0))
    with tf.Session() as session:
        assert [session.run(y, {x: [-1, 5], n: i}) for i in (0, 1)] == [5, 11]
        assert session.run(y, {x: [4, 5], n: 0}) == 4


def _loses_functions(rewriter: GraphRewriter) -> None:
    rewriter.copy(lambda op, inputs: [apply_op("Identity", inputs[:1])] if op.type == "Exp" else None)
    assert rewriter._made is not None
    rewriter._made[0].functions.clear()


@pytest.mark.filterwarnings("ignore")
def test_a_pass_that_loses_functions_is_left_out(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    join(Pass("loses", "graph", _loses_functions, "loses"))
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(tf.exp(x) > 1, lambda: x, lambda: -x)
    with tf.Session() as session:
        assert session.run(y, {x: -3}) == 3
        (failure,) = (p.failure for p in session.explain(y, {x: -3}).passes if p.name == "loses")
    assert "the pass made a graph that lacks its function" in failure


def _fails(rewriter: GraphRewriter) -> None:
    doubled(rewriter)
    raise KeyError("a defect")


def _forgets_a_feed(rewriter: GraphRewriter) -> None:
    rewriter.substitute(tf.Graph(), rewriter.fetches, [], [])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("phase", ["graph", "fed_graph"])
@pytest.mark.parametrize(
    ("run", "message"), [(_fails, "KeyError: 'a defect'"), (_forgets_a_feed, "1 fetches and 0 feeds for 1 and 1")]
)
def test_a_pass_over_graphs_that_fails_is_left_out_and_reported(
    join: Join, monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], None], message: str, phase: str
) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    join(Pass("wrong", phase, run, "fails"))
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x)
    with tf.Session() as session:
        assert session.run(y, {x: [0, 0]}).tolist() == [1, 1]
        (failure,) = (p.failure for p in session.explain(y, {x: [0, 0]}).passes if p.name == "wrong")
    assert message in failure


def test_an_error_of_the_graph_that_a_pass_finds_is_raised(join: Join) -> None:
    def refuse(rewriter: GraphRewriter) -> None:
        raise tf.errors.UnimplementedError("Exp 'y': cannot be; another op is required", "y")

    join(Pass("refuse", "graph", refuse, "refuses"))
    with tf.Session() as session, pytest.raises(tf.errors.UnimplementedError, match="Exp 'y': cannot be"):
        session.run(tf.exp(1.0, name="y"))

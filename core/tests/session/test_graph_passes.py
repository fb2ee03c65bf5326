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
    """The sums of the first 1, 2, ... n elements."""

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

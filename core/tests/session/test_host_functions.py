"""Functions of the graph that host ops run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.ops.definition.opdef import NotDifferentiable, define_op
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime.functions import Streams
from timberframe_sdk.testing.loaded import temporary_ops

NAME = "Acme>Apply"


@pytest.fixture
def define() -> Iterator[Callable[[Any], None]]:
    """Defines an op with a function among its attrs, and what it does."""
    with temporary_ops():
        define_op(
            NAME,
            inputs=["x: float", "captured: T"],
            outputs=["y: float"],
            attrs=["f: func", "T: list(type) >= 0"],
            doc="What the test says.",
            shape=lambda c: [None],
            gradient=NotDifferentiable("it is a test"),
            on_host=True,
            stateful=True,
        )
        yield lambda run: host_op(NAME)(run) and None


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def applied(body: Callable[[Any], Any]) -> Any:
    """Returns the op with this function, on 3."""
    function = FuncGraph("body", get_default_graph())
    with function.as_default():
        function.finish([tf.convert_to_tensor(body(function.add_input(tf.float32, [], "x")))])
    return apply_op(NAME, [3.0, list(function.captures)], {"f": function})


def once(call: HostCall) -> list[Any]:
    """Calls the function with x and what is no handle of what it captured."""
    handles = {1: call.handle()} if any(t.name == "resource" for t in call.attrs["T"]) else {}
    return list(call.function(0, handles).prepare()(call.inputs, call.cancel))


def test_a_host_op_calls_a_function(session: tf.Session, define: Any) -> None:
    define(once)
    assert session.run(applied(lambda x: x * 2 + 1)) == 7


def test_calls_after_the_first_give_the_same(session: tf.Session, define: Any) -> None:
    def run(call: HostCall) -> list[Any]:
        function = call.function().prepare()
        x = call.inputs[0]
        for _ in range(4):  # the shortest way is found by the first call
            (x,) = function([x], call.cancel)
        return [x]

    define(run)
    assert session.run(applied(lambda x: x * 2)) == 48


def test_a_function_gets_what_it_captured(session: tf.Session, define: Any) -> None:
    define(once)
    other = tf.constant(10.0)
    assert session.run(applied(lambda x: x + other)) == 13


def test_a_function_reads_a_variable(session: tf.Session, define: Any) -> None:
    define(once)
    variable = tf.get_variable("v", initializer=5.0, use_resource=True)
    made = applied(lambda x: x * variable)
    session.run(variable.initializer)
    assert session.run(made) == 15


def test_a_function_runs_when_the_run_has_ended(session: tf.Session, define: Any) -> None:
    kept: list[Any] = []

    def run(call: HostCall) -> list[Any]:
        kept.append(call.function().prepare())
        return [call.inputs[0]]

    define(run)
    session.run(applied(lambda x: tf.py_func(lambda v: v + 1, [x], tf.float32)))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(kept[0]([np.array(4, np.float32)], CancelToken())))
    thread.start()
    thread.join(20)
    assert found == [5]


def test_an_error_in_a_function_names_its_node_and_line(session: tf.Session, define: Any) -> None:
    define(once)
    made = applied(lambda x: tf.check_numerics(tf.log(x - 4), "bad", name="checked"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"CheckNumerics 'checked'.*test_host_functions.py:\d+"):
        session.run(made)


def test_two_owners_of_streams_draw_the_same_numbers(session: tf.Session, define: Any) -> None:
    def run(call: HostCall) -> list[Any]:
        x = call.inputs
        first, second = (call.function().prepare("", Streams()) for _ in range(2))
        return [np.stack([f(x, call.cancel)[0] for f in (first, first, second, second)])]

    define(run)
    a, b, c, d = session.run(applied(lambda x: x + tf.random_uniform([], seed=1)))
    assert (a, b) == (c, d)
    assert a != b


def test_streams_begin_again(session: tf.Session, define: Any) -> None:
    def run(call: HostCall) -> list[Any]:
        streams = Streams()
        function = call.function().prepare("", streams)
        (a,) = function(call.inputs, call.cancel)
        streams.restart()
        return [np.stack([a, function(call.inputs, call.cancel)[0]])]

    define(run)
    a, b = session.run(applied(lambda x: x + tf.random_uniform([], seed=1)))
    assert a == b

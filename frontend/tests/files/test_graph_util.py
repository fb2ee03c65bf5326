"""tf.graph_util, write_graph, node_def, and containers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def frozen(session: tf.Session, outputs: list[str], **settings: Any) -> Any:
    session.run(tf.global_variables_initializer())
    definition = session.graph.as_graph_def()
    return tf.graph_util.convert_variables_to_constants(session, definition, outputs, **settings)


def result(definition: Any, name: str, feeds: dict[str, Any] | None = None) -> Any:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        return session.run(name, feeds)


def dense() -> Any:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    return tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer())


def looked_up() -> Any:
    table = tf.get_variable("table", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
    return tf.gather_nd(table, [[0, 1]]) + tf.gather(table, [1, 2])


def in_a_loop() -> Any:
    v = tf.get_variable("v", initializer=2.0)
    return tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * v), [0, 1.0])[1]


def in_a_branch() -> Any:
    v = tf.get_variable("v", initializer=2.0)
    inner = lambda: tf.while_loop(lambda x: x < 20.0, lambda x: x * v, [v])  # noqa: E731 - a branch of one line
    return tf.cond(v > 1.0, inner, lambda: v - 1.0)


def recurrent() -> Any:
    x = tf.placeholder(tf.float32, [2, 3, 2], name="x")
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(3), x, dtype=tf.float32)[0]


@pytest.mark.parametrize("build", [dense, looked_up, in_a_loop, in_a_branch, recurrent])
def test_constants_take_the_place_of_variables(session: tf.Session, build: Callable[[], Any]) -> None:
    tf.set_random_seed(1)
    y = tf.identity(build(), name="y")
    definition = frozen(session, ["y"])
    given = {"dense": np.ones((3, 2)), "recurrent": np.ones((2, 3, 2))}.get(build.__name__)
    feeds = {} if given is None else {"x:0": given}
    assert not [n.op for n in definition.node if "Var" in n.op or "Assign" in n.op]
    np.testing.assert_array_equal(result(definition, "y:0", feeds), session.run(y, feeds))


def test_names_say_which_variables_are_converted(session: tf.Session) -> None:
    a, b = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=2.0)
    tf.add(a, b, name="y")
    for settings in ({"variable_names_whitelist": ["a"]}, {"variable_names_blacklist": ["b"]}):
        kinds = {n.name: n.op for n in frozen(session, ["y"], **settings).node}
        assert (kinds["a"], kinds["b"]) == ("Const", "VarHandleOp")


def test_functions_that_nothing_calls_are_left_out(session: tf.Session) -> None:
    in_a_loop()
    tf.constant(1.0, name="y")
    assert not frozen(session, ["y"]).library.function


def test_variable_without_a_value_cannot_be_frozen(session: tf.Session) -> None:
    tf.identity(tf.get_variable("v", initializer=1.0), name="y")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Variable 'v' has no value"):
        tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["y"])


def test_part_that_changes_a_variable_cannot_be_frozen(session: tf.Session) -> None:
    tf.identity(tf.assign_add(tf.get_variable("v", initializer=1.0), 1.0), name="y")
    with pytest.raises(tf.errors.InvalidArgumentError, match="uses the variable 'v', which is to become a constant"):
        frozen(session, ["y"])


def test_sub_graph_has_what_its_nodes_need(session: tf.Session) -> None:
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([tf.no_op("before")]):
        tf.negative(a, name="b")
    tf.identity(a, name="c")
    part = tf.graph_util.extract_sub_graph(session.graph.as_graph_def(), ["b"])
    assert [n.name for n in part.node] == ["a", "before", "b"]


@pytest.mark.parametrize(("nodes", "said"), [(["q"], "no node 'q'"), ("a", "a list of names is required")])
def test_wrong_nodes_are_refused(session: tf.Session, nodes: Any, said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.graph_util.extract_sub_graph(session.graph.as_graph_def(), nodes)


def test_identities_and_checks_are_removed(session: tf.Session) -> None:
    a = tf.identity(tf.check_numerics(tf.constant(2.0, name="a"), "bad"), name="i")
    tf.negative(tf.identity(a, name="kept"), name="y")
    made = tf.graph_util.remove_training_nodes(session.graph.as_graph_def(), protected_nodes=["kept"])
    assert [n.name for n in made.node] == ["a", "kept", "y"]
    assert result(made, "y:0") == -2


def test_integers_run_on_the_cpu(session: tf.Session) -> None:
    whole, real = tf.constant(1), tf.constant(1.0)
    assert tf.graph_util.must_run_on_cpu(whole.op)
    assert not tf.graph_util.must_run_on_cpu(real.op.node_def)
    assert tf.graph_util.must_run_on_cpu(tf.get_variable("v", initializer=1.0).op, pin_variables_on_cpu=True)


def test_shape_is_found_by_the_name_of_a_node(session: tf.Session) -> None:
    tf.zeros([2, 3], name="a")
    assert tf.graph_util.tensor_shape_from_node_def_name(session.graph, "a").as_list() == [2, 3]


def test_node_def_names_inputs_and_controls(session: tf.Session) -> None:
    a, b = tf.split(tf.constant([1.0, 2.0], name="x"), 2, name="parts")
    with tf.control_dependencies([tf.no_op("before")]):
        node = tf.add(a, b, name="y").op.node_def
    assert (node.name, node.op, list(node.input)) == ("y", "AddV2", ["parts", "parts:1", "^before"])


@pytest.mark.parametrize("as_text", [True, False])
def test_written_graph_can_be_read(session: tf.Session, tmp_path: Path, as_text: bool) -> None:
    tf.constant(3.0, name="x")
    path = tf.train.write_graph(session.graph, tmp_path / "new", "graph.pb", as_text=as_text)
    definition = tf.GraphDef()
    if as_text:
        from google.protobuf import text_format

        text_format.Parse(Path(path).read_text(), definition)
    else:
        definition.ParseFromString(Path(path).read_bytes())
    assert result(definition, "x:0") == 3


def test_containers_keep_equal_names_apart(session: tf.Session) -> None:
    def queue() -> Any:
        return tf.FIFOQueue(2, [tf.int32], shapes=[[]], shared_name="queue")

    first = queue()
    with tf.container("box"):
        second = queue()
    session.run(first.enqueue(1))
    assert session.run([first.size(), second.size()]) == [1, 0]
    assert second.queue_ref.op.get_attr("container") == "box"


def test_timestamp_is_the_time_of_the_run(session: tf.Session) -> None:
    now = tf.timestamp()
    first = session.run(now)
    assert first.dtype == np.float64
    assert session.run(now) >= first > 1.5e9


def test_best_f1_score(session: tf.Session) -> None:
    value, update = tf.contrib.metrics.f1_score([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1])
    session.run(tf.local_variables_initializer())
    session.run(update)
    assert session.run(value) == pytest.approx(0.8, abs=1e-5)

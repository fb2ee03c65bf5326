"""tf.contrib.graph_editor: walks, copies and other inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

ge = tf.contrib.graph_editor

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def chain() -> tuple[Any, Any, Any]:
    """A graph x -> h -> y."""
    x = tf.placeholder(tf.float32, [2], name="x")
    h = tf.square(x, name="h")
    return x, h, tf.negative(h, name="y")


def value(tensor: Any, x: Any) -> list[float]:
    with tf.Session() as session:
        found: list[float] = session.run(tensor, {"x:0": np.float32(x)}).tolist()
        return found


def test_walks_go_both_ways(chain: Any) -> None:
    x, h, y = chain
    assert ge.get_backward_walk_ops(y.op) == [y.op, h.op, x.op]
    assert ge.get_backward_walk_ops(y.op, inclusive=False, stop_at_ts=[h]) == []
    assert ge.get_forward_walk_ops([x.op], inclusive=False) == [h.op, y.op]
    assert ge.get_forward_walk_ops([x.op], within_ops=[x.op, h.op]) == [x.op, h.op]
    assert ge.get_walks_intersection_ops([x.op], [h.op]) == [x.op, h.op]


def test_names_choose_operations_and_tensors(chain: Any) -> None:
    x, h, y = chain
    assert ge.select_ops("^[hy]$", graph=tf.get_default_graph()) == [h.op, y.op]
    assert ge.filter_ts_from_regex([x.op, h.op], "h") == [h]
    with pytest.raises(TypeError, match="graph= is required"):
        ge.select_ops("h")


def test_a_view_has_what_goes_in_and_out(chain: Any) -> None:
    x, h, y = chain
    view = ge.sgv([h.op, y.op])
    assert (view.inputs, view.outputs) == ([x], [y])


def test_a_copy_takes_replacements(chain: Any) -> None:
    x, h, y = chain
    view, info = ge.copy_with_input_replacements([h.op, y.op], {x: tf.constant([3.0, 4.0])}, dst_scope="new")
    assert [op.name for op in view.ops] == ["new/h", "new/y"]
    assert value(info.transformed(y), [1, 1]) == [-9, -16]
    assert info.original(info.transformed(h)) is h
    assert value(y, [1, 2]) == [-1, -4]


def test_a_graph_is_replaced_from_a_tensor_on(chain: Any) -> None:
    x, h, y = chain
    assert value(ge.graph_replace(y, {h: x * 10.0}), [1, 2]) == [-10, -20]
    with pytest.raises(ValueError, match="do not depend on"):
        ge.graph_replace(h, {y: x})


def test_users_of_a_tensor_use_another_one(chain: Any) -> None:
    x, h, y = chain
    assert value(y, [1, 2]) == [-1, -4]
    later = x + 1.0  # made after its user, which is put after it
    assert ge.reroute_ts([later], [h], can_modify=[y.op]) == 1
    assert value(y, [1, 2]) == [-2, -3]
    with pytest.raises(ValueError, match="a graph must have no cycle"):
        ge.reroute_ts([y], [x], can_modify=[h.op, later.op])
    assert value(y, [1, 2]) == [-2, -3]


def test_an_operation_waits_for_others(chain: Any) -> None:
    x, _, y = chain
    v = tf.Variable(0.0)
    change = tf.assign_add(v, 1.0, name="change").op
    ge.add_control_inputs(y.op, change)
    assert ge.ControlOutputs(tf.get_default_graph()).get(change) == [y.op]
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y, {x: [1, 1]})
        assert session.run(v) == 1
        ge.reroute.remove_control_inputs(y.op, change)
        session.run(y, {x: [1, 1]})
        assert session.run(v) == 1
    with pytest.raises(ValueError, match="a graph must have no cycle"):
        ge.add_control_inputs(x.op, y.op)

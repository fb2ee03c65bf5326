"""import_graph_def and as_graph_def: what goes through, and what is refused in which words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op


def small_graph_def() -> Any:
    """a: placeholder, b = a + const, c = identity(b)."""
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float32, [4], "a")
        b = apply_op("AddV2", [a, 1.0], name="b")
        apply_op("Identity", [b], name="c")
        return graph.as_graph_def()


def node(graph_def: Any, name: str) -> Any:
    return next(n for n in graph_def.node if n.name == name)


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_round_trip_changes_nothing(graph: tf.Graph) -> None:
    message = small_graph_def()
    tf.import_graph_def(message, name="")
    assert graph.as_graph_def() == message


def test_serialised_bytes_are_accepted(graph: tf.Graph) -> None:
    tf.import_graph_def(small_graph_def().SerializeToString(), name="")
    assert graph.get_tensor_by_name("c:0").shape.as_list() == [4]


def test_names_get_the_prefix_import(graph: tf.Graph) -> None:
    tf.import_graph_def(small_graph_def())
    tf.import_graph_def(small_graph_def())
    assert [op.name for op in graph.get_operations() if op.type == "Identity"] == ["import/c", "import_1/c"]


def test_prefix_lies_in_the_surrounding_scope(graph: tf.Graph) -> None:
    with tf.name_scope("outer"):
        tf.import_graph_def(small_graph_def(), name="net")
    assert graph.get_operation_by_name("outer/net/c")


def test_return_elements_are_tensors_and_operations(graph: tf.Graph) -> None:
    tensor, op = tf.import_graph_def(small_graph_def(), return_elements=["b:0", "c"]) or []
    assert (tensor.name, op.name) == ("import/b:0", "import/c")


def test_input_map_replaces_a_tensor(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [4], "x")
    (b,) = tf.import_graph_def(small_graph_def(), {"a:0": x}, ["b"]) or []
    assert b.inputs[0] is x


def test_input_map_names_a_tensor_without_its_number(graph: tf.Graph) -> None:
    (b,) = tf.import_graph_def(small_graph_def(), {"a": [1.0, 2.0, 3.0, 4.0]}, ["b"]) or []
    assert b.inputs[0].op.type == "Const"


def test_input_map_may_supply_a_missing_node(graph: tf.Graph) -> None:
    message = small_graph_def()
    del message.node[0]
    tf.import_graph_def(message, {"a:0": tf.placeholder(tf.float32, [4])}, name="")
    assert graph.get_operation_by_name("c")


def test_input_map_replaces_a_control_input(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "c").input.append("^a")
    other = tf.constant(1)
    (c,) = tf.import_graph_def(message, {"^a": other.op}, ["c"]) or []
    assert c.control_inputs == (other.op,)


def test_unused_input_map_is_refused(graph: tf.Graph) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="input_map: zz:0 not in the GraphDef"):
        tf.import_graph_def(small_graph_def(), {"zz:0": tf.constant(1.0)})


def test_nodes_may_come_in_any_order(graph: tf.Graph) -> None:
    message = small_graph_def()
    nodes = list(message.node)
    del message.node[:]
    message.node.extend(reversed(nodes))
    tf.import_graph_def(message, name="")
    assert len(graph) == 4


def test_control_inputs_survive(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "c").input.append("^a")
    tf.import_graph_def(message, name="")
    assert [op.name for op in graph.get_operation_by_name("c").control_inputs] == ["a"]


def test_surrounding_device_completes_the_nodes_own(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "b").device = "/device:ACME:3"
    with tf.device("/job:localhost/acme:1"):
        tf.import_graph_def(message, name="")
    devices = {op.name: op.device for op in graph.get_operations()}
    assert devices["b"] == "/job:localhost/device:ACME:3"
    assert devices["c"] == "/job:localhost/device:ACME:1"


def test_colocation_follows_the_prefix(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "c").attr["_class"].list.s.append(b"loc:@b")
    tf.import_graph_def(message)
    assert graph.get_operation_by_name("import/c").colocation == ("import/b",)


def test_output_shapes_add_knowledge(graph: tf.Graph) -> None:
    with tf.Graph().as_default() as other:
        tf.placeholder(tf.float32, [2, 3], "p")
        message = other.as_graph_def(add_shapes=True)
    message.node[0].attr["shape"].shape.unknown_rank = True
    del message.node[0].attr["shape"].shape.dim[:]
    tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("p:0").shape.as_list() == [2, 3]


def test_output_shapes_that_contradict_what_is_inferred_are_left_aside(
    graph: tf.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    message = small_graph_def()
    node(message, "b").attr["_output_shapes"].list.shape.add().dim.add().size = 5
    with caplog.at_level(logging.WARNING, "timberframe"):
        tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("b:0").shape == [4]
    (warning,) = [r.getMessage() for r in caplog.records]
    assert warning == "AddV2 'b': _output_shapes is (5,) for output 0; (4,) is inferred, and is kept"


def test_graph_with_shapes_that_tensorflow_infers_wrongly_runs(graph: tf.Graph) -> None:
    with tf.Graph().as_default() as other:
        x = tf.constant(np.ones((1, 2, 9, 1), np.float32))
        attrs = {"pooling_ratio": (1.0, 2.0, 3.5, 1.0), "pseudo_random": False, "deterministic": True, "seed": 7}
        apply_op("FractionalMaxPool", [x], attrs, name="pool")
        message = other.as_graph_def(add_shapes=True)
    node(message, "pool").attr["_output_shapes"].list.shape[1].dim[0].size = 1  # TensorFlow leaves out the last limit
    tf.import_graph_def(message, name="")
    with tf.Session() as session:
        assert session.run("pool:1").tolist() == [0, 2]


def test_attr_without_effect_is_dropped(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "b").attr["new_switch"].b = False
    tf.import_graph_def(message, name="")
    assert "new_switch" not in graph.get_operation_by_name("b").attrs


def test_private_attr_is_dropped(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "b").attr["_grappler"].i = 7
    tf.import_graph_def(message, name="")
    assert "_grappler" not in graph.get_operation_by_name("b").attrs


def test_kernel_label_is_kept(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "b").attr["_kernel"].s = b"fast"
    tf.import_graph_def(message, name="")
    assert graph.get_operation_by_name("b").attrs["_kernel"] == "fast"


def test_default_of_the_producer_is_dropped(graph: tf.Graph) -> None:
    message = small_graph_def()
    node(message, "b").attr["mode"].i = 7
    attr = {"name": "mode", "type": "int", "default_value": tf.AttrValue(i=7)}
    tf.import_graph_def(message, name="", producer_op_list=tf.OpList(op=[{"name": "AddV2", "attr": [attr]}]))
    assert graph.get_operation_by_name("b")


def test_missing_attr_gets_its_default(graph: tf.Graph) -> None:
    message = small_graph_def()
    del node(message, "a").attr["shape"]
    tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("a:0").static_shape is None


def test_scalar_placeholder_of_an_old_producer_has_an_unknown_shape(graph: tf.Graph) -> None:
    message = small_graph_def()
    del node(message, "a").attr["shape"].shape.dim[:]
    message.versions.producer = 21
    tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("a:0").static_shape is None


# What is refused


def unknown_ops(g: Any) -> None:
    node(g, "a").op, node(g, "c").op = "Foo", "Bar"


def cycle(g: Any) -> None:
    node(g, "b").input[0] = "c"


def missing_input(g: Any) -> None:
    node(g, "b").input[0] = "zz"


def missing_control_input(g: Any) -> None:
    node(g, "b").input.append("^zz")


def missing_output(g: Any) -> None:
    node(g, "b").input[0] = "a:1"


def duplicate_name(g: Any) -> None:
    node(g, "c").name = "b"


def wrong_dtype(g: Any) -> None:
    node(g, "b").attr["T"].type = tf.int32.number


def wrong_kind(g: Any) -> None:
    node(g, "b").attr["T"].i = 1


def wrong_kind_of_index(g: Any) -> None:
    g.node.add(name="s", op="Split", input=["b", "a"]).attr["num_split"].s = b"two"


def unknown_attr(g: Any) -> None:
    node(g, "b").attr["mode"].i = 3


def missing_attr(g: Any) -> None:
    del node(g, "b").attr["T"]


def unknown_dtype(g: Any) -> None:
    node(g, "b").attr["T"].type = 77


def control_input_first(g: Any) -> None:
    node(g, "b").input.insert(0, "^a")


def surplus_input(g: Any) -> None:
    node(g, "b").input.append("a")


def absent_input(g: Any) -> None:
    del node(g, "b").input[1]


def broken_tensor(g: Any) -> None:
    node(g, "b/y").attr["value"].tensor.tensor_content = b"123"


def tensor_of_other_dtype(g: Any) -> None:
    node(g, "b/y").attr["dtype"].type = tf.float64.number


def malformed_device(g: Any) -> None:
    node(g, "b").device = "/job"


def newer_consumer_wanted(g: Any) -> None:
    g.versions.min_consumer = 1_000_000


def this_consumer_excluded(g: Any) -> None:
    g.versions.bad_consumers.append(g.versions.producer)


def unknown_colocation(g: Any) -> None:
    node(g, "b").attr["_class"].list.s.append(b"loc:@zz")


def wrong_shapes(g: Any) -> None:
    node(g, "b/y").attr["value"].tensor.tensor_shape.dim.add().size = 3


REFUSED: list[tuple[Callable[[Any], None], str]] = [
    (unknown_ops, "no op is registered as Bar, Foo;"),
    (cycle, "nodes b -> c -> b form a cycle"),
    (missing_input, "AddV2 'b': input 'zz' is not in the GraphDef"),
    (missing_control_input, r"AddV2 'b': input '\^zz' is not in the GraphDef"),
    (missing_output, "AddV2 'b': input 'a:1' asks for output 1; Placeholder 'a' has 1 outputs"),
    (duplicate_name, "Identity 'b': name 'b' is there twice"),
    (wrong_dtype, r"AddV2 'b': input 0 \('a:0'\) has dtype float32; it must be int32"),
    (wrong_kind, "AddV2 'b': attr T holds i; it must hold a type"),
    (wrong_kind_of_index, "Split 's': attr num_split holds s; it must hold an int"),
    (unknown_attr, "AddV2 'b': attr mode is unknown and holds i: 3; the op has T"),
    (missing_attr, "AddV2 'b': attr T is missing"),
    (unknown_dtype, "AddV2 'b': attr T: dtype 77 is not known"),
    (control_input_first, r"AddV2 'b': data input 'a' follows control input '\^a'"),
    (surplus_input, "AddV2 'b': has 3 inputs; 2 are required"),
    (absent_input, "AddV2 'b': has 1 inputs; 2 are required"),
    (broken_tensor, r"Const 'b/y': attr value: .*tensor_content has 3 bytes; float32 \(\) needs 4"),
    (tensor_of_other_dtype, "Const 'b/y': attr value has dtype 1"),
    (malformed_device, "AddV2 'b': device '/job': part 'job' is malformed"),
    (newer_consumer_wanted, "needs a consumer of version 1000000"),
    (this_consumer_excluded, "excludes consumers of version"),
    (unknown_colocation, "AddV2 'b': is to be placed with 'zz', which is not in the GraphDef"),
    (wrong_shapes, r"AddV2 'b': shapes \(4,\) and \(3,\) do not broadcast"),
]


@pytest.mark.parametrize(("damage", "words"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_damaged_graph_def_is_refused(graph: tf.Graph, damage: Callable[[Any], None], words: str) -> None:
    message = small_graph_def()
    damage(message)
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError), match=words):
        tf.import_graph_def(message, name="")


def test_failed_import_leaves_the_graph_as_it_was(graph: tf.Graph) -> None:
    tf.constant(1, name="before")
    message = small_graph_def()
    wrong_dtype(message)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.import_graph_def(message)
    assert [op.name for op in graph.get_operations()] == ["before"]
    tf.import_graph_def(small_graph_def())
    assert graph.get_operation_by_name("import/c")


def test_a_name_that_is_taken_gets_a_number(graph: tf.Graph) -> None:
    tf.constant(1, name="b")
    (b,) = tf.import_graph_def(small_graph_def(), return_elements=["b"], name="")
    assert b.name == "b_1"
    assert graph.get_tensor_by_name("c:0").op.inputs[0].op is b


def test_nodes_stay_together_under_their_new_names(graph: tf.Graph) -> None:
    a = tf.constant(1, name="a")
    with tf.colocate_with(a):
        tf.constant(2, name="b")
    tf.import_graph_def(graph.as_graph_def(), name="")
    assert graph.get_operation_by_name("b_1").colocation_groups() == [b"loc:@a_1"]


def test_unknown_return_element_is_refused(graph: tf.Graph) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="return_elements: 'zz:0' is not in the GraphDef"):
        tf.import_graph_def(small_graph_def(), return_elements=["zz:0"])


def test_wrong_value_is_left_to_the_run(graph: tf.Graph) -> None:
    with tf.Graph().as_default() as other:
        apply_op("Reshape", [tf.placeholder(tf.float32, [6]), [2, 3]], name="r")
        message = other.as_graph_def()
    shape = next(n for n in message.node if n.op == "Const")
    shape.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([4, 5], tf.int32))
    tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("r:0").shape.rank == 2


def test_bad_shape_that_only_running_shows_is_an_error_of_the_run_that_needs_the_node(write: Any) -> None:
    write.const("y", np.zeros((2, 3), np.float32)).const("dy", np.zeros((3, 2), np.float32))
    write("SigmoidGrad", "bad", "y", "dy", T=tf.float32)("Identity", "good", "y", T=tf.float32)
    assert write.run("good:0").shape == (2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'bad': .* have shapes \(2, 3\) and \(3, 2\)"):
        write.run("bad:0")


def test_bad_shape_that_tensorflow_finds_while_importing_is_an_error_of_the_import(write: Any) -> None:
    write.const("x", np.zeros((2, 3), np.float32)).const("y", np.zeros((3, 2), np.float32))
    write("AddV2", "bad", "x", "y", T=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"AddV2 'bad': shapes \(2, 3\) and \(3, 2\)"):
        write.graph()


def test_comparison_of_shapes_that_do_not_broadcast_is_imported(write: Any) -> None:
    write.const("x", np.zeros((2, 3), np.int32)).const("y", np.zeros((3, 2), np.int32))
    write("NotEqual", "unequal", "x", "y", incompatible_shape_error=False)
    assert write.run("unequal:0") == np.True_

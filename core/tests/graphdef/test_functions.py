"""Functions of a GraphDef: bodies of While and If, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op


def loop_graph_def() -> Any:
    with tf.Graph().as_default() as graph:
        limit = tf.placeholder(tf.int32, [], "limit")
        tf.while_loop(lambda i: apply_op("Less", [i, limit]), lambda i: apply_op("AddV2", [i, 1]), [0], name="loop")
        return graph.as_graph_def()


def test_round_trip_keeps_bodies() -> None:
    message = loop_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        assert graph.as_graph_def() == message


def test_importing_twice_shares_equal_functions() -> None:
    message = loop_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message)
        tf.import_graph_def(message)
        assert len(graph.functions) == 2


def test_another_function_of_the_same_name_is_refused() -> None:
    message, other = loop_graph_def(), loop_graph_def()
    body = next(f for f in other.library.function if "body" in f.signature.name)
    body.node_def[-1].op = "Sub"
    with tf.Graph().as_default():
        tf.import_graph_def(message)
        with pytest.raises(tf.errors.InvalidArgumentError, match="differs from the graph's function of that name"):
            tf.import_graph_def(other)


def test_arguments_are_named_as_tensorflow_wants() -> None:
    for function in loop_graph_def().library.function:
        for argument in [*function.signature.input_arg, *function.signature.output_arg]:
            assert argument.name[0].isalpha()
            assert argument.name == argument.name.lower()


def test_node_that_names_a_function_is_a_call() -> None:
    message = loop_graph_def()
    body = next(f.signature.name for f in message.library.function if "body" in f.signature.name)
    message.node.add(name="call", op=body, input=["limit", "limit"])
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        call = graph.get_operation_by_name("call")
    assert (call.type, call.attrs["f"], len(call.outputs)) == ("PartitionedCall", body, 2)


def test_resource_arguments_keep_what_they_handle() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.Variable([1.0, 2.0])
        tf.cond(tf.placeholder(tf.bool, []), lambda: v.assign_add([1.0, 1.0]), v.read_value, name="c")
        message = graph.as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        body = graph.functions[graph.get_operation_by_name("c").attrs["then_branch"]]
        assert body.inputs[0].handle == (tf.float32, (2,))
        assert graph.as_graph_def() == message


def unknown_op(f: Any) -> None:
    f.node_def[0].op = "Foo"


def missing_input(f: Any) -> None:
    f.node_def[-1].input[0] = "zz"


def missing_result(f: Any) -> None:
    f.ret[f.signature.output_arg[0].name] = "zz:z:0"


def duplicate_node(f: Any) -> None:
    f.node_def.add().CopyFrom(f.node_def[0])


def open_type(f: Any) -> None:
    f.signature.input_arg[0].type_attr = "T"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (unknown_op, "no op is registered as Foo"),
        (missing_input, r"function '.*': AddV2 '.*': input is 'zz'; an argument or"),
        (missing_result, r"function '.*': result .* is 'zz:z:0'; an argument or"),
        (duplicate_node, r"function '.*': node '.*' is there twice"),
        (open_type, r"function '.*': argument .* has a type that calls decide"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_damaged_function_is_refused(damage: Callable[[Any], None], words: str) -> None:
    message = loop_graph_def()
    damage(next(f for f in message.library.function if "body" in f.signature.name))
    with tf.Graph().as_default(), pytest.raises(tf.errors.OpError, match=words):
        tf.import_graph_def(message)


def test_function_that_nobody_calls_may_have_unknown_ops() -> None:
    message = loop_graph_def()
    spare = message.library.function.add()
    spare.signature.name = "spare"
    spare.node_def.add(name="n", op="Foo")
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message)
        assert "spare" not in graph.functions

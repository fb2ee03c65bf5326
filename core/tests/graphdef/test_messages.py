"""The GraphDef messages: wire, text format, and conversion from bytes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pool, text_format

import timberframe as tf
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.messages import as_message


def test_text_format_names_enum_values() -> None:
    node = tf.NodeDef(name="a", op="Placeholder")
    node.attr["dtype"].type = tf.float32.number
    assert "type: DT_FLOAT" in text_format.MessageToString(node)


def test_text_format_of_tensorflow_parses() -> None:
    text = """
      node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_HALF } }
             attr { key: "value" value { tensor { dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: 15360 } } }
             experimental_type { type_id: TFT_PRODUCT } }
      versions { producer: 1987 }
      library { function { signature { name: "f" } ret { key: "y" value: "x:output:0" } } }
    """
    graph_def = text_format.Parse(text, tf.GraphDef())
    assert graph_def.node[0].attr["value"].tensor.half_val == [15360]
    assert graph_def.library.function[0].ret["y"] == "x:output:0"


def test_wire_numbers_are_tensorflows() -> None:
    node = tf.NodeDef(name="n", op="Op", input=["a"], device="d")
    assert node.SerializeToString() == b"\x0a\x01n\x12\x02Op\x1a\x01a\x22\x01d"


def test_fields_of_a_newer_producer_survive() -> None:
    unknown = b"\xda\x3e\x03new"  # field 1003
    node = tf.NodeDef.FromString(b"\x0a\x01n" + unknown)
    assert unknown in node.SerializeToString()


def test_messages_stay_out_of_the_process_wide_pool() -> None:
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindFileByName("timberframe/graphdef.proto")


def test_bytes_become_a_message() -> None:
    data = tf.GraphDef(node=[tf.NodeDef(name="n")]).SerializeToString()
    assert as_message(data, tf.GraphDef, "graph_def").node[0].name == "n"


def test_truncated_bytes_are_refused() -> None:
    data = tf.GraphDef(node=[tf.NodeDef(name="a long name")]).SerializeToString()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"graph_def: \d+ bytes do not parse as GraphDef .*truncated"
    ):
        as_message(data[:-3], tf.GraphDef, "graph_def")


def test_other_objects_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="got NodeDef; it must be a GraphDef or its bytes"):
        as_message(tf.NodeDef(), tf.GraphDef, "graph_def")


def test_other_packages_add_messages_that_have_ours_in_their_fields() -> None:
    from timberframe_core.graphdef.message_classes import add_messages, message

    add_messages(
        "of.a.test", {"Pair": "first 1 TensorProto, rest 2 [Pair], kind 3 Kind"}, {"Kind": {"NONE": 0, "SOME": 1}}
    )
    pair = message("Pair", "of.a.test")
    made = pair(first=messages.TensorProto(dtype=1), kind="SOME", rest=[pair()])
    assert pair.FromString(made.SerializeToString()) == made
    assert made.first.DESCRIPTOR.full_name == "tensorflow.TensorProto"


def test_nested_messages_are_attributes_with_protobuf_in_pure_python() -> None:
    program = "import timberframe as tf; print(tf.Summary(value=[tf.Summary.Value(tag='loss', simple_value=2.0)]))"
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert 'tag: "loss"' in ran.stdout, ran.stderr

"""Files with correct checksums and wrong content: they raise an OpError and cost neither much memory nor time."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.saving.snappy import expand
from timberframe.saving.tensor_slices import slice_key
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.graph.apply import apply_op
from timberframe_core.graphdef.messages import BundleEntryProto, BundleHeaderProto, VariableDef
from timberframe_core.graphdef.tensors import encode_shape

Loss = tf.errors.DataLossError
STORED = Path(__file__).parent / "data" / "model.ckpt-7"


def block(rows: list[bytes], restarts: int = 1) -> bytes:
    content = b"".join(rows) + struct.pack("<II", 0, restarts) + b"\0"
    return content + struct.pack("<I", masked(crc32c(content)))


def table(rows: list[bytes], restarts: int = 1) -> bytes:
    data = block(rows, restarts)
    index = block([bytes([0, 1, len(varint(len(data) - 5)) + 1]) + b"\xff" + b"\0" + varint(len(data) - 5)])
    footer = b"\0\0" + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def row(key: bytes, value: bytes) -> bytes:
    return varint(0) + varint(len(key)) + varint(len(value)) + key + value


def entry(**fields: Any) -> Any:
    return BundleEntryProto(**{"dtype": 1, "shape": encode_shape((2,)), "size": 8, **fields})


def write_bundle(folder: Path, rows: dict[bytes, Any], data: bytes = bytes(8)) -> str:
    """Returns a checkpoint of one data file with these entries."""
    given = {b"": BundleHeaderProto(num_shards=1), **rows}
    encoded = [row(key, value.SerializeToString()) for key, value in sorted(given.items())]
    (folder / "m.index").write_bytes(table(encoded))
    (folder / "m.data-00000-of-00001").write_bytes(data)
    return str(folder / "m")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dtype": 99}, "dtype 99 is not known"),
        ({"shape": encode_shape((2, None))}, r"its shape is \(2, \?\)"),
        ({"shape": encode_shape((2**40, 2**40))}, r"over 2\^63 - 1 elements"),
        ({"offset": -8}, "8 bytes at -8 of file 0"),
        ({"offset": 2**62}, "run past the end"),
        ({"size": -8, "shape": encode_shape((2,))}, "-8 bytes"),
        ({"shard_id": 7}, "of file 7 of 1"),
        ({"shape": encode_shape((2**40,)), "size": 2**42}, "run past the end"),
        ({"dtype": 7, "shape": encode_shape((2**40,))}, "past the end of its block"),
    ],
)
def test_inconsistent_entry_is_refused(tmp_path: Path, fields: Any, message: str) -> None:
    prefix = write_bundle(tmp_path, {b"x": entry(**fields)})
    with pytest.raises(Loss, match=message):
        tf.train.load_variable(prefix, "x")


def sliced(*ranges: tuple[int, int], shape: tuple[int, ...] = (2,)) -> dict[bytes, Any]:
    whole = entry(shape=encode_shape(shape))
    rows: dict[bytes, Any] = {b"x": whole}
    for start, length in ranges:
        part = whole.slices.add()
        part.extent.add(start=start, length=length)
        size = 4 * length
        rows[slice_key("x", part)] = entry(
            shape=encode_shape((length,)), size=size, crc32c=masked(crc32c(bytes(max(size, 0))))
        )
    return rows


def test_slices_of_a_whole_tensor_are_joined(tmp_path: Path) -> None:
    found = tf.train.load_variable(write_bundle(tmp_path, sliced((0, 1), (1, 1))), "x")
    np.testing.assert_array_equal(found, np.zeros(2, np.float32))


@pytest.mark.parametrize(
    "ranges", [[(0, 1)], [(0, 1), (0, 1)], [(0, 2), (1, 1)], [(1, 2)]], ids=["hole", "twice", "overlap", "outside"]
)
def test_slices_that_leave_out_or_repeat_elements_are_refused(tmp_path: Path, ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(Loss, match=r"its slices do not make up its shape \[2\]"):
        tf.train.load_variable(write_bundle(tmp_path, sliced(*ranges)), "x")


def test_slices_of_a_tensor_larger_than_memory_take_none(tmp_path: Path) -> None:
    with pytest.raises(Loss, match="do not make up its shape"):
        tf.train.load_variable(write_bundle(tmp_path, sliced((0, 2), shape=(2**60,))), "x")


@pytest.mark.parametrize("restarts", [1000, 2**32 - 1])
def test_block_with_more_restarts_than_bytes_is_refused(tmp_path: Path, restarts: int) -> None:
    (tmp_path / "m.index").write_bytes(table([row(b"", b"")], restarts))
    with pytest.raises(Loss, match="has no room for what ends it"):
        tf.train.load_checkpoint(str(tmp_path / "m"))


def test_key_that_shares_more_than_there_was_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(table([varint(5) + varint(1) + varint(0) + b"k"]))
    with pytest.raises(Loss, match="5 of its key being those before"):
        tf.train.load_checkpoint(str(tmp_path / "m"))


def test_expanding_stops_at_the_stated_size() -> None:
    copies = bytes([63 << 2 | 2, 1, 0]) * 1_000_000  # each gives 64 bytes more
    with pytest.raises(Loss, match="has more than its 100 bytes"):
        expand(bytes([100, 0, ord("a")]) + copies)


# Nodes that read and write files


def test_names_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        read = apply_op("RestoreV2", [tf.constant(b"\xff"), ["x"], [""]], {"dtypes": [tf.float32]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"RestoreV2 '.*': name b'\\xff' is not UTF-8"):
            session.run(read)


def test_merging_reads_checkpoints_of_every_format(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        merge = apply_op("MergeV2Checkpoints", [[str(STORED)], str(tmp_path / "m")], {"delete_old_dirs": False})
        session.run(merge)
    np.testing.assert_array_equal(tf.train.load_variable(str(tmp_path / "m"), "int8"), np.array([-3, 4], np.int8))


# Models


def test_model_in_text_form_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pbtxt").write_bytes(b"\xff")
    with tf.Session(graph=tf.Graph()) as session, pytest.raises(tf.errors.InvalidArgumentError, match="in text form"):
        tf.saved_model.load(session, ["serve"], str(tmp_path))


def variable_def(**fields: Any) -> Any:
    """Returns a MetaGraph of one variable, with these fields of its VariableDef changed."""
    with tf.Graph().as_default():
        tf.Variable(1.0, name="v")
        meta = tf.train.export_meta_graph()
    values = meta.collection_def["variables"].bytes_list.value
    proto = VariableDef.FromString(values[0])
    for name, value in fields.items():
        setattr(proto, name, value)
    for key in ("variables", "trainable_variables"):
        meta.collection_def[key].bytes_list.value[0] = proto.SerializeToString()
    return meta


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variable_name", "v/Assign"),
        ("initial_value_name", "v/Assign"),
        ("initializer_name", "v:0"),
        ("aggregation", 9),
    ],
)
def test_variable_that_names_something_else_is_left_out(field: str, value: Any) -> None:
    with tf.Graph().as_default():
        tf.train.import_meta_graph(variable_def(**{field: value}))
        assert tf.global_variables() == []


def test_collection_of_variables_that_holds_numbers_is_left_out() -> None:
    meta = variable_def()
    meta.collection_def["variables"].Clear()
    meta.collection_def["variables"].float_list.value.append(1.0)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        assert tf.global_variables() == []


def test_saver_settings_without_content_are_those_by_default() -> None:
    meta = variable_def()
    meta.collection_def["timberframe_saver"].bytes_list.SetInParent()
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(meta) is not None


def test_empty_tensor_of_a_shape_that_no_array_has_is_refused(tmp_path: Path) -> None:
    header = b'{"x":{"dtype":"F32","shape":[0,4611686018427387904],"data_offsets":[0,0]}}'
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(Loss, match=r"more than memory can hold|is no whole safetensors file"):
        tf.train.load_variable(str(tmp_path / "m.safetensors"), "x")

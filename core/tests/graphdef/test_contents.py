"""Large constants of serialised GraphDefs stay where they are: in bytes, or in a mapped file."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.contents import LARGE, read_graph_def
from timberframe_core.graphdef.export import export_graph
from timberframe_core.graphdef.importer import import_graph_def
from timberframe_core.graphdef.tensors import encode_array

LONG = LARGE // 4 + 1  # elements of float32


def graph_def(*constants: tuple[str, np.ndarray]) -> Any:
    """Returns a GraphDef of constants."""
    made = messages.GraphDef()
    for name, value in constants:
        node = made.node.add(name=name, op="Const")
        tensor = encode_array(value)
        node.attr["dtype"].type = tensor.dtype
        node.attr["value"].tensor.CopyFrom(tensor)
    made.versions.producer = 27
    return made


def imported(graph_def: Any) -> dict[str, np.ndarray]:
    """Returns the constants of a GraphDef by their names."""
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
        return {op.name: op.attrs["value"] for op in graph.get_operations()}


def mapped(path: Path, data: bytes, access: int = mmap.ACCESS_READ) -> mmap.mmap:
    path.write_bytes(data)
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0, access=access)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
@pytest.mark.parametrize("name", ["c", "cc", "ccc", "dddd"])  # which moves what follows by a byte
def test_constants_of_a_mapped_file_lie_in_it(tmp_path: Path, dtype: str, name: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (2, LARGE)).astype(dtype)
    file = mapped(tmp_path / "graph.pb", graph_def((name, x), ("small", x[:, :3])).SerializeToString())
    found = imported(file)
    np.testing.assert_array_equal(found[name], x, strict=True)
    np.testing.assert_array_equal(found["small"], x[:, :3], strict=True)
    whole = np.frombuffer(file, np.uint8)
    assert [np.shares_memory(whole, found[n]) for n in (name, "small")] == [True, False]


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_constants_of_bytes_lie_in_them(kind: Any) -> None:
    x = np.arange(LONG, dtype=np.float32)
    data = graph_def(("a", x), ("b", -x)).SerializeToString()
    found = imported(kind(data))
    np.testing.assert_array_equal(found["b"], -x)
    assert np.shares_memory(np.frombuffer(data, np.uint8), found["a"])


@pytest.mark.parametrize("access", [mmap.ACCESS_WRITE, mmap.ACCESS_COPY])
def test_what_may_be_written_to_is_copied(tmp_path: Path, access: int) -> None:
    x = np.arange(LONG, dtype=np.float32)
    data = graph_def(("a", x)).SerializeToString()
    for buffer in (mapped(tmp_path / "graph.pb", data, access), memoryview(bytearray(data)), bytearray(data)):
        found = imported(buffer)
        np.frombuffer(buffer, np.uint8)[:] = 0
        np.testing.assert_array_equal(found["a"], x)


def test_other_large_nodes_are_read_as_ever() -> None:
    strings = np.full([4], b"s" * LARGE, object)
    same = np.full([LONG], 7, np.float32)  # one repeated value is written once
    made = graph_def(("strings", strings), ("same", same))
    listed = made.node.add(name="listed", op="Const")
    listed.attr["dtype"].type = 1
    listed.attr["value"].tensor.dtype = 1
    listed.attr["value"].tensor.tensor_shape.dim.add().size = LONG
    listed.attr["value"].tensor.float_val.extend(range(LONG))
    message, contents = read_graph_def(made.SerializeToString())
    assert message == made
    assert contents == {}
    found = imported(made.SerializeToString())
    assert found["strings"].tolist() == strings.tolist()
    np.testing.assert_array_equal(found["same"], same)
    np.testing.assert_array_equal(found["listed"], np.arange(LONG))


def test_a_graph_is_exported_as_it_was(tmp_path: Path) -> None:
    made = graph_def(("a", np.arange(LONG, dtype=np.float32)), ("b", np.ones([3], np.int32)))
    with Graph().as_default() as graph:
        import_graph_def(mapped(tmp_path / "graph.pb", made.SerializeToString()), name="")
        again = export_graph(graph)
    assert [(n.name, n.attr["value"]) for n in again.node] == [(n.name, n.attr["value"]) for n in made.node]


@pytest.mark.parametrize("size", [3, LONG * 2, LONG * 4])
def test_damaged_bytes_are_refused_with_protobufs_words(size: int) -> None:
    data = graph_def(("a", np.arange(LONG, dtype=np.float32))).SerializeToString()
    with pytest.raises(InvalidArgumentError, match="do not parse as GraphDef"):
        imported(data[:size])


def test_a_content_of_the_wrong_length_is_refused() -> None:
    made = graph_def(("a", np.arange(LONG, dtype=np.float32)))
    made.node[0].attr["value"].tensor.tensor_shape.dim[0].size += 1
    messages_of = []
    for given in (made, made.SerializeToString()):
        with pytest.raises(InvalidArgumentError, match=f"tensor_content has {4 * LONG} bytes") as caught:
            imported(given)
        messages_of.append(str(caught.value))
    assert messages_of[0] == messages_of[1]

"""Models that are loaded, run and placed into graphs, and what is said of those that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from building import model
from onnx import TensorProto, helper, numpy_helper

import timberframe as tf
import timberframe_onnx
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx import InvalidModelError, UnsupportedModelError

DOUBLE = model([helper.make_node("Add", ["x", "x"], ["y"], "twice")], ["x: float[n,2]"], ["y: float[n,2]"])


def test_a_model_runs_from_a_path_bytes_and_a_message(tmp_path: Path) -> None:
    path = tmp_path / "double.onnx"
    onnx.save(DOUBLE, path)
    x = np.array([[1, 2]], np.float32)
    for source in (path, str(path), DOUBLE.SerializeToString(), DOUBLE):
        np.testing.assert_array_equal(timberframe_onnx.load(source).run({"x": x})["y"], [[2, 4]])


def test_a_model_says_what_it_takes_and_gives() -> None:
    loaded = timberframe_onnx.load(DOUBLE)
    assert loaded.signature == "(x: float[n,2]) -> (y: float[n,2])"
    assert [p.name for p in loaded.inputs] == ["x"]


def test_a_model_runs_for_every_size_that_it_leaves_open() -> None:
    loaded = timberframe_onnx.load(DOUBLE)
    for rows in (0, 1, 5):
        assert loaded.run({"x": np.ones((rows, 2), np.float32)})["y"].shape == (rows, 2)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, r"inputs \['x'\] are missing"),
        ({"x": np.ones((1, 2), np.float32), "z": 1}, r"\['z'\] are unknown"),
        ({"x": np.ones((1, 3), np.float32)}, r"input 'x' has shape \[1, 3\]; the model takes x: float\[n,2\]"),
        ({"x": np.ones((1, 2))}, "input 'x' is of type float64; it must be float32"),
    ],
)
def test_wrong_inputs_are_refused(feeds: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        timberframe_onnx.load(DOUBLE).run(feeds)


def test_all_nodes_that_are_not_supported_are_named_at_once() -> None:
    nodes = [
        helper.make_node("Wish", ["x"], ["a"], "first", domain="acme"),
        helper.make_node("Relu", ["a"], ["b"], "between"),
        helper.make_node("Dream", ["x"], ["c"], "second", domain="acme"),
        helper.make_node("Add", ["b", "c"], ["y"], "last"),
    ]
    made = model(nodes, ["x: float[2]"], ["y: float[2]"])
    made.opset_import.append(helper.make_opsetid("acme", 3))
    with pytest.raises(UnsupportedModelError) as caught:
        timberframe_onnx.load(made)
    assert caught.value.nodes == (
        "acme:Wish (opset 3) 'first': no translator has this op",
        "acme:Dream (opset 3) 'second': no translator has this op",
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no graph"),
        (b"\xff\xfe no model", "is no ONNX model"),
        (helper.make_model(helper.make_graph([], "", [], [])).SerializeToString(), "graph is empty"),
    ],
)
def test_what_is_no_model_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        timberframe_onnx.load(data)


def test_an_opset_of_the_future_is_refused() -> None:
    newest = onnx.defs.onnx_opset_version()
    made = model([helper.make_node("Relu", ["x"], ["y"])], ["x: float[2]"], ["y: float[2]"], opset=newest + 1)
    with pytest.raises(InvalidModelError, match=f"of opset {newest + 1} of domain 'ai.onnx'; 1 to {newest} are known"):
        timberframe_onnx.load(made)


def test_a_name_that_nothing_makes_is_an_error() -> None:
    made = model([helper.make_node("Relu", ["lost"], ["y"])], ["x: float[2]"], ["y: float[2]"])
    with pytest.raises(InvalidModelError, match="value 'lost' is used, but no input"):
        timberframe_onnx.load(made)


def test_a_model_is_placed_into_a_graph_of_the_user() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.constant([[1.0, 2.0]])
        made = timberframe_onnx.import_model(DOUBLE, inputs={"x": x * 10})
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(made.outputs["y"]), [[20, 40]])
        assert all(op.name.startswith("test/") for op in graph.get_operations()[3:])


def test_a_placed_model_has_placeholders_for_inputs_that_are_not_given() -> None:
    graph = tf.Graph()
    made = timberframe_onnx.import_model(DOUBLE, graph)
    with tf.Session(graph=graph) as session:
        fed = session.run(made.outputs["y"], {made.inputs["x"]: [[1.0, 1.0]]})
    np.testing.assert_array_equal(fed, [[2, 2]])


def test_gradients_flow_through_a_placed_model() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([[1.0, 2.0]])
        y = timberframe_onnx.import_model(DOUBLE, inputs={"x": x}).outputs["y"]
        np.testing.assert_array_equal(session.run(tf.gradients(y, x)[0]), [[2, 2]])


def test_texts_go_in_and_out() -> None:
    made = model([helper.make_node("StringConcat", ["x", "x"], ["y"])], ["x: string[2]"], ["y: string[2]"])
    result = timberframe_onnx.load(made).run({"x": np.array(["ä", "b"], object)})["y"]
    assert result.tolist() == ["ää", "bb"]


def test_elements_of_four_bits_are_held_and_converted() -> None:
    weights = helper.make_tensor("w", TensorProto.INT4, [3], [-8, 0, 7])
    nodes = [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)]
    made = model(nodes, [], ["y: float[3]"], initializer=[weights])
    np.testing.assert_array_equal(timberframe_onnx.load(made).run({})["y"], [-8, 0, 7])


def test_a_function_of_the_model_is_its_body() -> None:
    body = helper.make_function(
        "mine", "Scaled", ["a"], ["b"],
        [helper.make_node("Constant", [], ["k"]), helper.make_node("Mul", ["a", "k"], ["b"])],
        [helper.make_opsetid("", 21)], ["by"],
    )  # fmt: skip
    reference = body.node[0].attribute.add(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
    assert reference.ref_attr_name == "by"
    made = model([helper.make_node("Scaled", ["x"], ["y"], domain="mine", by=3.0)], ["x: float[2]"], ["y: float[2]"])
    made.opset_import.append(helper.make_opsetid("mine", 1))
    made.functions.append(body)
    np.testing.assert_array_equal(timberframe_onnx.load(made).run({"x": np.ones(2, np.float32)})["y"], [3, 3])


def test_a_function_that_calls_itself_is_an_error() -> None:
    body = helper.make_function(
        "mine", "Again", ["a"], ["b"], [helper.make_node("Again", ["a"], ["b"], domain="mine")],
        [helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    made = model([helper.make_node("Again", ["x"], ["y"], domain="mine")], ["x: float[2]"], ["y: float[2]"])
    made.opset_import.append(helper.make_opsetid("mine", 1))
    made.functions.append(body)
    with pytest.raises(InvalidModelError, match="may not call themselves"):
        timberframe_onnx.load(made)


def test_a_branch_sees_the_names_around_it() -> None:
    branches = [
        helper.make_graph([helper.make_node(op, ["x"], ["r"])], op, [], [helper.make_empty_tensor_value_info("r")])
        for op in ("Neg", "Abs")
    ]
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    loaded = timberframe_onnx.load(model(nodes, ["c: bool[]", "x: float[2]"], ["y: float[2]"]))
    x = np.array([-1, 2], np.float32)
    np.testing.assert_array_equal(loaded.run({"c": np.array(True), "x": x})["y"], [1, -2])
    np.testing.assert_array_equal(loaded.run({"c": np.array(False), "x": x})["y"], [1, 2])


def external(folder: Path, location: str, size: int = 12) -> Path:
    """Returns a model whose weights are in a file."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("length", str(size))):
        weights.external_data.add(key=key, value=value)
    made = model([helper.make_node("Neg", ["w"], ["y"])], [], ["y: float[3]"], initializer=[weights])
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_weights_are_read_from_a_file_beside_the_model(tmp_path: Path) -> None:
    np.array([1, 2, 3], np.float32).tofile(tmp_path / "weights.bin")
    np.testing.assert_array_equal(timberframe_onnx.load(external(tmp_path, "weights.bin")).run({})["y"], [-1, -2, -3])


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "link.bin"])
def test_weights_outside_of_the_model_s_folder_are_refused(tmp_path: Path, location: str) -> None:
    np.array([1, 2, 3], np.float32).tofile(tmp_path / "weights.bin")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(InvalidModelError, match="must be inside the model's folder"):
        timberframe_onnx.load(external(inside, location))


def test_weights_of_a_wrong_size_are_refused(tmp_path: Path) -> None:
    np.array([1, 2], np.float32).tofile(tmp_path / "weights.bin")
    with pytest.raises(InvalidModelError, match=r"has 12 bytes at 0 of file 'weights\.bin', which has 8"):
        timberframe_onnx.load(external(tmp_path, "weights.bin"))


def test_a_sparse_constant_is_made_dense() -> None:
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    indices = numpy_helper.from_array(np.array([[0, 1], [1, 0]], np.int64), "at")
    sparse = helper.make_sparse_tensor(values, indices, [2, 2])
    made = model([helper.make_node("Neg", ["w"], ["y"])], [], ["y: float[2,2]"], sparse_initializer=[sparse])
    np.testing.assert_array_equal(timberframe_onnx.load(made).run({})["y"], [[0, -5], [-7, 0]])

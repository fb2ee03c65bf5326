"""Ops beyond ONNX's own tests: those of com.microsoft and ai.onnx.ml, and branches for other shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from building import model, port
from onnx import TensorProto, helper, numpy_helper

import timberframe_onnx
from timberframe_core.errors import InvalidArgumentError

RNG = np.random.default_rng(0)


def run(op: str, domain: str, inputs: list[np.ndarray], outputs: list[str], **attributes: Any) -> list[Any]:
    """Returns the outputs of one node."""
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, [o.split(":")[0] for o in outputs], domain=domain, **attributes)
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "one", ports, [port(o) for o in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 3 if domain == "ai.onnx.ml" else 1)]
    loaded = timberframe_onnx.load(helper.make_model(graph, opset_imports=opsets))
    return list(loaded.run(dict(zip(names, inputs, strict=True))).values())


def test_weights_of_four_bits_are_multiplied() -> None:
    x, scales = RNG.random((2, 64), np.float32), RNG.random((3, 2), np.float32)
    packed = RNG.integers(0, 256, (3, 2, 16)).astype(np.uint8)
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(3, 2, 32).astype(np.float32)
    weights = ((codes - 8) * scales[..., None]).reshape(3, 64)
    attributes = {"K": 64, "N": 3, "bits": 4, "block_size": 32}
    made = run("MatMulNBits", "com.microsoft", [x, packed, scales.ravel()], ["y: float[2,3]"], **attributes)
    np.testing.assert_allclose(made[0], x @ weights.T, rtol=1e-5)


def test_a_fused_product_is_scaled_and_transposed() -> None:
    a, b = RNG.random((2, 3, 4), np.float32), RNG.random((2, 5, 4), np.float32)
    made = run("FusedMatMul", "com.microsoft", [a, b], ["y: float[2,3,5]"], transB=1, alpha=0.5)
    np.testing.assert_allclose(made[0], 0.5 * a @ b.transpose(0, 2, 1), rtol=1e-5)


def test_a_linear_classifier_gives_labels_and_probabilities() -> None:
    x = np.array([[1, 0], [0, 2]], np.float32)
    attributes = {"coefficients": [1.0, 0, 0, 1.0], "intercepts": [0.0, 0.5], "classlabels_strings": ["a", "b"]}
    labels, scores = run(
        "LinearClassifier", "ai.onnx.ml", [x], ["l: string[2]", "s: float[2,2]"], post_transform="SOFTMAX", **attributes
    )
    powers = np.exp([[1, 0.5], [0, 2.5]])
    assert labels.tolist() == ["a", "b"]
    np.testing.assert_allclose(scores, powers / powers.sum(1, keepdims=True), rtol=1e-6)


TREE = {
    "n_targets": 1, "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0], "nodes_missing_value_tracks_true": [1, 0, 0], "target_treeids": [0, 0],
    "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [10.0, 20.0],
}  # fmt: skip


def test_a_tree_sends_missing_values_where_it_says() -> None:
    x = np.array([[9, 0.5], [9, 0.6], [9, np.nan]], np.float32)
    made = run("TreeEnsembleRegressor", "ai.onnx.ml", [x], ["y: float[3,1]"], **TREE)
    np.testing.assert_array_equal(made[0], [[10], [20], [10]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_featureids": [7, 0, 0]}, "asks for features 7 to 7; there are 2"),
        ({"nodes_truenodeids": [0, 0, 0]}, "follow each other in a circle"),
    ],
)
def test_damaged_trees_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(timberframe_onnx.InvalidModelError, match=message):
        run("TreeEnsembleRegressor", "ai.onnx.ml", [np.zeros((1, 2), np.float32)], ["y: float[1,1]"], **TREE | change)


def by_last_size() -> onnx.ModelProto:
    """Returns a model that drops the last axis where its size is 1, and multiplies the
    result, whose rank that decides.
    """
    last = numpy_helper.from_array(np.array([-1]), "last")
    one = numpy_helper.from_array(np.array([1]), "one")
    branches = [
        helper.make_graph([helper.make_node(op, i, ["r"])], op, [], [helper.make_empty_tensor_value_info("r")])
        for op, i in (("Squeeze", ["x", "last"]), ("Identity", ["x"]))
    ]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["size"]),
        helper.make_node("Equal", ["size", "one"], ["single"]),
        helper.make_node("If", ["single"], ["z"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Flatten", ["z"], ["y"], axis=1),
    ]
    outputs = ["y: float[m,k]"]
    return model(nodes, ["x: float[n,2,l]"], outputs, initializer=[last, one])


def test_a_model_whose_ranks_depend_on_shapes_runs_for_each() -> None:
    loaded = timberframe_onnx.load(by_last_size())
    for shape, wanted in (((3, 2, 1), (3, 2)), ((3, 2, 4), (3, 8)), ((1, 2, 1), (1, 2))):
        assert loaded.run({"x": np.ones(shape, np.float32)})["y"].shape == wanted


def test_a_branch_that_does_not_suit_the_shapes_fails_when_it_is_taken() -> None:
    wide = numpy_helper.from_array(np.ones((5, 2), np.float32), "w")
    branches = [
        helper.make_graph([node], node.op_type, [], [helper.make_empty_tensor_value_info("r")])
        for node in (helper.make_node("MatMul", ["x", "w"], ["r"]), helper.make_node("Neg", ["x"], ["r"]))
    ]
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    made = model(nodes, ["c: bool[]", "x: float[2,3]"], ["y: float[a,b]"], initializer=[wide])
    loaded = timberframe_onnx.load(made)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(loaded.run({"c": np.array(False), "x": x})["y"], -x)
    with pytest.raises(InvalidArgumentError, match="inner sizes"):
        loaded.run({"c": np.array(True), "x": x})


@pytest.mark.parametrize(
    ("value", "code"), [(448.0, 0x7E), (1e9, 0x7E), (-0.0, 0x80), (0.017, 0x09), (float("nan"), 0x7F)]
)
def test_numbers_become_float8_by_rounding_to_even(value: float, code: int) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)]
    made = timberframe_onnx.load(model(nodes, ["x: float[1]"], ["y: float8e4m3fn[1]"]))
    assert made.run({"x": np.array([value], np.float32)})["y"].view(np.uint8)[0] == code

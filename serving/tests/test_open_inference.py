"""The Open Inference Protocol over HTTP and gRPC."""

from __future__ import annotations

import json
import struct
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import ml_dtypes
import numpy as np
import pytest

import timberframe as tf
from timberframe_serving.messages import inference

INFER = "/v2/models/double/infer"
SERVICE = "/inference.GRPCInferenceService/"


def tensor(**changes: Any) -> dict[str, Any]:
    """Returns a request for [[1, 2]]."""
    return {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2], **changes}]}


def binary(server: Any, path: str, asked: dict[str, Any], raw: bytes, length: int | None = None) -> Any:
    """Returns the JSON of an answer and the bytes after it."""
    header = json.dumps(asked).encode()
    size = str(len(header) if length is None else length)
    made = urllib.request.Request(server.url + path, header + raw, {"Inference-Header-Content-Length": size})
    with urllib.request.urlopen(made) as answer:
        body, own = answer.read(), answer.headers.get("Inference-Header-Content-Length")
    at = len(body) if own is None else int(own)
    return json.loads(body[:at]), body[at:]


def test_the_server_and_its_models_describe_themselves(doubling: Any) -> None:
    assert doubling.http("/v2/health/live")[:2] == (200, {"live": True})
    assert doubling.http("/v2/health/ready")[:2] == (200, {"ready": True})
    assert doubling.http("/v2")[1]["extensions"] == ["binary_tensor_data", "model_repository"]
    assert doubling.http("/v2/models/double/ready")[0] == 200
    assert doubling.http("/v2/models/none/ready")[0] == 503
    assert doubling.http("/v2/models/double")[1] == {
        "name": "double",
        "versions": ["1"],
        "platform": "tensorflow_savedmodel",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
    }


def test_a_scalar_is_described_as_one(serve: Any, helpers: Any, tmp_path: Path) -> None:
    def scaled() -> Any:
        x, factor = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, [], name="factor")
        return {"serving_default": ({"x": x, "factor": factor}, {"y": x * factor}, "tensorflow/serving/predict")}

    helpers.save_with(tmp_path / "scaled" / "1", scaled)
    server = serve({"scaled": tmp_path / "scaled"})
    shapes = {i["name"]: i["shape"] for i in server.http("/v2/models/scaled")[1]["inputs"]}
    assert shapes == {"factor": [], "x": [-1]}


@pytest.mark.parametrize("data", [[1, 2], [[1, 2]]])
def test_tensors_in_json(doubling: Any, data: Any) -> None:
    status, body, _ = doubling.http(INFER, {"id": "7", **tensor(data=data)})
    assert status == 200
    assert body == {
        "model_name": "double",
        "model_version": "1",
        "id": "7",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [2.0, 4.0]}],
    }


@pytest.mark.parametrize("whole", [True, False])
def test_tensors_as_bytes(doubling: Any, whole: bool) -> None:
    raw = np.float32([[1, 2]]).tobytes()
    asked = tensor(parameters={"binary_data_size": len(raw)})
    del asked["inputs"][0]["data"]
    if whole:
        asked["parameters"] = {"binary_data_output": True}
    else:
        asked["outputs"] = [{"name": "y", "parameters": {"binary_data": True}}]
    body, after = binary(doubling, "/v2/models/double/versions/1/infer", asked, raw)
    assert body["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert np.frombuffer(after, np.float32).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (tensor(datatype="FLOAT"), "datatype is 'FLOAT'; one of"),
        (tensor(shape=[1, -2]), "sizes of at least 0"),
        (tensor(shape=[2, 2]), "data has 2 elements; shape [2, 2] has others"),
        (tensor(shape=[1 << 40, 2]), "at most 1073741824 bytes"),
        (tensor(data="12"), "data is a str; a list is required"),
        (tensor(parameters={"binary_data_size": 9}), "binary_data_size is 9; 0 bytes are left"),
        (tensor(name="z"), "inputs are 'z'"),
        ({"inputs": []}, "'inputs' is empty"),
        ({**tensor(), "outputs": [{"name": "z"}]}, "outputs ['z'] are asked for"),
        ({**tensor(), "parameters": {"signature_name": "none"}}, "has no signature 'none'"),
    ],
)
def test_a_wrong_request_learns_what_is_wrong(doubling: Any, asked: Any, words: str) -> None:
    status, body, _ = doubling.http(INFER, asked)
    assert status == 400
    assert words in body["error"]


def test_lengths_that_do_not_agree_are_refused(doubling: Any) -> None:
    for length in (-1, 10**9):
        status, body, _ = doubling.http(INFER, tensor(), {"Inference-Header-Content-Length": str(length)})
        assert status == 400
        assert "Inference-Header-Content-Length is" in body["error"]


def _many() -> Any:
    text = tf.placeholder(tf.string, [None], name="text")
    half = tf.placeholder(tf.float16, [None], name="half")
    brain = tf.placeholder(tf.bfloat16, [None], name="brain")
    outputs = {"text": tf.string_join([text, text]), "half": half + half, "brain": brain + brain}
    return {"serving_default": ({"text": text, "half": half, "brain": brain}, outputs, "tensorflow/serving/predict")}


def test_strings_and_short_floats_as_bytes(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save_with(tmp_path / "many" / "1", _many)
    server = serve({"many": tmp_path / "many"})
    parts = {
        "text": ("BYTES", struct.pack("<I", 2) + b"\xff\x00"),
        "half": ("FP16", np.float16([1.5]).tobytes()),
        "brain": ("BF16", np.array([1.5], ml_dtypes.bfloat16).tobytes()),
    }
    inputs = [
        {"name": n, "shape": [1], "datatype": d, "parameters": {"binary_data_size": len(b)}}
        for n, (d, b) in parts.items()
    ]
    asked = {"inputs": inputs, "parameters": {"binary_data_output": True}}
    body, after = binary(server, "/v2/models/many/infer", asked, b"".join(b for _, b in parts.values()))
    assert [o["name"] for o in body["outputs"]] == ["brain", "half", "text"]
    assert (
        after
        == np.array([3], ml_dtypes.bfloat16).tobytes()
        + np.float16([3]).tobytes()
        + struct.pack("<I", 4)
        + b"\xff\x00\xff\x00"
    )


def request(**changes: Any) -> Any:
    """Returns a ModelInferRequest for [[1, 2]]."""
    made = inference("ModelInferRequest")(model_name="double", id="7")
    made.inputs.add(**{"name": "x", "datatype": "FP32", "shape": [1, 2], **changes})
    return made


def test_grpc_with_raw_and_with_listed_contents(doubling: Any) -> None:
    asked = request()
    asked.raw_input_contents.append(np.float32([[1, 2]]).tobytes())
    answer = doubling.rpc(SERVICE + "ModelInfer", asked, inference("ModelInferResponse"))
    assert (answer.id, answer.model_version) == ("7", "1")
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [2.0, 4.0]
    asked = request()
    asked.inputs[0].contents.fp32_contents.extend([1, 2])
    answer = doubling.rpc(SERVICE + "ModelInfer", asked, inference("ModelInferResponse"))
    assert list(answer.outputs[0].contents.fp32_contents) == [2.0, 4.0]
    assert not answer.raw_output_contents


def test_integers_beyond_int64_keep_all_their_bits(serve: Any, helpers: Any, tmp_path: Path) -> None:
    def same() -> Any:
        x = tf.placeholder(tf.uint64, [None], name="x")
        return {"serving_default": ({"x": x}, {"y": tf.identity(x)}, "tensorflow/serving/predict")}

    helpers.save_with(tmp_path / "same" / "1", same)
    server = serve({"same": tmp_path / "same"})
    values = [1, 2**64 - 1, 2**63 + 1]
    listed = {"inputs": [{"name": "x", "shape": [3], "datatype": "UINT64", "data": values}]}
    assert server.http("/v2/models/same/infer", listed)[1]["outputs"][0]["data"] == values
    assert server.http("/v1/models/same:predict", {"instances": values})[1] == {"predictions": values}
    for wrong in ([1.5, 2**63], [-1, 2**63]):
        assert server.http("/v1/models/same:predict", {"instances": wrong})[0] == 400
    asked = inference("ModelInferRequest")(model_name="same")
    asked.inputs.add(name="x", datatype="UINT64", shape=[3]).contents.uint64_contents.extend(values)
    answer = server.rpc(SERVICE + "ModelInfer", asked, inference("ModelInferResponse"))
    assert list(answer.outputs[0].contents.uint64_contents) == values


def test_grpc_says_what_is_wrong(doubling: Any) -> None:
    asked = request()
    asked.raw_input_contents.append(b"123")
    with pytest.raises(grpc.RpcError) as caught:
        doubling.rpc(SERVICE + "ModelInfer", asked, inference("ModelInferResponse"))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "has 3 bytes; float32 of shape [1, 2] requires 8" in caught.value.details()


def test_grpc_describes_the_server_and_its_models(doubling: Any) -> None:
    def ask(method: str, kind: str, **fields: Any) -> Any:
        return doubling.rpc(SERVICE + method, inference(f"{kind}Request")(**fields), inference(f"{kind}Response"))

    assert ask("ServerLive", "ServerLive").live
    assert ask("ServerReady", "ServerReady").ready
    assert ask("ModelReady", "ModelReady", name="double", version="1").ready
    assert not ask("ModelReady", "ModelReady", name="double", version="2").ready
    assert ask("ServerMetadata", "ServerMetadata").name == "timberframe-serving"
    found = ask("ModelMetadata", "ModelMetadata", name="double")
    assert (found.inputs[0].datatype, list(found.inputs[0].shape)) == ("FP32", [-1, 2])
    (row,) = ask("RepositoryIndex", "RepositoryIndex").models
    assert (row.name, row.version, row.state) == ("double", "1", "READY")


def test_a_model_is_unloaded_and_loaded_again(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"})
    assert server.http("/v2/repository/models/double/unload", b"", method="POST")[0] == 200
    status, body, _ = server.http(INFER, tensor())
    assert status == 503
    assert "was unloaded" in body["error"]
    assert server.http("/v2/repository/models/double/load", b"", method="POST")[0] == 200
    assert server.http(INFER, tensor())[0] == 200
    assert server.http("/v2/repository/index", b"", method="POST")[1] == [
        {"name": "double", "version": "1", "state": "READY", "reason": ""}
    ]
    override = {"parameters": {"config": "{}"}}
    assert server.http("/v2/repository/models/double/load", override)[0] == 501
    assert server.http("/v2/repository/models/../load", b"", method="POST")[0] == 404

"""Requests of somebody who means ill: each gets a clear refusal, and the server goes on."""

from __future__ import annotations

import gzip
import json
import random
import socket
import time
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import numpy as np
import pytest

from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.json_tensors import decode
from timberframe_serving.messages import inference, serving
from timberframe_serving.service import Keys, Limits

LIMITS = Limits(body_bytes=200_000, body_seconds=1.0, answer_seconds=5.0)
PREDICT = "/v1/models/double:predict"
GOOD = json.dumps({"instances": [[1, 2]]}).encode()
INFER = json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()


@pytest.fixture(scope="module")
def strict(helpers: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from timberframe_serving.repository import ModelSettings

    base = tmp_path_factory.mktemp("strict")
    helpers.save(base / "double" / "1", 2.0)
    server = helpers.Running({"double": ModelSettings("double", base / "double")}, limits=LIMITS)
    yield server
    assert server.http(PREDICT, GOOD)[:2] == (200, {"predictions": [[2.0, 4.0]]})
    server.stop()


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Returns bytes of which some are cut off, changed, doubled or put in."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(4):
            case 0:
                del made[at:]
            case 1 if at < len(made):
                made[at] = chance.randrange(256)
            case 2:
                made[at:at] = made[:at]
            case _:
                made[at:at] = chance.choice(
                    [b"[[[", b"1e999", b"-9" * 30, b"\x00", b"null", b'{"b64":', b"\xed\xa0\x80"]
                )
    return bytes(made)


def paths() -> list[str]:
    """Returns paths with tricks in names, versions and labels."""
    tricks = [
        "..",
        "%2e%2e",
        "%2F",
        "..%2f..%2fetc",
        "%00",
        "a" * 5000,
        "double%0d%0aX-Y:1",
        quote("\u00e9"),
        "{x}",
        "*",
        "~root",
    ]
    found = [f"/v1/models/{t}:predict" for t in tricks] + [f"/v2/models/{t}/infer" for t in tricks]
    versions = ["-1", "1e3", "0x1", "99999999999999999999", "1/../../2", "%31%2e", "+1", "01", quote("\u0661")]
    found += [f"/v1/models/double/versions/{v}:predict" for v in versions]
    found += [f"/v2/models/double/versions/{v}/infer" for v in versions]
    found += [f"/v1/models/double/labels/{t}:predict" for t in tricks]
    return found


def test_damaged_bodies_and_tricks_in_paths_are_refused(strict: Any) -> None:
    chance = random.Random(0)
    asked = [(PREDICT, damaged(GOOD, chance)) for _ in range(120)]
    asked += [("/v2/models/double/infer", damaged(INFER, chance)) for _ in range(120)]
    asked += [(p, GOOD if p.startswith("/v1") else INFER) for p in paths()]
    refused = 0
    for path, body in asked:
        status, answer, _ = strict.http(path, body)
        if status != 200:  # a changed number may be a good one
            assert 400 <= status < 500, (path, body, status)
            assert answer["error"], (path, body)
            refused += 1
    assert refused > len(asked) * 3 / 4


HALF = b'"\\ud800"'  # half of a surrogate pair, which is no text
HUGE = b"9" * 400
DEMAND = {
    "of true among numbers": ("predict", b'{"instances":[[1,true]]}'),
    "of half a character in a name": (
        "infer",
        b'{"inputs":[{"name":%s,"shape":[1],"datatype":"FP32","data":[NaN]}]}' % HALF,
    ),
    "of half a character in an id": (
        "infer",
        b'{"id":%s,"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,NaN]}]}' % HALF,
    ),
    "of half a character in a feature": ("classify", b'{"examples":[{"a":NaN,%s:1}]}' % HALF),
    "of half a character as bytes": ("predict", b'{"instances":["\xed\xa0\x80",NaN]}'),
    "of a number that no float holds": ("classify", b'{"examples":[{"a":[NaN,%s]}]}' % HUGE),
    "of a number that no integer holds": ("classify", b'{"examples":[{"b":NaN,"a":[%s]}]}' % HUGE),
    "of no elements, with a size that no array has": (
        "infer",
        b'{"inputs":[{"name":"x","shape":[0,4611686018427387904],"datatype":"FP32","data":[]}]}',
    ),
}


@pytest.mark.parametrize("asked", DEMAND)
def test_what_a_request_demands_that_nothing_can_be_is_refused(strict: Any, asked: str) -> None:
    verb, body = DEMAND[asked]
    path = "/v2/models/double/infer" if verb == "infer" else f"/v1/models/double:{verb}"
    status, answer, _ = strict.http(path, body)
    assert status == 400, answer
    assert answer["error"]


def test_one_long_string_among_many_numbers_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgumentError, match="holds strings; float32 is required"):
            decode([["a" * 20_000], *[["b"]] * 1000], float32, "x")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_length_in_digits_that_are_no_decimals_is_refused(strict: Any) -> None:
    status, answer, _ = strict.http("/v2/models/double/infer", INFER, {"Inference-Header-Content-Length": "\xb2"})
    assert (status, "Inference-Header-Content-Length is" in answer["error"]) == (400, True)


def test_deep_and_wide_bodies_are_refused(strict: Any) -> None:
    for body in (b"[" * 90_000, b'{"a":' * 30_000, b'{"instances":' + b"[" * 900 + b"]" * 900 + b"}"):
        assert strict.http(PREDICT, body)[0] == 400
    assert strict.http(PREDICT, b"[" * 300_000)[0] == 413
    bomb = gzip.compress(b"0" * 10_000_000)
    assert strict.http(PREDICT, bomb, {"Content-Encoding": "gzip"})[0] == 413
    assert strict.http(PREDICT, b"no gzip", {"Content-Encoding": "gzip"})[0] == 400
    assert strict.http(PREDICT, GOOD, {"Content-Encoding": "br"})[0] == 400


def test_damaged_messages_are_refused(strict: Any) -> None:
    asked = serving("PredictRequest")()
    asked.model_spec.name = "double"
    asked.inputs["x"].CopyFrom(encode_array(np.float32([[1, 2]])))
    infer = inference("ModelInferRequest")(model_name="double")
    infer.inputs.add(name="x", datatype="FP32", shape=[1, 2])
    infer.raw_input_contents.append(np.float32([[1, 2]]).tobytes())
    huge = inference("ModelInferRequest")(model_name="double", raw_input_contents=[b""])
    huge.inputs.add(name="x", datatype="FP32", shape=[0, 1 << 62])
    with pytest.raises(grpc.RpcError, match="sizes that an array can have are required"):
        strict.rpc("/inference.GRPCInferenceService/ModelInfer", huge, inference("ModelInferResponse"))
    chance, refused = random.Random(0), 0
    allowed = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED}
    with grpc.insecure_channel(f"127.0.0.1:{strict.server.grpc_port}") as channel:
        for method, message in (
            ("/tensorflow.serving.PredictionService/Predict", asked),
            ("/inference.GRPCInferenceService/ModelInfer", infer),
        ):
            call = channel.unary_unary(method)
            for _ in range(100):
                error = call.future(damaged(message.SerializeToString(), chance), timeout=10).exception()
                assert error is None or (error.code() in allowed and error.details()), error
                refused += error is not None
        assert refused > 100
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(bytes(300_000), timeout=10)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def raw(server: Any, text: bytes, seconds: float = 5) -> bytes:
    """Returns what the server answers to bytes."""
    with socket.create_connection(("127.0.0.1", server.server.http_port), timeout=seconds) as connection:
        connection.sendall(text)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
            if b"\r\n\r\n" in part:
                break
        return b"".join(parts)


def test_a_connection_without_a_whole_head_is_closed(strict: Any) -> None:
    begin = time.monotonic()
    good = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(GOOD)}\r\n\r\n".encode() + GOOD
    with ExitStack() as stack:
        connections = {}
        for sent in (b"", b"POST /v1/models/double:predict HTTP/1.1\r\nHost:", good + b"POST / HT"):
            address = "127.0.0.1", strict.server.http_port
            connections[sent] = stack.enter_context(socket.create_connection(address, timeout=10))
            connections[sent].sendall(sent)
        for sent, connection in connections.items():
            found = b""
            while part := connection.recv(65536):
                found += part
            assert found.startswith(b"HTTP/1.1 200") == sent.startswith(
                b"POST /v1/models/double:predict HTTP/1.1\r\nHost: a"
            )
    assert time.monotonic() - begin < 10


def test_a_slow_body_and_what_is_no_http(strict: Any) -> None:
    begin = time.monotonic()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{{".encode()
    assert raw(strict, head).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin < 4
    assert b" 400 " in raw(strict, b"\x16\x03\x01\x00\xff\r\n\r\n").split(b"\r\n")[0]
    assert b" 413 " in raw(strict, head.replace(b"100", b"9999999999"))
    assert b" 400 " in raw(strict, head.replace(b"100", b"-5"))


def test_nothing_is_answered_without_a_key(helpers: Any, tmp_path: Path) -> None:
    from timberframe_serving.repository import ModelSettings

    helpers.save(tmp_path / "double" / "1", 2.0)
    (tmp_path / "keys").write_text("secret\n")
    keys = Keys.read(tmp_path / "keys")
    server = helpers.Running({"double": ModelSettings("double", tmp_path / "double")}, keys=keys)
    given = [{}, {"x-api-key": ""}, {"x-api-key": "Secret"}, {"authorization": "secret"}, {"authorization": "Bearer "}]
    asked = [
        PREDICT,
        "/v1/models/double",
        "/v1/models/double/metadata",
        "/v2",
        "/v2/models/double",
        "/metrics",
        "/v2/models",
    ]
    asked += ["/v2/models/double/infer", "/v2/repository/index", "/v2/repository/models/double/unload", "/nothing"]
    for path in asked:
        for headers in given:
            status, body, _ = server.http(path, GOOD, headers)
            assert status == 401, (path, headers)
            assert "is required" in body["error"]
    services = {
        "tensorflow.serving.PredictionService": (
            "Predict",
            "Classify",
            "Regress",
            "MultiInference",
            "GetModelMetadata",
        ),
        "tensorflow.serving.ModelService": ("GetModelStatus", "HandleReloadConfigRequest"),
        "inference.GRPCInferenceService": ("ModelInfer", "ModelMetadata", "RepositoryIndex", "RepositoryModelUnload"),
    }
    with grpc.insecure_channel(f"127.0.0.1:{server.server.grpc_port}") as channel:
        for service, methods in services.items():
            for method in methods:
                with pytest.raises(grpc.RpcError) as caught:
                    channel.unary_unary(f"/{service}/{method}")(b"", timeout=10)
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert server.http(PREDICT, GOOD, {"authorization": "Bearer secret"})[0] == 200
    server.stop()

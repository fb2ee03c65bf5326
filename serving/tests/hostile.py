"""Asks a server what it must refuse, drawn at random: ``python hostile.py [--count N] [--seed S]``.

Each request must get a clear refusal that is the client's fault (a status from 400 to 499 with words, or a code of gRPC
of that kind) within seconds, and the server must go on. Part of `make full`.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np

import timberframe as tf
from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.messages import inference, serving

KEY = "only-this-one"
MOST_BYTES, BODY_SECONDS, ANSWER_SECONDS, MOST_GROWTH_MB = 200_000, 1.0, 10.0, 100
CODES = {
    grpc.StatusCode[n]
    for n in ("INVALID_ARGUMENT", "NOT_FOUND", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED")
}
PREDICT, INFER = "/v1/models/double:predict", "/v2/models/double/infer"
TRICKS = [
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "double%0d%0aX-Y:1",
    "{x}",
    "*",
    "~root",
    "double/",
    "\\..",
    "d" * 5000,
]
VERSIONS = ["-1", "1e3", "0x1", "9" * 20, "1/../../2", "%31%2e", "+1", "2", "%d9%a1", "1.0", "latest", "", "7"]

Sent = tuple[str, bytes, dict[str, str]]
"""The path, body and further headers of a request."""


def save(base: Path) -> None:
    """Saves a model that doubles pairs of numbers, and one that gives texts back."""
    for name, dtype, shape in (("double", tf.float32, [None, 2]), ("texts", tf.string, [None])):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(dtype, shape, name="x")
            y = x * 2.0 if name == "double" else tf.identity(x)
            tf.saved_model.simple_save(session, str(base / name / "1"), {"x": x}, {"y": y})


def rows(value: Any) -> bytes:
    """Returns a body with these instances."""
    return json.dumps({"instances": value}).encode()


def wrong_shape(chance: random.Random) -> Sent:
    width = chance.choice([0, 1, 3, 50, 1000])
    value: Any = [[0.5] * width] * chance.randint(1, 5)
    for _ in range(chance.randint(0, 4) if width == 2 else chance.randint(0, 2)):
        value = [value]
    if chance.random() < 0.3:
        value = [[1, 2], [1] * chance.choice([0, 1, 3])]
    if chance.random() < 0.5:
        return PREDICT, rows(value), {}
    shape = [chance.choice([-1, 0, 2, 2**31, 2**62, 2**64]), chance.choice([1, 3, -2, 2**40])]
    return (
        INFER,
        json.dumps({"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": [1, 2]}]}).encode(),
        {},
    )


def wrong_dtype(chance: random.Random) -> Sent:
    value = chance.choice(["a", True, None, {}, {"x": "1"}, {"b64": "AAAA"}, 1e39, "1" * 1000, [[1]]])
    if chance.random() < 0.5:
        return PREDICT, rows([[1, value]]), {}
    kind = chance.choice(["FP8", "BYTES", "INT64", "", "fp32", None, 3, "FP32" * 100])
    data = [1, 2] if kind != "BYTES" else ["a", "b"]
    return INFER, json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": kind, "data": data}]}).encode(), {}


def huge(chance: random.Random) -> Sent:
    size = chance.choice([MOST_BYTES + 1, 2 * MOST_BYTES, 10 * MOST_BYTES])
    return chance.choice([PREDICT, INFER]), b"[" + b"1," * (size // 2), {}


def truncated(chance: random.Random) -> Sent:
    good = rows([[1, 2]])
    if chance.random() < 0.5:
        return PREDICT, good[: chance.randrange(len(good))], {}
    body = json.dumps(
        {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}]}
    ).encode()
    raw = bytes(chance.choice([0, 1, 7, 9]))
    return INFER, body + raw, {"Inference-Header-Content-Length": str(len(body) + chance.choice([0, 0, 1, -1]))}


def deep(chance: random.Random) -> Sent:
    depth = chance.choice([40, 900, 5_000, 60_000])
    opening = chance.choice([b"[", b'{"a":'])
    body = opening * min(depth, 30_000)
    if chance.random() < 0.5:
        body = b'{"instances":' + b"[" * depth + b"1" + b"]" * depth + b"}"
    return PREDICT, body, {}


def bad_base64(chance: random.Random) -> Sent:
    good = base64.b64encode(chance.randbytes(9)).decode()
    at = chance.randrange(len(good))
    wrong = chance.choice(
        [good[:at] + "*" + good[at:], good[:-1] if good[-1] != "=" else good[:-2], "=", "\u00e9", 7, None]
    )
    return "/v1/models/texts:predict", rows([{"b64": wrong}]), {}


def wrong_path(chance: random.Random) -> Sent:
    trick, version = chance.choice(TRICKS), chance.choice(VERSIONS)
    path = chance.choice([
        f"/v1/models/{trick}:predict", f"/v2/models/{trick}/infer", f"/v1/models/double/labels/{trick}:predict",
        f"/v1/models/double/versions/{version}:predict", f"/v2/models/double/versions/{version}/infer",
        f"/v2/repository/models/{trick}/load", f"/{trick}", f"/v1/models/double:{trick}", f"/v1/{trick}/double:predict",
    ])  # fmt: skip
    return path, rows([[1, 2]]), {}


def wrong_key(chance: random.Random) -> Sent:
    key = chance.choice(["", KEY.upper(), KEY[:-1], KEY + "x", "*", "' or 1", "\u00e9"])
    header = chance.choice([{"X-Api-Key": key}, {"Authorization": f"Bearer {key}"}, {"Authorization": f"Basic {KEY}"}])
    path = chance.choice([PREDICT, INFER, "/v2/repository/models/double/unload", "/v1/models/double:classify"])
    return path, rows([[1, 2]]), header | {"without a key": ""}


KINDS: list[Callable[[random.Random], Sent]] = [
    wrong_shape, wrong_dtype, huge, truncated, deep, bad_base64, wrong_path, wrong_key,
]  # fmt: skip


def answer(port: int, data: bytes, parts: int = 1) -> bytes:
    """Returns what is answered to bytes, which come at once or, slowly, in parts that have no end."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as connection:
        try:
            for i in range(parts):
                connection.sendall(data[i * len(data) // parts : (i + 1) * len(data) // parts])
                time.sleep(0.05 if parts > 1 else 0)
        except OSError:
            pass  # refused while it was still being sent
        found = b""
        while True:
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                return found
            found += part
            head, _, body = found.partition(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            if not part or (length and len(body) >= int(length)):
                return found


def by_http(port: int, sent: Sent, slow: bool) -> str:
    """Asks over HTTP; returns what is wrong with the answer, or "". slow: the body is cut and goes on for ever."""
    path, body, headers = sent
    if "without a key" not in headers:
        headers = {"X-Api-Key": KEY, **headers}
    lines = [f"{k}: {v}" for k, v in headers.items() if k != "without a key"]
    length = len(body) + (1000 if slow else 0)
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {length}", *lines, "", ""])
    found = answer(port, head.encode() + body, 5 if slow else 1)
    status = found.split(b" ")[1:2]
    text, _, content = found.partition(b"\r\n\r\n")
    if not status or not status[0].isdigit() or not 400 <= int(status[0]) < 500:
        return f"answered {found[:200]!r}"
    plain = b"text/plain" in text.lower()  # the host's own words for what is no HTTP
    return "" if content and (plain or json.loads(content).get("error")) else f"has no words: {found[:200]!r}"


def by_grpc(channel: grpc.Channel, chance: random.Random) -> str:
    """Asks over gRPC with a damaged message or a wrong key; returns what is wrong with the answer, or ""."""
    asked, infer = serving("PredictRequest")(), inference("ModelInferRequest")(model_name="double")
    asked.model_spec.name = chance.choice(["double", "", "..", "other", "double\0"])
    shape = chance.choice([(1, 3), (2,), (1, 1, 2)])
    asked.inputs[chance.choice(["x", "y", ""])].CopyFrom(encode_array(np.zeros(shape, np.float32)))
    infer.inputs.add(
        name="x", datatype=chance.choice(["FP32", "FP8", "INT64"]), shape=chance.choice([[0, 1 << 62], [-1], [1, 3]])
    )
    infer.raw_input_contents.append(chance.randbytes(chance.choice([0, 7, 8])))
    method, message = chance.choice([
        ("/tensorflow.serving.PredictionService/Predict", asked), ("/inference.GRPCInferenceService/ModelInfer", infer)
    ])  # fmt: skip
    data = message.SerializeToString()
    case = chance.randrange(4)
    data = [data, data[: chance.randrange(len(data))] + b"\xff", chance.randbytes(60) + b"\xff", bytes(MOST_BYTES + 1)][
        case
    ]
    key = chance.choice([KEY, KEY, KEY, "guess"])
    try:
        channel.unary_unary(method)(data, timeout=ANSWER_SECONDS, metadata=[("x-api-key", key)])
    except grpc.RpcError as error:
        wrong = error.code() not in CODES or not error.details()
        return f"{method}: {error.code()} {error.details()}" if wrong else ""
    return f"{method}: was answered"


def memory(number: int) -> int:
    """Returns the megabytes that a process has, as Linux knows them."""
    status = Path(f"/proc/{number}/status")
    text = status.read_text() if status.is_file() else "VmRSS: 0 kB"
    return int(text.partition("VmRSS:")[2].split()[0]) // 1000


def is_served(port: int) -> bool:
    """Returns whether a good request with its key is answered."""
    given = urllib.request.Request(f"http://127.0.0.1:{port}{PREDICT}", rows([[1, 2]]), {"X-Api-Key": KEY})
    with urllib.request.urlopen(given, timeout=60) as found:
        return bool(json.load(found) == {"predictions": [[2.0, 4.0]]})


def attack(port: int, rpc: int, count: int, seed: str) -> list[str]:
    """Sends the requests; returns what was answered wrongly, with the number of the request."""
    wrong: list[str] = []
    kinds: Counter[str] = Counter()
    with grpc.insecure_channel(f"127.0.0.1:{rpc}") as channel:
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            draw = chance.randrange(50)
            begin = time.monotonic()
            if draw < 8:
                kind, found = "gRPC", by_grpc(channel, chance)
            else:
                make = KINDS[draw % len(KINDS)]
                slow = draw == 8
                kind, found = ("slow" if slow else make.__name__), by_http(port, make(chance), slow)
            kinds[kind] += 1
            if found or time.monotonic() - begin > ANSWER_SECONDS:
                wrong.append(f"request {number} ({kind}): {found or 'took too long'}")
    print(f"{count} requests, seed {seed}: {dict(kinds)}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="0")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save(folder / "models")
        (folder / "keys").write_text(KEY)
        ports = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                ports.append(listener.getsockname()[1])
        http, rpc = ports
        flags = [
            f"--model_repository={folder / 'models'}", f"--api_keys_file={folder / 'keys'}", "--host=127.0.0.1",
            f"--rest_api_port={http}", f"--port={rpc}", f"--max_request_bytes={MOST_BYTES}",
            f"--rest_api_timeout_in_ms={BODY_SECONDS * 1000:.0f}", "--log_level=error",
        ]  # fmt: skip
        with subprocess.Popen([sys.executable, "-m", "timberframe_serving", *flags]) as server:
            try:
                wait_until_ready(http)
                before = memory(server.pid)
                wrong = attack(http, rpc, given.count, given.seed)
                if server.poll() is not None:
                    wrong.append(f"the server ended with {server.returncode}")
                elif not is_served(http):
                    wrong.append("a good request is no longer answered as before")
                elif (grown := memory(server.pid) - before) > MOST_GROWTH_MB:
                    wrong.append(f"the server has {grown} MB more than before; at most {MOST_GROWTH_MB} are expected")
            finally:
                server.terminate()
    if wrong:
        raise SystemExit("\n".join([*wrong[:20], f"{len(wrong)} of {given.count} were not refused as they should be"]))


def wait_until_ready(port: int) -> None:
    """Returns when the server answers a good request; raises OSError where it does not within two minutes."""
    end = time.monotonic() + 120
    while True:
        try:
            if is_served(port):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()

"""Servers that get more than they can answer: what is refused, how, and what it does to the rest."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.messages import serving
from timberframe_serving.repository import ModelSettings
from timberframe_serving.service import Keys

PREDICT = "/v1/models/double:predict"
GOOD = json.dumps({"instances": [[1, 2]]}).encode()
PREDICTION = "/tensorflow.serving.PredictionService/Predict"


class Full:
    """A server whose only model is busy, with a full queue, until it is let through."""

    def __init__(self, helpers: Any, folder: Path) -> None:
        helpers.save(folder / "double" / "1", 2.0)
        (folder / "keys").write_text("secret\n")
        settings = BatchingSettings(max_batch_size=1, max_enqueued_batches=1)
        models = {"double": ModelSettings("double", folder / "double")}
        self.server = helpers.Running(models, batching=settings, keys=Keys.read(folder / "keys"))
        self.gate, self.calls = threading.Event(), 0
        servable = self.server.service.manager.servable("double")
        signature = servable.signature()
        call = signature.call

        def waits(*arrays: Any) -> Any:
            self.calls += 1
            assert self.gate.wait(30)
            return call(*arrays)

        object.__setattr__(signature, "call", waits)
        self.answers: list[Any] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(2)]
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + 20
        while not servable.waiting and time.monotonic() < end:
            time.sleep(0.01)
        assert servable.waiting == 1

    def _ask(self) -> None:
        self.answers.append(self.server.http(PREDICT, GOOD, {"x-api-key": "secret"})[:2])

    def empty(self) -> None:
        """Lets the model go on, and returns when nothing is left in the server."""
        self.gate.set()
        (servable,) = self.server.service.servables()
        end = time.monotonic() + 20
        while servable.coming and time.monotonic() < end:
            time.sleep(0.01)
        assert servable.coming == 0

    def end(self) -> None:
        """Lets the model go on, and returns when all that was accepted is answered."""
        self.gate.set()
        for thread in self._threads:
            thread.join(30)
        self.server.stop()


@pytest.fixture
def full(helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    monkeypatch.setattr("timberframe_serving.batching.QUICK", 0.0)
    made = Full(helpers, tmp_path)
    yield made
    made.end()


def head(path: str = PREDICT, length: int = len(GOOD), *further: str) -> bytes:
    """Returns the head of a request with a key."""
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {length}", "X-Api-Key: secret", *further]
    return "\r\n".join([*lines, "", ""]).encode()


def received(connection: socket.socket) -> tuple[bytes, bytes]:
    """Returns the head and the body of the next answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1)
        assert part, data
        data += part
    found = data.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    body = b""
    while len(body) < int(found):
        body += connection.recv(int(found) - len(body))
    return data, body


def test_a_full_queue_refuses_with_429_and_the_connection_goes_on(full: Full, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "timberframe_serving")
    address = "127.0.0.1", full.server.server.http_port
    with socket.create_connection(address, timeout=10) as connection:
        for path in (PREDICT, "/v1/models/double/versions/1:predict", "/v2/models/double/infer"):
            connection.sendall(head(path, len(GOOD), "X-Request-Id: r-7") + GOOD)
            text, body = received(connection)
            assert text.startswith(b"HTTP/1.1 429 ")
            assert b"\r\nx-request-id: r-7\r\n" in text
            assert b"\r\ncontent-type: application/json\r\n" in text
            assert "2 requests are being answered; at most 2 may" in json.loads(body)["error"]
        connection.sendall((head() + GOOD) * 3)
        assert all(received(connection)[0].startswith(b"HTTP/1.1 429 ") for _ in range(3))
        metrics = full.server.http("/metrics", headers={"x-api-key": "secret"})[1].decode()
        assert 'request_count{model_name="double",status="RESOURCE_EXHAUSTED"} 6' in metrics
        assert not [r for r in caplog.records if r.name.startswith("timberframe_serving")], "logs cost time, too"
        full.gate.set()
        full.end()
    assert full.answers == [(200, {"predictions": [[2.0, 4.0]]})] * 2
    assert full.calls == 2


def test_a_full_queue_hides_no_other_refusal(full: Full) -> None:
    address = "127.0.0.1", full.server.server.http_port
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(head().replace(b"secret", b"guess") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 401 ")
        connection.sendall(head("/v1/models/double/versions/9:predict") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 404 ")
        connection.sendall(head(length=10**12) + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 413 ")
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(head().replace(b"HTTP/1.1", b"HTTP/1.0") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 429 ")
        assert connection.recv(1) == b""


def test_a_refused_body_comes_in_parts_or_not_at_all(full: Full) -> None:
    address = "127.0.0.1", full.server.server.http_port
    with socket.create_connection(address, timeout=10) as connection:
        for part in (head(), GOOD[:5], GOOD[5:]):
            connection.sendall(part)
            time.sleep(0.05)
        assert received(connection)[0].startswith(b"HTTP/1.1 429 ")
        connection.sendall(head() + GOOD[:5])  # and the client goes
    assert full.server.http("/healthz")[0] == 200


def test_grpc_refuses_with_its_own_code(full: Full) -> None:
    asked = serving("PredictRequest")()
    asked.model_spec.name = "double"
    asked.inputs["x"].CopyFrom(encode_array(np.float32([[1, 2]])))
    with pytest.raises(grpc.RpcError, match="1 rows wait; at most 1 may") as caught:
        full.server.rpc(PREDICTION, asked, serving("PredictResponse"), [("x-api-key", "secret")])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_answers_come_in_the_order_of_requests_when_a_quick_model_gets_busy(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.empty()
    monkeypatch.setattr("timberframe_serving.batching.QUICK", 1.0)
    many = json.dumps({"instances": [[i, i] for i in range(4)]}).encode()
    with socket.create_connection(("127.0.0.1", full.server.server.http_port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(head(length=len(many)) + many + head() + GOOD + head("/v1/nothing") + GOOD)
            answers = [received(connection) for _ in range(3)]
            assert [a[0][9:12] for a in answers] == [b"200", b"200", b"404"]
            assert [len(json.loads(a[1]).get("predictions", [])) for a in answers] == [4, 1, 0]


def test_of_many_that_come_at_once_no_more_are_let_in_than_there_is_room(full: Full) -> None:
    full.empty()
    full.gate.clear()
    (servable,) = full.server.service.servables()
    connections = [socket.create_connection(("127.0.0.1", full.server.server.http_port), timeout=10) for _ in range(40)]
    most: list[int] = []

    async def at_once() -> None:
        for connection in connections:  # while the loop is busy with this
            connection.sendall(head() + GOOD)
        time.sleep(0.3)

    full.server.call(at_once())
    for connection in connections:
        connection.settimeout(0.5)
    refused = 0
    for connection in connections:
        try:
            refused += received(connection)[0].startswith(b"HTTP/1.1 429 ")
        except TimeoutError:
            most.append(servable.coming)
    full.gate.set()
    for connection in connections:
        connection.close()
    assert refused == 38
    assert most
    assert max(most) <= 2

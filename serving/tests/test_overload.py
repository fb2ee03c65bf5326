"""Servers that get more than they can answer: what is refused, how, and what it does to the rest."""

from __future__ import annotations

import json
import logging
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from sockets import GOOD, PREDICT, SECONDS, connected, head, received

from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.http.direct import Direct
from timberframe_serving.messages import serving
from timberframe_serving.repository import ModelSettings
from timberframe_serving.service import Keys

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


def test_a_full_queue_refuses_with_429_and_the_connection_goes_on(full: Full, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "timberframe_serving")
    with connected(full.server) as connection:
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


def test_the_same_head_again_is_refused_unread_until_there_is_room(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    parsed = Direct.head

    def seen(self: Direct, url: bytes, headers: Any) -> Any:
        read.append(url)
        return parsed(self, url, headers)

    monkeypatch.setattr(Direct, "head", seen)
    with connected(full.server) as connection, connected(full.server) as other:

        def ask(data: bytes = head() + GOOD, by: socket.socket = connection, answers: int = 1) -> list[bytes]:
            by.sendall(data)
            return [received(by)[0][9:12] for _ in range(answers)]

        assert [ask(), ask(by=other), ask()] == [[b"429"]] * 3
        assert len(read) == 1
        assert ask((head() + GOOD) * 2, answers=2) == [b"429"] * 2
        assert ask(head().replace(b"secret", b"guess") + GOOD) == [b"401"]
        assert ask(head(length=2) + b"{}") == [b"429"]
        connection.sendall(head() + GOOD[:5])
        time.sleep(0.05)
        assert ask(GOOD[5:]) == [b"429"]
        assert len(read) == 6  # two in one piece, another key, another length, in parts
        metrics = full.server.http("/metrics", headers={"x-api-key": "secret"})[1].decode()
        assert 'request_count{model_name="double",status="RESOURCE_EXHAUSTED"} 7' in metrics
        full.empty()
        assert ask() == [b"200"]


def test_a_full_queue_hides_no_other_refusal(full: Full) -> None:
    with connected(full.server) as connection:
        connection.sendall(head().replace(b"secret", b"guess") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 401 ")
        connection.sendall(head("/v1/models/double/versions/9:predict") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 404 ")
        connection.sendall(head(length=10**12) + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 413 ")
    with connected(full.server) as connection:
        connection.sendall(head().replace(b"HTTP/1.1", b"HTTP/1.0") + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 429 ")
        assert connection.recv(1) == b""


def test_a_refused_body_comes_in_parts_or_its_client_goes(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timberframe_serving.http.connections._PATIENCE", 600.0)
    with connected(full.server) as connection:
        for part in (head(), GOOD[:5], GOOD[5:]):
            connection.sendall(part)
            time.sleep(0.05)
        assert received(connection)[0].startswith(b"HTTP/1.1 429 ")
        connection.sendall(head() + GOOD[:5])  # and the client goes
    assert full.server.http("/healthz")[0] == 200


def test_a_refused_body_that_does_not_come_ends_the_connection(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timberframe_serving.http.connections._PATIENCE", 0.05)
    with connected(full.server) as connection:
        connection.sendall(head() + GOOD[:5])
        text, _ = received(connection)
        assert text.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nconnection: close\r\n" in text
        assert connection.recv(1) == b""


def test_a_refusal_is_logged_for_debugging(full: Full, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "timberframe_serving")
    with connected(full.server) as connection:
        connection.sendall(head(PREDICT, len(GOOD), "X-Request-Id: r-7") + GOOD)
        received(connection)
    (record,) = [vars(r) for r in caplog.records if r.name == "timberframe_serving.http.application"]
    assert (record["levelname"], record["request_id"], record["status"]) == ("DEBUG", "r-7", 429)


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
    with connected(full.server) as connection:
        for _ in range(3):
            connection.sendall(head(length=len(many)) + many + head() + GOOD + head("/v1/nothing") + GOOD)
            answers = [received(connection) for _ in range(3)]
            assert [a[0][9:12] for a in answers] == [b"200", b"200", b"404"]
            assert [len(json.loads(a[1]).get("predictions", [])) for a in answers] == [4, 1, 0]


def test_of_many_that_come_at_once_no_more_are_let_in_than_there_is_room(full: Full) -> None:
    full.empty()
    full.gate.clear()
    connections = [connected(full.server) for _ in range(40)]

    async def at_once() -> None:
        for connection in connections:  # while the loop is busy with this
            connection.sendall(head() + GOOD)

    full.server.call(at_once())
    answered: list[socket.socket] = []
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while len(answered) < 38:
            ready = selector.select(SECONDS)
            assert ready, len(answered)
            for key, _ in ready:
                selector.unregister(key.fileobj)
                answered.append(key.fileobj)
    assert all(received(connection)[0].startswith(b"HTTP/1.1 429 ") for connection in answered)
    full.gate.set()
    for connection in set(connections) - set(answered):
        assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
    for connection in connections:
        connection.close()

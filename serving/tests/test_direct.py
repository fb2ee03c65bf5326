"""Requests that are answered on the connection itself: nobody must notice that no host had a part in it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sockets import GOOD, PREDICT, connected, head, received

from timberframe_serving.batching import BatchingSettings
from timberframe_serving.http.connections import Connection
from timberframe_serving.http.direct import Direct
from timberframe_serving.repository import ModelSettings
from timberframe_serving.servable import Servable
from timberframe_serving.service import Keys, Limits

INFER = "/v2/models/double/infer"
TENSOR = json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()
BY_THE_APPLICATION = "Content-Encoding: identity"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every model count as one of microseconds, on a busy machine, too."""
    monkeypatch.setattr("timberframe_serving.batching.QUICK", 60.0)


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The direct answers that have been made."""
    made: list[bytes] = []
    answer = Direct.answer

    def kept(self: Direct, *given: Any) -> bytes | None:
        found = answer(self, *given)
        if found is not None:
            made.append(found)
        return found

    monkeypatch.setattr(Direct, "answer", kept)
    return made


@pytest.fixture
def start(serve: Callable[..., Any], helpers: Any, tmp_path: Path) -> Callable[..., Any]:
    """Starts servers of one model that need a key."""

    def started(**settings: Any) -> Any:
        helpers.save(tmp_path / "double" / "1", 2.0)
        (tmp_path / "keys").write_text("secret\n")
        model = settings.pop("model", ModelSettings("double", tmp_path / "double"))
        return serve({"double": model}, keys=Keys.read(tmp_path / "keys"), **settings)

    return started


def until(condition: Callable[[], Any]) -> None:
    """Returns when something holds; fails where it never does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def facts(answer: tuple[bytes, bytes]) -> tuple[bytes, list[bytes], bytes]:
    """Returns the first line, the other lines in order, and the body, without the moment."""
    first, *lines = answer[0].lower().strip().split(b"\r\n")
    return first, sorted(line for line in lines if not line.startswith(b"date: ")), answer[1]


ASKED: dict[str, tuple[str, bytes, list[str]]] = {
    "good": (PREDICT, GOOD, []),
    "a version": ("/v1/models/double/versions/1:predict", GOOD, []),
    "tensors": (INFER, TENSOR, ["X-Request-Id: r-7"]),
    "an id that cannot be repeated": (PREDICT, GOOD, ["X-Request-Id: a b"]),
    "no JSON": (PREDICT, b"{", ["X-Request-Id: r-8"]),
    "an empty body": (PREDICT, b"", []),
    "a wrong shape": (PREDICT, b'{"instances": [[1, 2, 3]]}', []),
    "another method of the model": ("/v1/models/double:classify", b'{"examples": [{"x": 1.0}]}', []),
    "a version that is none": ("/v1/models/double/versions/01:predict", GOOD, []),
    "a wrong key": (PREDICT, GOOD, ["X-Api-Key: guess"]),
    "the last request": (PREDICT, GOOD, ["Connection: close"]),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
def test_an_answer_is_the_application_s(start: Any, direct: list[bytes], name: str, version: bytes) -> None:
    path, body, further = ASKED[name]
    server = start()
    last = version == b"HTTP/1.0" or name == "the last request"
    answers, counted = [], []
    for how in ([], [BY_THE_APPLICATION]):
        with connected(server) as connection:
            for _ in range(1 if last else 2):  # the second time by the known head
                connection.sendall(head(path, len(body), *further, *how).replace(b"HTTP/1.1", version) + body)
                answer = facts(received(connection))
                assert (b"connection: close" in answer[1]) == last
                answers.append(answer)
            assert not last or connection.recv(1) == b""
        counted.append(counts(server))
    assert answers == answers[:1] * len(answers)
    assert {k: 2 * n for k, n in counted[0].items()} == counted[1]
    assert len(direct) == (0 if name == "a version that is none" else len(answers) // 2)


def counts(server: Any) -> dict[str, float]:
    """Returns the counts of a server's requests by their labels."""
    lines = server.http("/metrics", headers={"x-api-key": "secret"})[1].decode().splitlines()
    names = (":tensorflow:serving:request_count{", ":tensorflow:serving:request_latency_count{")
    return {k: float(n) for k, _, n in (line.rpartition(" ") for line in lines if line.startswith(names))}


def test_bodies_that_are_announced_or_come_in_chunks_are_the_application_s(start: Any, direct: list[bytes]) -> None:
    with connected(start()) as connection:
        connection.sendall(head(PREDICT, len(GOOD), "Expect: 100-continue"))
        assert connection.recv(len(b"HTTP/1.1 100 Continue\r\n\r\n")) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(GOOD)
        assert received(connection)[1] == b'{"predictions":[[2.0,4.0]]}'
        chunked = head().replace(b"Content-Length: %d" % len(GOOD), b"Transfer-Encoding: chunked")
        connection.sendall(chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(GOOD), GOOD))
        assert received(connection)[1] == b'{"predictions":[[2.0,4.0]]}'
        assert not direct
        connection.sendall(head() + GOOD)
        assert received(connection)[1] == b'{"predictions":[[2.0,4.0]]}'
    assert len(direct) == 1


def test_a_body_in_parts_is_answered_once_it_is_whole(start: Any, direct: list[bytes]) -> None:
    with connected(start()) as connection:
        for part in (head()[:30], head()[30:], GOOD[:5]):
            connection.sendall(part)
            time.sleep(0.02)
        connection.sendall(GOOD[5:])
        assert received(connection)[1] == b'{"predictions":[[2.0,4.0]]}'


def test_a_body_that_comes_late_is_awaited_by_the_application(
    start: Any, direct: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timberframe_serving.http.connections._PATIENCE", 0.05)
    server = start()
    (servable,) = server.service.servables()
    with connected(server) as connection:
        connection.sendall(head() + GOOD[:5])
        time.sleep(0.5)
        assert servable.coming == 0
        connection.sendall(GOOD[5:] + head() + GOOD)
        assert [received(connection)[1] for _ in range(2)] == [b'{"predictions":[[2.0,4.0]]}'] * 2
    assert not direct


def test_a_client_that_goes_in_the_middle_of_its_body_leaves_nothing(start: Any, direct: list[bytes]) -> None:
    server = start()
    (servable,) = server.service.servables()
    for length in (len(GOOD), 100_000):
        with connected(server) as connection:
            connection.sendall(head(PREDICT, length) + GOOD[:5])
    with connected(server) as connection:
        connection.sendall(head() + GOOD)
        assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
    until(lambda: not servable.coming)
    assert len(direct) == 1


def test_requests_after_the_last_one_are_not_computed(start: Any, direct: list[bytes]) -> None:
    with connected(start()) as connection:
        connection.sendall(head(PREDICT, len(GOOD), "Connection: close") + GOOD + (head() + GOOD) * 2)
        assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
        assert connection.recv(1) == b""
    assert len(direct) == 1


def test_a_connection_with_many_requests_at_once_leaves_the_event_loop_to_others(
    start: Any, direct: list[bytes]
) -> None:
    with connected(start()) as connection:
        connection.sendall((head() + GOOD) * 50)
        assert [received(connection)[0][9:12] for _ in range(50)] == [b"200"] * 50
    assert len(direct) < 10  # one for each part in which the data came


def test_an_idle_connection_s_limit_does_not_hold_for_a_request_in_the_same_data(
    start: Any, direct: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uvicorn.Config", partial(uvicorn.Config, timeout_keep_alive=0.2))
    with connected(start()) as connection:
        connection.sendall(head() + GOOD + head() + GOOD[:5])
        assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
        time.sleep(0.6)
        connection.sendall(GOOD[5:])
        assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
        assert connection.recv(1) == b""  # now it is idle


def test_a_request_that_is_not_read_yet_is_answered_though_its_connection_has_been_idle_too_long(
    start: Any, direct: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uvicorn.Config", partial(uvicorn.Config, timeout_keep_alive=0.2))
    made: list[Connection] = []
    begun = Connection.connection_made
    monkeypatch.setattr(Connection, "connection_made", lambda self, by: (made.append(self), begun(self, by)))
    server = start()
    with connected(server) as connection:

        async def idle_and_asked_at_last() -> None:
            time.sleep(0.3)
            connection.sendall(head() + GOOD)
            made[-1].timeout_keep_alive_handler()  # as a loop does that has looked for data just before

        for _ in range(3):
            connection.sendall(head() + GOOD)
            assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
            server.call(idle_and_asked_at_last())
            assert received(connection)[0].startswith(b"HTTP/1.1 200 ")
        assert connection.recv(1) == b""  # now it is idle


def test_a_server_that_stops_awaits_the_body_of_a_request(start: Any, direct: list[bytes]) -> None:
    server = start()
    with connected(server) as connection, connected(server) as idle:
        for one in (connection, idle):
            one.sendall(head() + GOOD)
            received(one)
        connection.sendall(head() + GOOD[:5])
        time.sleep(0.2)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert idle.recv(1) == b""  # the server is at it
        connection.sendall(GOOD[5:])
        text, body = received(connection)
        assert (text[9:12], body) == (b"200", b'{"predictions":[[2.0,4.0]]}')
        assert connection.recv(1) == b""
        stopping.join()


def test_requests_whose_bodies_do_not_come_take_no_room(
    start: Any, direct: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timberframe_serving.http.connections._PATIENCE", 0.05)
    looked: list[int] = []
    check = Servable.check_entrance
    monkeypatch.setattr(Servable, "check_entrance", lambda self: (check(self), looked.append(self.coming)))
    settings = BatchingSettings(max_batch_size=1, max_enqueued_batches=1)
    server = start(batching=settings, limits=Limits(body_seconds=600.0))
    (servable,) = server.service.servables()
    waiting = [connected(server) for _ in range(2)]
    for connection in waiting:
        connection.sendall(head(PREDICT, 100_000) + GOOD[:5])
    until(lambda: len(looked) == len(waiting))
    until(lambda: not servable.coming)
    with connected(server) as good:
        good.sendall(head() + GOOD)
        assert received(good)[0].startswith(b"HTTP/1.1 200 ")
    body = GOOD + b" " * (100_000 - len(GOOD))
    waiting[0].sendall(body[5:])
    assert received(waiting[0])[0].startswith(b"HTTP/1.1 200 ")
    for connection in waiting:
        connection.close()
    until(lambda: not servable.coming)


def test_requests_are_recorded(start: Any, direct: list[bytes], tmp_path: Path) -> None:
    file = tmp_path / "requests"
    server = start(model=ModelSettings("double", tmp_path / "double", sampling_rate=1.0, record_to=str(file)))
    with connected(server) as connection:
        connection.sendall(head() + GOOD)
        received(connection)
        recorded = file.stat().st_size
        connection.sendall(head(PREDICT, len(GOOD), BY_THE_APPLICATION) + GOOD)
        received(connection)
    assert len(direct) == 1
    assert file.stat().st_size == 2 * recorded > 0

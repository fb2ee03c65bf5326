"""Models, and servers in a thread of the tests' own process."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import timberframe as tf
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.manager import Manager, ManagerSettings
from timberframe_serving.metrics import Metrics
from timberframe_serving.models import LoadSettings
from timberframe_serving.repository import ModelSettings
from timberframe_serving.server import Hosting, Server
from timberframe_serving.service import Keys, Limits, Service

sys.path.insert(0, str(Path(__file__).parent))  # tests share modules of this folder


def save(folder: Path, factor: float) -> Path:
    """Saves a model that multiplies pairs of numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=np.float32(factor))
        y = tf.multiply(x, w, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
    return folder


Built = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], str]]


def save_with(folder: Path, build: Callable[[], Built]) -> Path:
    """Saves a model; build: makes the inputs, outputs and method of each signature in the default graph."""
    made = tf.saved_model
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = {}
        for name, (inputs, outputs, method) in build().items():
            infos = [{k: made.utils.build_tensor_info(t) for k, t in g.items()} for g in (inputs, outputs)]
            signatures[name] = made.build_signature_def(infos[0], infos[1], method)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        builder = made.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
    return folder


class Running:
    """A server that serves, and what tests ask of it."""

    def __init__(self, models: Mapping[str, ModelSettings], **settings: Any) -> None:
        self._models, self._settings = models, settings
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._started.wait(60)
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        given = self._settings
        metrics = Metrics()
        manager = Manager(
            self._models,
            LoadSettings(),
            given.get("batching", BatchingSettings()),
            metrics,
            given.get("manager", ManagerSettings(poll_interval=0.05, drain_seconds=10)),
        )
        self.service = Service(manager, metrics, given.get("keys", Keys()), given.get("limits", Limits()))
        self.service.tracing = given.get("tracing")
        hosting = given.get("hosting", Hosting(http_port=0, grpc_port=0, stop_seconds=5))
        self.server = Server(self.service, hosting)
        self.loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        running = asyncio.create_task(self.server.run(ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            self._error = running.exception()
        self._started.set()
        await asyncio.gather(running, return_exceptions=True)
        waiting.cancel()

    def stop(self) -> None:
        """Stops the server and waits until it has stopped."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.server.stop)
            self._thread.join(30)
            assert not self._thread.is_alive()

    def call(self, coroutine: Any) -> Any:
        """Runs a coroutine on the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    @property
    def url(self) -> str:
        """The address at which it answers HTTP."""
        return f"http://127.0.0.1:{self.server.http_port}"

    def http(
        self, path: str, body: Any = None, headers: Mapping[str, str] = {}, method: str | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Returns status, body (JSON as what it says) and headers of an answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, dict(headers), method=method)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                status, content, got = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            status, content, got = error.code, error.read(), error.headers
        kind = got.get("content-type", "")
        return status, json.loads(content) if content and kind == "application/json" else content, dict(got)

    def rpc(self, method: str, request: Any, response: Any, metadata: Any = None) -> Any:
        """Returns the answer of a method of gRPC. request: a message, or bytes."""
        with grpc.insecure_channel(f"127.0.0.1:{self.server.grpc_port}") as channel:
            data = request if isinstance(request, bytes) else request.SerializeToString()
            return response.FromString(channel.unary_unary(method)(data, timeout=30, metadata=metadata))


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Starts servers, which end with the test."""
    started: list[Running] = []

    def start(models: Mapping[str, Path | ModelSettings], **settings: Any) -> Running:
        made = {n: m if isinstance(m, ModelSettings) else ModelSettings(n, m) for n, m in models.items()}
        started.append(Running(made, **settings))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def helpers() -> Any:
    """This module's functions, for tests that save models."""
    return sys.modules[__name__]


@pytest.fixture(scope="module")
def doubling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of one model that multiplies by 2; tests that change nothing share it."""
    base = tmp_path_factory.mktemp("models") / "double"
    save(base / "1", 2.0)
    server = Running({"double": ModelSettings("double", base, labels={"stable": 1, "next": 2})})
    yield server
    server.stop()

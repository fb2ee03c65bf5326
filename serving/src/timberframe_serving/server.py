"""A server on one machine: uvicorn and grpc.aio on one event loop, in front of a manager."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import uvicorn

from timberframe_core.errors import InvalidArgumentError, OpError, UnavailableError
from timberframe_serving.http.application import Application
from timberframe_serving.http.connections import protocol
from timberframe_serving.http.direct import Direct
from timberframe_serving.repository import read_configuration
from timberframe_serving.rpc.open_inference import health_service, inference_service
from timberframe_serving.rpc.tensorflow_serving import model_service, prediction_service
from timberframe_serving.service import Service

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hosting:
    """Addresses of a server. A port of 0 is one that is free; None is none. certificate, key: files of TLS, in PEM."""

    host: str = "127.0.0.1"
    http_port: int | None = 8501
    grpc_port: int | None = 8500
    certificate: Path | None = None
    key: Path | None = None
    client_authority: Path | None = None
    """The file of the authority that signs clients' certificates; with it, clients must have one."""
    access_log: bool = False
    configuration: Path | None = None
    """The file of models that is read again every `configuration_interval` seconds, where that is not 0."""
    configuration_interval: float = 0.0
    stop_seconds: float = 30.0


class Server:
    """A server that serves until `stop` or a signal."""

    def __init__(self, service: Service, hosting: Hosting) -> None:
        self.service, self._hosting = service, hosting
        self.http_port: int | None = None
        self.grpc_port: int | None = None
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    def stop(self) -> None:
        """Makes `run` end: it answers what it has, and takes nothing new."""
        self.service.stopping = True
        self._stop.set()

    async def run(self, started: asyncio.Event | None = None) -> None:
        """Loads the models, serves, and returns after `stop`, or after SIGTERM or SIGINT.

        started: is set when the models are loaded; until then the server listens and is not ready. Raises
        UnavailableError where a port is taken.
        """
        loop = asyncio.get_running_loop()
        http = await self._begin_http()
        rpc = await self._begin_grpc()
        for sign in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(sign, self.stop)
        _log.info("listens", extra={"http_port": self.http_port, "grpc_port": self.grpc_port})
        file = self._hosting.configuration
        known = file.read_bytes() if file is not None and file.is_file() else b""
        await self.service.manager.reconcile()
        self._tasks.append(loop.create_task(self.service.manager.watch()))
        if file is not None and self._hosting.configuration_interval:
            self._tasks.append(loop.create_task(self._watch_configuration(file, known)))
        if started is not None:
            started.set()
        await self._stop.wait()
        await self._end(http, rpc)

    async def _end(self, http: _QuietServer | None, rpc: Any) -> None:
        _log.info("stops")
        if http is not None:
            http.should_exit = True
        if rpc is not None:
            await rpc.stop(self._hosting.stop_seconds)
        for task in self._tasks:
            if task.get_name() != "http":
                task.cancel()
        await asyncio.wait(self._tasks, timeout=self._hosting.stop_seconds)
        await self.service.manager.close()
        self.service.recorder.close()
        if self.service.tracing is not None:
            await asyncio.to_thread(self.service.tracing.close)

    async def _begin_http(self) -> _QuietServer | None:
        hosting = self._hosting
        if hosting.http_port is None:
            return None
        try:
            listener = socket.create_server((hosting.host, hosting.http_port), backlog=2048)
        except OSError as error:
            raise UnavailableError(f"server: cannot listen on {hosting.host}:{hosting.http_port} ({error})") from error
        self.http_port = listener.getsockname()[1]
        files: dict[str, Any] = {}
        if hosting.certificate is not None:
            files = {"ssl_certfile": hosting.certificate, "ssl_keyfile": hosting.key}
            if hosting.client_authority is not None:
                files |= {"ssl_ca_certs": str(hosting.client_authority), "ssl_cert_reqs": 2}
        application = Application(self.service, hosting.access_log)
        config = uvicorn.Config(
            application,
            http=protocol(self.service.limits.body_seconds, Direct(application, self.service)),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=int(hosting.stop_seconds),
            **files,
        )
        server = _QuietServer(config)
        serving = asyncio.get_running_loop().create_task(server.serve([listener]), name="http")
        self._tasks.append(serving)
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if serving.done():
            cause = serving.exception()
            raise UnavailableError(f"server: HTTP does not start ({cause}); the log may say more") from cause
        return server

    async def _begin_grpc(self) -> Any:
        hosting = self._hosting
        if hosting.grpc_port is None:
            return None
        most = self.service.limits.body_bytes
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", most),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ]
        )
        for make in (prediction_service, model_service, inference_service, health_service):
            server.add_generic_rpc_handlers((make(self.service),))
        address = f"{hosting.host}:{hosting.grpc_port}"
        try:
            if hosting.certificate is None:
                self.grpc_port = server.add_insecure_port(address)
            else:
                self.grpc_port = server.add_secure_port(address, _grpc_credentials(hosting))
        except (RuntimeError, OSError) as error:
            raise UnavailableError(f"server: cannot listen on {address} ({error})") from error
        await server.start()
        return server

    async def _watch_configuration(self, file: Path, known: bytes) -> None:
        """Reads the configuration again and again; one that is damaged changes nothing, and the log says so.

        known: its content before the models were loaded, which may take long.
        """
        while True:
            await asyncio.sleep(self._hosting.configuration_interval)
            try:
                text = await asyncio.to_thread(file.read_bytes)
                if text != known:
                    known = text
                    await self.service.manager.configure(read_configuration(file))
                    _log.info("configuration is changed", extra={"file": str(file)})
            except (OSError, OpError) as error:
                _log.error("configuration is kept", extra={"file": str(file), "error": str(error)})


def _grpc_credentials(hosting: Hosting) -> Any:
    if hosting.certificate is None or hosting.key is None:
        raise InvalidArgumentError("server: a certificate and its key are required for TLS")
    authority = hosting.client_authority.read_bytes() if hosting.client_authority else None
    pairs = [(hosting.key.read_bytes(), hosting.certificate.read_bytes())]
    return grpc.ssl_server_credentials(pairs, authority, authority is not None)


class _QuietServer(uvicorn.Server):
    """A server that leaves signals to `Server`, which stops gRPC, too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes no signals."""
        yield

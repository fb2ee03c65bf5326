"""The application with its models, as any host of ASGI applications takes it, and Ray Serve as such a host."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_core.errors import UnavailableError
from timberframe_serving import flags
from timberframe_serving.http.application import Application
from timberframe_serving.http.messages import Receive, Send
from timberframe_serving.manager import Manager
from timberframe_serving.metrics import Metrics
from timberframe_serving.service import Service

_log = logging.getLogger(__name__)
_NAME = "timberframe"


def service_of(found: argparse.Namespace) -> Service:
    """Returns the service that flags describe; nothing is loaded yet."""
    metrics = Metrics()
    manager = Manager(
        flags.models(found),
        flags.load_settings(found),
        flags.batching_settings(found),
        metrics,
        flags.manager_settings(found),
    )
    return Service(
        manager,
        metrics,
        flags.keys(found),
        flags.limits(found),
        found.allow_model_control,
        tracing=flags.tracing(found),
    )


class Hosted:
    """An ASGI application that loads its models when its host starts it, and unloads them when that ends."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """arguments: flags of the command line. Raises what is wrong with them."""
        found = flags.parse(arguments)
        self._service = service_of(found)
        self._application = Application(self._service, found.access_log)
        self._watch: asyncio.Task[None] | None = None

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serves one connection's request, or the host's start and end, as ASGI has it."""
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._service.manager.reconcile()
                self._watch = asyncio.get_running_loop().create_task(self._service.manager.watch())
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _end(self) -> None:
        self._service.stopping = True
        if self._watch is not None:
            self._watch.cancel()
        await self._service.manager.close()
        self._service.recorder.close()
        if self._service.tracing is not None:
            await asyncio.to_thread(self._service.tracing.close)


def on_ray(arguments: Sequence[str]) -> None:
    """Serves on Ray until a signal ends it: in the cluster that RAY_ADDRESS names, or in one of this machine's own.

    Each replica has the application, with its own models. Raises UnavailableError without Ray Serve, or where the
    replicas do not start.
    """
    found = flags.parse(arguments)
    serve = _started(found)
    stop = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):  # after Ray, which has handlers of its own
        signal.signal(sign, lambda *_: stop.set())
    try:
        serve.run(_deployment(serve, found, arguments), name=_NAME, route_prefix="/")
        _log.info("listens", extra={"http_port": found.rest_api_port, "replicas": found.ray})
        stop.wait()
    except (RuntimeError, TimeoutError) as error:
        raise UnavailableError(f"server: its replicas do not start on Ray ({error}); Ray's logs say more") from error
    finally:
        serve.shutdown()


def _started(found: argparse.Namespace) -> Any:
    """Returns Ray Serve, which listens."""
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise UnavailableError(
            f"server: Ray Serve is not installed ({error}); pip install 'timberframe-serving[ray]' is required"
        ) from error
    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
    options: dict[str, Any] = {
        "host": found.host,
        "port": found.rest_api_port,
        "request_timeout_s": found.rest_api_timeout_in_ms / 1e3,
    }
    if found.tls_certificate_file is not None:
        options |= {"ssl_certfile": str(found.tls_certificate_file), "ssl_keyfile": str(found.tls_key_file)}
    serve.start(http_options=options)
    return serve


def _deployment(serve: Any, found: argparse.Namespace, arguments: Sequence[str]) -> Any:
    """Returns the application for Ray Serve.

    A replica is given as many requests as its batches take, since Ray's own number would leave them nearly empty; those
    beyond are refused by it.
    """
    batching = flags.batching_settings(found)
    least, most = found.ray
    options: dict[str, Any] = {
        "name": "models",
        "max_ongoing_requests": batching.max_batch_size * batching.max_enqueued_batches,
        "graceful_shutdown_timeout_s": found.shutdown_seconds,
        "health_check_period_s": 1,
    }
    if least == most:
        options["num_replicas"] = least
    else:
        target = 2 * batching.max_batch_size  # one batch that runs, and one that waits
        options["autoscaling_config"] = {
            "min_replicas": least, "max_replicas": most, "initial_replicas": least, "target_ongoing_requests": target,
        }  # fmt: skip

    def build() -> Hosted:
        return Hosted(arguments)

    made = serve.deployment(serve.ingress(build)())
    return made.options(**options).bind()

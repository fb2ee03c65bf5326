"""The process that has the devices: ``python -m timberframe_sdk.testing.process_target.worker SOCKET TASK``.

Each connection is of one session of a client, which may have several. What sessions leave is in containers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any

import numpy as np

from timberframe_core.compiler.passes import standard as _standard_passes  # noqa: F401  # registers them
from timberframe_core.compiler.passes.pipeline import Pipeline
from timberframe_core.config import SessionConfig
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import CancelledError
from timberframe_core.plugin import loader
from timberframe_core.plugin.contracts import DEPENDS, CancelToken, Cluster, Device, RunContext
from timberframe_core.plugin.state import Variable
from timberframe_core.plugin.wire_reader import read_cluster
from timberframe_core.runtime.devices import devices_for
from timberframe_core.runtime.resources import ResourceStore
from timberframe_sdk.testing.process_target.messages import KEY, error_header, receive, send

_CANCELLED = CancelledError("the client cancelled the run")


class Worker:
    """What all sessions share: the incarnation, and a store for each container."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.incarnation = int.from_bytes(os.urandom(7))
        self.stores: dict[str, ResourceStore] = {}
        self.sessions: dict[int, WorkerSession] = {}
        self.numbers = count(1)
        self.lock = threading.Lock()

    def variable(self, key: str, device: Device, dtype: str) -> Variable:
        """The variable of a name, which may begin with its container: ``container:name``."""
        container = key.partition(":")[0] if ":" in key else ""
        store = self.stores.setdefault(container, ResourceStore())
        return store.variables.get(key, device, as_dtype(dtype))

    def serve(self, connection: Connection) -> None:
        """Answers the calls of one connection until it ends, and with the last one of a session ends that."""
        session: WorkerSession | None = None
        try:
            with connection, suppress(EOFError, OSError):
                session = self._session_of(connection)
                while session is not None:
                    header, arrays = receive(connection)
                    self._answer(session, connection, header, arrays)
        finally:
            if session is not None:
                self._leave(session)

    def _session_of(self, connection: Connection) -> WorkerSession | None:
        """The session that the first message of a connection asks for, an old one or a new; None if there is none."""
        header, _ = receive(connection)
        with self.lock:
            session = WorkerSession(self) if header["call"] == "hello" else self.sessions.get(header["session"])
            if session is not None:
                session.connections += 1
                self.sessions[session.number] = session
        answer: dict[str, Any] = {"result": [self.incarnation, session is not None]}
        if session is not None and header["call"] == "hello":
            try:
                answer["result"] = [self.incarnation, session.number, session.open(header["config"])]
            except Exception as e:
                answer = error_header(e)
        try:
            send(connection, answer)
        except BaseException:
            if session is not None:
                self._leave(session)
            raise
        return session

    def _leave(self, session: WorkerSession) -> None:
        with self.lock:
            session.connections -= 1
            ended = not session.connections
            if ended:
                del self.sessions[session.number]
        if ended:
            session.do_close()

    def _answer(
        self, session: WorkerSession, connection: Connection, header: dict[str, Any], arrays: list[np.ndarray]
    ) -> None:
        """Carries out one call; what it made is dropped where the client waits for it no longer."""
        made: list[int] = []
        session.made.numbers = made
        try:
            answer, results = session.answer(header, arrays)
        except Exception as e:
            answer, results = error_header(e), []
        try:
            send(connection, answer, results)
        except OSError:
            for number in made:
                session.kept.pop(number, None)
            raise


class WorkerSession:
    """One session of a client: its tensors, executables and random streams. connections: how many it has."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.number = next(worker.numbers)
        self.connections = 0
        self.tokens: dict[int, CancelToken] = {}
        self.cancelled: deque[int] = deque(maxlen=64)
        """Runs that were cancelled before they began, or after they had ended."""
        self.made = threading.local()
        """Its `numbers`: what a thread has kept for the call that it answers."""
        self.devices: list[Device] = []
        self.pipeline = Pipeline()
        self.resources = ResourceStore()
        self.kept: dict[int, Any] = {}
        self.ids = count(1)

    def answer(self, header: dict[str, Any], arrays: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Carries out one call, after dropping what the client no longer needs."""
        for dropped in header.pop("drop", ()):
            self.kept.pop(dropped, None)
        call: Callable[..., Any] = getattr(self, f"do_{header.pop('call')}")
        if "device" in header:
            header["device"] = self.devices[header["device"]]
        result = call(*arrays, **header)
        return ({}, [result]) if isinstance(result, np.ndarray) else ({"result": result}, [])

    def keep(self, thing: Any) -> int:
        """The number by which the client knows a tensor or an executable."""
        number = next(self.ids)
        self.kept[number] = thing
        self.made.numbers.append(number)
        return number

    def _described(self, array: Any) -> list[Any]:
        return [self.keep(array), as_dtype(np.dtype(array.dtype)).name, list(array.shape)]

    def open(self, config: dict[str, Any]) -> list[list[Any]]:
        """Opens the devices, by the settings of the client's session; what it must know of them."""
        settings = SessionConfig(**config)
        self.devices = devices_for(settings)
        plugins = [p.name for p in loader.registry.load(settings.plugins)]
        passes = loader.registry.passes.selected(plugins, {})  # a pass of the client's plugins may not be here
        self.pipeline = Pipeline([p for p in passes if settings.optimizations.get(p.name, True)], self.devices)
        task = f"/job:worker/replica:0/task:{self.worker.task}"
        for device in self.devices:
            if not device.spec.startswith(task):
                device.spec = task + device.spec
        return [
            [d.type, d.spec, d.priority, d.attributes.memory, d.attributes.vendor, d.attributes.model,
             list(d.attributes.dtypes), dict(d.attributes.unsupported_ops), d.allocator.alignment]
            for d in self.devices
        ]  # fmt: skip

    def do_close(self) -> None:
        for token in list(self.tokens.values()):
            token.cancel(CancelledError("the session of the run has ended"))
        self.kept.clear()
        self.resources.close()

    def do_ping(self) -> None:
        """This process answers."""

    def do_cancel(self, run: int) -> None:
        with self.worker.lock:
            token = self.tokens.get(run)
            if token is None:
                self.cancelled.append(run)
        if token is not None:
            token.cancel(_CANCELLED)

    def do_reset(self, containers: list[str]) -> None:
        for container in containers or list(self.worker.stores):
            store = self.worker.stores.pop(container, None)
            if store is not None:
                store.close()

    def _cluster(self, wire: np.ndarray, device: Device) -> Cluster:
        return read_cluster(
            wire.tobytes(),
            device,
            lambda name, dtype: self.worker.variable(name, device, dtype.name),
            lambda name: self.resources.variables.stream("", name, seeded=True),
        )

    def do_supports(self, wire: np.ndarray, device: Device) -> str | int | None:
        found = device.supports(self._cluster(wire, device).nodes[0])
        return 0 if found is DEPENDS else found

    def do_compile(self, wire: np.ndarray, device: Device) -> list[int]:
        _, executable = self.pipeline.compile(self._cluster(wire, device), [])
        memory = executable.memory
        return [self.keep(executable), memory.persistent, memory.arena, memory.workspace]

    def do_run(self, executable: int, inputs: list[int], mode: str, fence: str, run: int) -> list[list[Any]]:
        token = CancelToken()
        with self.worker.lock:
            self.tokens[run] = token
            if run in self.cancelled:
                token.cancel(_CANCELLED)
        try:
            token.check()
            context = RunContext(token, mode=mode, fence=fence)
            return [self._described(x) for x in self.kept[executable].run([self.kept[i] for i in inputs], context)]
        finally:
            del self.tokens[run]

    def do_put(self, array: np.ndarray, device: Device) -> list[Any]:
        return self._described(device.copy_in(array))

    def do_get(self, device: Device, tensor: int) -> np.ndarray:
        return device.copy_out(self.kept[tensor])

    def do_version(self, device: Device, name: str, dtype: str) -> list[Any] | None:
        version = self.worker.variable(name, device, dtype).lease()  # for good: the client may read it at any time
        return None if version is None else self._described(version.array)

    def do_shape(self, device: Device, name: str, dtype: str) -> list[int] | None:
        shape = self.worker.variable(name, device, dtype).shape
        return None if shape is None else list(shape)

    def do_commit(self, device: Device, name: str, dtype: str, tensor: int | None) -> None:
        variable = self.worker.variable(name, device, dtype)
        array = None if tensor is None else self.kept[tensor]
        with variable.lock:
            variable.commit(array, None if array is None else tuple(array.shape))
            variable.lease()  # for good: the client has the array, too

    def do_statistics(self, device: Device) -> list[Any]:
        s = device.allocator.statistics()
        return [s.used, s.peak, s.limit, s.live, s.total]

    def do_fail_at(self, device: Device, value: int | None) -> None:
        device.allocator.fail_at = value


def _end_with_the_client() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    address, task = sys.argv[1], int(sys.argv[2])
    worker = Worker(task)
    listener = Listener(address, "AF_UNIX", backlog=16, authkey=bytes.fromhex(os.environ[KEY]))
    threading.Thread(target=_end_with_the_client, daemon=True).start()
    while True:
        with suppress(EOFError, OSError, AuthenticationError):  # of somebody who has not the password, or is gone
            threading.Thread(target=worker.serve, args=(listener.accept(),), daemon=True).start()


if __name__ == "__main__":
    main()

"""The process that has the devices: ``python -m timberframe_sdk.testing.process_target.worker SOCKET TASK``.

Each connection is of one session of a client, which may have several. What sessions leave is in containers.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from itertools import count
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any

import numpy as np

from timberframe_sdk.remote.errors import error_header
from timberframe_sdk.remote.session import Task, TaskSession
from timberframe_sdk.testing.process_target.messages import KEY, receive, send


class Worker:
    """What all sessions share."""

    def __init__(self, task: int) -> None:
        self.task = Task("worker", task)
        self.sessions: dict[int, WorkerSession] = {}
        self.numbers = count(1)
        self.lock = threading.Lock()

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
        """Returns the session that the first message of a connection asks for, an old one or a
        new; None if there is none.
        """
        header, _ = receive(connection)
        with self.lock:
            session = WorkerSession(self) if header["call"] == "hello" else self.sessions.get(header["session"])
            if session is not None:
                session.connections += 1
                self.sessions[session.number] = session
        answer: dict[str, Any] = {"result": [self.task.incarnation, session is not None]}
        if session is not None and header["call"] == "hello":
            try:
                answer["result"] = [self.task.incarnation, session.number, session.open(header["config"])]
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
            answer, results = session.answered(header, arrays)
        except Exception as e:
            answer, results = error_header(e), []
        try:
            send(connection, answer, results)
        except OSError:
            session.drop(made)
            raise


class WorkerSession(TaskSession):
    """A session that ends with its last connection. connections: how many it has."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.task)
        self.number = next(worker.numbers)
        self.connections = 0
        self.made = threading.local()
        """Its `numbers`: what a thread has kept for the call that it answers."""

    def answered(self, header: dict[str, Any], arrays: list[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Carries out one call, after dropping what the client no longer needs."""
        self.drop(header.pop("drop", ()))
        result = self.answer(header.pop("call"), arrays, header)
        return ({}, [result]) if isinstance(result, np.ndarray) else ({"result": result}, [])

    def keep(self, thing: Any) -> int:
        """See `TaskSession.keep`."""
        number = super().keep(thing)
        self.made.numbers.append(number)
        return number


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

"""Link: one session's connections to one worker: calls, and what they do when it dies, hangs or has been restarted.

Each call in flight has a connection of its own, so that a session may have several runs in flight, and control calls
pass by them. The worker keeps what belongs to the session until its last connection ends.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

import numpy as np

from timberframe_core.plugin.contracts import Support
from timberframe_sdk import AbortedError, CancelToken, OpError, UnavailableError
from timberframe_sdk.remote.errors import raise_error
from timberframe_sdk.testing.process_target.messages import receive, send

PING_SECONDS = 0.5
"""After so long a wait for an answer, and again and again, the worker is asked whether it lives."""
ANSWER_SECONDS = 3.0
"""It has so long to say so. Who must answer at once and has not by then counts as dead."""
RETRY_SECONDS = 0.2
"""It has so long when it did not answer before."""
CANCEL_SECONDS = 1.0
"""A cancelled run has so long to end; if it takes longer, its end is not waited for."""


def connect(address: str, authkey: bytes, seconds: float = ANSWER_SECONDS) -> Connection:
    """Returns a connection to a worker; OSError or EOFError where it does not answer in time, now
    or within a later message.
    """
    with socket.socket(socket.AF_UNIX) as s:
        limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        s.connect(address)
        connection = Connection(s.detach())
    try:
        answer_challenge(connection, authkey)
        deliver_challenge(connection, authkey)
    except AuthenticationError as e:
        connection.close()
        raise ConnectionError(str(e)) from None
    except BaseException:
        connection.close()
        raise
    return connection


class Link:
    """Calls to a worker. who: the device that their errors name. target: URL of the session's target."""

    def __init__(self, address: str, authkey: bytes, config: Mapping[str, Any], target: str) -> None:
        self._address, self._authkey, self._target = address, authkey, target
        self._lock = threading.Lock()
        self._free: list[Connection] = []
        self._dropped: list[int] = []
        self.supports: dict[str, Support] = {}
        self._runs = count(1)
        self._closed = self._hangs = False
        try:
            connection = connect(address, authkey)
            self.incarnation, self._session, self.devices = _ask(connection, {"call": "hello", "config": config})
        except OpError:
            raise
        except (EOFError, OSError) as e:
            raise _unavailable(address, target, e) from None
        self._free.append(connection)

    def drop(self, number: int) -> None:
        """Makes the worker drop a tensor or an executable, with the next call."""
        self._dropped.append(number)

    def call(
        self, who: str, call: str, arrays: Sequence[np.ndarray] = (), cancel: CancelToken | None = None, **details: Any
    ) -> Any:
        """Returns what the worker answers: an array, or anything that JSON has; raises its errors.

        cancel: stops the call there and here; for calls that take `run`, the number that it is known by.
        """
        if cancel is not None:
            details["run"] = next(self._runs)
        connection = self._take(who)
        dropped = self._dropped[:]
        del self._dropped[: len(dropped)]
        try:
            send(connection, {"call": call, "drop": dropped, **details}, arrays)
            self._wait(connection, who, cancel, details.get("run"))
            header, results = receive(connection)
        except (EOFError, OSError) as e:
            if isinstance(e, OpError):  # some are OSErrors, too
                self._give_up(connection, who, details.get("run"))
                raise
            connection.close()
            raise self._lost(who, e) from None
        except BaseException:
            self._give_up(connection, who, details.get("run"))
            raise
        self._give_back(connection)
        if cancel is not None:
            cancel.check()
        raise_error(header)
        return results[0] if results else header.get("result")

    def _wait(self, connection: Connection, who: str, cancel: CancelToken | None, run: int | None) -> None:
        """Returns when there is an answer; UnavailableError where the worker is dead or hangs.

        A run that is cancelled is cancelled there; its reason is raised where it goes on all the same.
        """
        asked, cancelled = time.monotonic(), None
        while not connection.poll(0.01):
            now = time.monotonic()
            if cancel is not None and cancel.reason is not None:
                if cancelled is None:
                    cancelled = now
                    self.control(who, "cancel", run=run)
                elif now - cancelled > CANCEL_SECONDS:
                    cancel.check()
            if now - asked > PING_SECONDS:
                self.control(who, "ping")
                asked = time.monotonic()

    def _give_up(self, connection: Connection, who: str, run: int | None) -> None:
        """After an interruption: ends the call, whose answer the next one must not get, or else the connection."""
        with suppress(EOFError, OSError, UnavailableError, AbortedError):
            if run is not None:
                self.control(who, "cancel", run=run)
            if connection.poll(PING_SECONDS):
                receive(connection)
                self._give_back(connection)
                return
        connection.close()

    def control(self, who: str, call: str, **details: Any) -> None:
        """Makes a call that is answered at once, whatever else the worker does."""
        connection = self._take(who)
        try:
            send(connection, {"call": call, **details})
            if not connection.poll(ANSWER_SECONDS):
                raise TimeoutError(f"no answer in {ANSWER_SECONDS:g} s")
            receive(connection)
        except (EOFError, OSError) as e:
            connection.close()
            raise self._lost(who, e) from None
        self._give_back(connection)

    # Connections

    def _take(self, who: str) -> Connection:
        """Returns a connection that no call uses; AbortedError where the worker no longer knows the session."""
        with self._lock:
            if self._free and not self._hangs:
                return self._free.pop()
        try:
            connection = connect(self._address, self._authkey, RETRY_SECONDS if self._hangs else ANSWER_SECONDS)
            incarnation, known = _ask(connection, {"call": "join", "session": self._session})
        except (EOFError, OSError) as e:
            raise self._lost(who, e) from None
        self._hangs = False
        if incarnation == self.incarnation and known:
            return connection
        connection.close()
        changed = f"it is now {incarnation}" if incarnation != self.incarnation else "its connections have ended"
        raise AbortedError(
            f"device {who} of target '{self._target}': its process was restarted or dropped the session (of "
            f"incarnation {self.incarnation}; {changed}), and what the session had there is lost; make a new session"
        )

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.close()

    def _lost(self, who: str, error: BaseException) -> UnavailableError:
        """Returns the error of a call whose connection ended or whose worker hangs."""
        self._hangs = isinstance(error, TimeoutError | BlockingIOError)
        if not self._hangs:
            self._close_free()
        return _unavailable(who, self._target, error)

    def _close_free(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def close(self) -> None:
        """Makes the worker drop what it keeps for the session; it does so too when the connections end."""
        if self._free:
            with suppress(AbortedError, UnavailableError):  # it is gone with the process
                self.control(self._address, "close")
        self._closed = True
        self._close_free()


def _ask(connection: Connection, header: Mapping[str, Any]) -> Any:
    """Returns the answer to the first message of a connection, which is closed where there is none."""
    try:
        send(connection, header)
        answer, _ = receive(connection)
        raise_error(answer)
    except BaseException:
        connection.close()
        raise
    return answer["result"]


def _unavailable(who: str, target: str, error: BaseException) -> UnavailableError:
    what = "no answer in time" if isinstance(error, BlockingIOError) else f"{type(error).__name__}: {error}"
    return UnavailableError(
        f"device {who} of target '{target}': its process does not answer ({what}); make a new session"
    )

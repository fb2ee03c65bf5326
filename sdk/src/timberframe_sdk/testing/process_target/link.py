"""Link: the client's connection to one worker, for one session."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from typing import Any

import numpy as np

from timberframe_sdk import AbortedError, CancelToken, UnavailableError
from timberframe_sdk.testing.process_target.messages import raise_error, receive, send

PING_SECONDS = 0.4
"""After so long a wait for an answer the worker is asked whether it lives, and has as long to say so."""


class Link:
    """Calls to a worker, one at a time; control calls go past them by a line of their own."""

    def __init__(self, address: str, authkey: bytes, config: Mapping[str, Any]) -> None:
        self._address, self._authkey = address, authkey
        self._lock, self._control_lock = threading.Lock(), threading.Lock()
        self._dropped: list[int] = []
        self._connection: Connection | None = None
        try:
            connection, self._control = self._connect(), self._connect()
            self.incarnation, self._number, self.devices = _ask(connection, {"call": "hello", "config": config})
        except (EOFError, OSError) as e:
            raise _unavailable(address, e) from None
        self._connection = connection

    def _connect(self) -> Connection:
        return Client(self._address, "AF_UNIX", authkey=self._authkey)

    def _lost(self, who: str) -> Exception:
        """The error of a session whose connection has ended: it is for one incarnation of the worker alone."""
        found: list[int] = []

        def ask() -> None:
            with suppress(EOFError, OSError), self._connect() as connection:
                found.append(_ask(connection, {"call": "incarnation"}))

        thread = threading.Thread(target=ask, daemon=True)  # to connect to a process that hangs takes for ever
        thread.start()
        thread.join(PING_SECONDS)
        if not found:
            return _unavailable(who, ConnectionError("its connection has ended"))
        changed = f"it is now {found[0]}" if found[0] != self.incarnation else "its connection has ended"
        return AbortedError(
            f"device {who}: its process was restarted or dropped the session (of incarnation {self.incarnation}; "
            f"{changed}), and what the session had there is lost; make a new session"
        )

    def drop(self, number: int) -> None:
        """Has the worker drop a tensor or an executable, with the next call."""
        self._dropped.append(number)

    def call(
        self, who: str, call: str, arrays: Sequence[np.ndarray] = (), cancel: CancelToken | None = None, **details: Any
    ) -> Any:
        """What the worker answers: an array, or anything that JSON has; raises its errors.

        who: the device that is named where the worker does not answer. cancel: stops the call there and here.
        """
        with self._lock:
            connection = self._connection
            if connection is None:
                raise self._lost(who)
            dropped, self._dropped = self._dropped, []
            try:
                send(connection, {"call": call, "drop": dropped, **details}, arrays)
                self._wait(connection, who, cancel)
                header, results = receive(connection)
            except (EOFError, OSError) as e:
                self._connection = None
                raise _unavailable(who, e) from None
            except UnavailableError:
                self._connection = None
                raise
            except BaseException:
                self._give_up(connection, who)
                raise
        if cancel is not None:
            cancel.check()
        raise_error(header)
        return results[0] if results else header.get("result")

    def _wait(self, connection: Connection, who: str, cancel: CancelToken | None) -> None:
        """Returns when there is an answer; UnavailableError where the worker is dead or hangs."""
        asked = time.monotonic()
        while not connection.poll(0.01):
            if cancel is not None and cancel.reason is not None:  # again and again: the run may not have begun there
                self.control(who, "cancel", session=self._number)
            if time.monotonic() - asked > PING_SECONDS:
                self.control(who, "ping")
                asked = time.monotonic()

    def _give_up(self, connection: Connection, who: str) -> None:
        """After an interruption: ends the call, whose answer the next one must not get, or else the connection."""
        self._connection = None
        with suppress(EOFError, OSError, UnavailableError):
            self.control(who, "cancel", session=self._number)
            if connection.poll(PING_SECONDS):
                receive(connection)
                self._connection = connection

    def close(self) -> None:
        """Has the worker drop what it keeps for the session; it does so too when the connections end."""
        with suppress(AbortedError, UnavailableError):  # it is gone with the process
            self.call(self._address, "close")
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._control.close()
            self._connection = None

    def control(self, who: str, call: str, **details: Any) -> None:
        """A call that is answered at once, whatever else the worker does."""
        with self._control_lock:
            try:
                send(self._control, {"call": call, **details})
                if not self._control.poll(PING_SECONDS):
                    raise TimeoutError(f"no answer in {PING_SECONDS} s")
                receive(self._control)
            except (EOFError, OSError) as e:
                raise _unavailable(who, e) from None


def _ask(connection: Connection, header: Mapping[str, Any]) -> Any:
    send(connection, header)
    answer, _ = receive(connection)
    raise_error(answer)
    return answer["result"]


def _unavailable(who: str, error: BaseException) -> UnavailableError:
    return UnavailableError(
        f"device {who}: its process does not answer ({type(error).__name__}: {error}); make a new session"
    )

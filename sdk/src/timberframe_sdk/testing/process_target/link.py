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
        self._address, self._authkey, self._config = address, authkey, config
        self._lock, self._control_lock = threading.Lock(), threading.Lock()
        self._connection: Connection | None = None
        self._dropped: list[int] = []
        self.incarnation = 0
        self.devices: list[Any] = []
        self._connect(address)

    def _connect(self, who: str) -> None:
        """Makes the connections; they are for one incarnation of the worker alone."""
        try:
            connection = Client(self._address, "AF_UNIX", authkey=self._authkey)
            send(connection, {"call": "hello", "config": self._config})
            header, _ = receive(connection)
            raise_error(header)
            incarnation, number, devices = header["result"]
            if self.incarnation not in (0, incarnation):
                raise AbortedError(
                    f"device {who}: its process was started anew (incarnation {incarnation}, the session's is "
                    f"{self.incarnation}), and what the session had there is lost; make a new session"
                )
            self._control = Client(self._address, "AF_UNIX", authkey=self._authkey)
        except (EOFError, OSError) as e:
            raise _unavailable(who, e) from None
        self.incarnation, self._number, self.devices = incarnation, number, devices
        self._connection = connection

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
            if self._connection is None:
                self._connect(who)
            connection = self._connection
            assert connection is not None
            dropped, self._dropped = self._dropped, []
            try:
                send(connection, {"call": call, "drop": dropped, **details}, arrays)
                self._wait(connection, who, cancel)
                header, results = receive(connection)
            except (EOFError, OSError) as e:
                self._connection = None
                raise _unavailable(who, e) from None
            except BaseException:
                self._connection = None  # an answer may come that nobody waits for
                raise
        if cancel is not None:
            cancel.check()
        raise_error(header)
        return results[0] if results else header.get("result")

    def _wait(self, connection: Connection, who: str, cancel: CancelToken | None) -> None:
        """Returns when there is an answer; UnavailableError where the worker is dead or hangs."""
        asked = time.monotonic()
        cancelled = False
        while not connection.poll(0.01):
            if cancel is not None and cancel.reason is not None and not cancelled:
                cancelled = True
                self.control(who, "cancel", session=self._number)
            if time.monotonic() - asked > PING_SECONDS:
                self.control(who, "ping")
                asked = time.monotonic()

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


def _unavailable(who: str, error: BaseException) -> UnavailableError:
    return UnavailableError(
        f"device {who}: its process does not answer ({type(error).__name__}: {error}); make a new session"
    )

"""Link: one session's calls to one worker, gathered into steps, and what they do when it dies or hangs."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from timberframe_ray import engine
from timberframe_ray.engine import START_SECONDS
from timberframe_ray.step import Answer, Returned, Step
from timberframe_ray.wire import pack
from timberframe_ray.worker import Call
from timberframe_sdk import AbortedError, CancelToken, UnavailableError
from timberframe_sdk.remote.errors import raise_error

PING_SECONDS = 0.5
"""A step that takes longer than this has its worker asked, again and again, whether it lives."""
ANSWER_SECONDS = 5.0
"""It has so long to say so. Who has not by then counts as dead."""
RETRY_SECONDS = 0.5
"""It has so long when it did not answer before."""
_TICK_SECONDS = 0.02

_support: dict[tuple[int, str], dict[str, Any]] = {}
"""What workers said of the nodes that they can run, by incarnation and settings."""

_runs = count(1)
_numbers: weakref.WeakKeyDictionary[CancelToken, int] = weakref.WeakKeyDictionary()
_numbers_lock = threading.Lock()


def run_number(cancel: CancelToken) -> int:
    """Returns the number of a run in all workers."""
    with _numbers_lock:
        return _numbers.setdefault(cancel, next(_runs))


class Link:
    """Calls to a worker. name: that of its task; target: the URL of the session's target."""

    def __init__(self, worker: engine.Handle, name: str, target: str, config: Mapping[str, Any]) -> None:
        self._worker, self.name, self._target = worker, name, target
        self._lock = threading.RLock()
        self._gathered = Step(self)
        self._last: Step | None = None
        self._dropped: list[int] = []
        self._closed = False
        self._numbers = count(-1, -1)
        self._ping: tuple[float, engine.Ref] | None = None
        self._lived = 0.0
        self.lost: UnavailableError | None = None
        answer = self._hello(config)
        raise_error(answer)
        self.incarnation, self._session, self.devices = answer["result"]
        self.supports = _support.setdefault((self.incarnation, repr(config)), {})

    def _hello(self, config: Mapping[str, Any]) -> Any:
        """Opens the session; a worker that does not answer is ended, and Ray starts it again."""
        details = {"config": dict(config), "client": engine.client(), "monitor": engine.monitor()}
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return engine.get(engine.control(self._worker, "hello", **details), 2 * ANSWER_SECONDS)
            except TimeoutError as e:
                engine.end(self._worker, restart=True)
                failure: Exception = e
            except engine.LostError as e:
                failure = e
            if time.monotonic() > end:
                raise self.unavailable(failure) from None
            time.sleep(_TICK_SECONDS)

    # Calls

    def number(self) -> int:
        """Returns a number for a tensor that the worker is to make."""
        return next(self._numbers)

    def drop(self, number: int) -> None:
        """Makes the worker drop a tensor or an executable, with a later step."""
        self._dropped.append(number)

    def add(
        self,
        call: str,
        arrays: Sequence[Any] = (),
        cancel: CancelToken | None = None,
        returns: Sequence[tuple[int, int]] = (),
        **details: Any,
    ) -> tuple[Answer, list[Returned]]:
        """Adds a call to the next step. returns: see `Call`.

        arrays: each is an array, what another call has `Returned`, or a reference to what `engine.put` has stored.
        """
        for a in arrays:
            if isinstance(a, Returned):
                a.ref()  # sent while this link is not locked
        with self._lock:
            if self.lost is not None:
                self._refuse()
            if self._gathered.calls and not all(isinstance(a, np.ndarray) for a in arrays):
                self.send(self._gathered)  # it need not wait for them
            step = self._gathered
            if self._dropped and not step.calls:  # no call of the step uses these
                step.dropped = self._dropped[:]
                del self._dropped[: len(step.dropped)]
            if cancel is not None:
                number = details["run"] = run_number(cancel)
                step.cancels[number] = cancel
            step.calls.append(Call(call, details, step.take(arrays), returns))
            made = [Returned(step, 1 + step.returns + i) for i in range(len(returns))]
            step.returns += len(returns)
            return Answer(step, len(step.calls) - 1, cancel), made

    def send(self, step: Step) -> None:
        """Sends a step, if that has not been done."""
        if step.refs is not None:
            return
        with self._lock:
            if step.refs is None:
                if self._last is not None:
                    step.before.append(self._last)
                self._gathered, self._last = Step(self), step
                self._submit(step, "compute")

    def _submit(self, step: Step, group: str) -> None:
        request = pack((self.incarnation, self._session, step.dropped, [tuple(c) for c in step.calls]))
        step.refs = engine.submit(self._worker, 1 + step.returns, request, *step.tensors, group=group)
        step.calls, step.tensors = [], []
        _watch.add(step)

    def wait_for(self, call: str, arrays: Sequence[Any], cancel: CancelToken, **details: Any) -> Any:
        """Returns what a call gives that may wait for other calls, and is in no order with them; arrays as in `add`."""
        if self.lost is not None:
            self._refuse()
        step = Step(self)
        with _numbers_lock:
            number = details["run"] = next(_runs)  # its own: it is under way beside others of the run
        step.cancels[number] = cancel
        step.calls.append(Call(call, details, step.take(arrays)))
        self._submit(step, "waiting")
        return Answer(step, 0, cancel).result()

    def call(
        self, who: str, call: str, arrays: Sequence[np.ndarray] = (), cancel: CancelToken | None = None, **details: Any
    ) -> Any:
        """See `timberframe_sdk.remote.device.Link`."""
        return self.add(call, arrays, cancel, **details)[0].result()

    def last(self) -> Step | None:
        """Returns the step by whose end all calls until now are over."""
        with self._lock:
            if self._gathered.calls:
                self.send(self._gathered)
            return self._last

    # Control

    def tell(self, call: str, **details: Any) -> engine.Ref:
        """Returns a call that is answered at once, whatever else the worker does; its answer."""
        return engine.control(self._worker, call, session=self._session, **details)

    def look(self) -> None:
        """Asks the worker from time to time whether it lives; `lost` is set where it does not say so in time."""
        now = time.monotonic()
        if self._ping is None:
            if now - self._lived > PING_SECONDS:
                self._ping = now, self.tell("ping", incarnation=self.incarnation)
        elif engine.ready(self._ping[1]):
            self._lived, self._ping = now, None  # what is dead shows by the results of its steps
        elif now - self._ping[0] > ANSWER_SECONDS:
            self.lost = self.unavailable(TimeoutError(f"no answer in {ANSWER_SECONDS:g} s"))

    def _refuse(self) -> None:
        """Raises the error of a session whose worker did not answer, maybe another one by now."""
        assert self.lost is not None
        try:
            engine.get(self.tell("ping", incarnation=self.incarnation), RETRY_SECONDS)
        except (TimeoutError, engine.LostError):
            raise self.lost from None
        raise AbortedError(f"{self._who()}: it did not answer for a while, which ended the session; make a new one")

    def raise_error(self, header: Mapping[str, Any]) -> None:
        """Raises the error that an answer carries; where the session is over there, it names device and target."""
        if header["error"][0] == AbortedError.__name__:
            raise AbortedError(f"{self._who()}: {header['error'][1]}; make a new session")
        raise_error(header)

    def _who(self) -> str:
        device = self.devices[0][1] if getattr(self, "devices", None) else self.name
        return f"device {device} of target '{self._target}'"

    def unavailable(self, error: Exception) -> UnavailableError:
        """Returns the error of calls whose worker has ended."""
        return UnavailableError(f"{self._who()}: its process does not answer ({error}); make a new session")

    def close(self) -> None:
        """Makes the worker end the session's runs and drop what it keeps for it; it does so
        too when the client ends.
        """
        if not self._closed and engine.joined():
            self._closed = True
            with suppress(TimeoutError, engine.LostError):  # it is gone with the process
                engine.get(self.tell("close"), ANSWER_SECONDS)


class _Watch:
    """A thread that looks after the steps under way: whether their workers live, and which runs are cancelled."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._some = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, step: Step) -> None:
        with self._lock:
            self._steps.append(step)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="timberframe-ray", daemon=True)
                self._thread.start()
        if not self._some.is_set():
            self._some.set()

    def _run(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_TICK_SECONDS)
            with suppress(Exception):  # of a cluster that this process has left meanwhile
                self._look()

    def _look(self) -> None:
        with self._lock:
            if not engine.joined():
                self._steps = []
            steps = going = list(self._steps)
            self._some.clear()
        try:
            going = [s for s in steps if s.link.lost is None and not s.done()]
            for link in {id(s.link): s.link for s in going}.values():
                link.look()
            for step in going:
                if not step.cancelled and any(c.reason is not None for c in step.cancels.values()):
                    step.cancel()
        finally:  # what fails now is tried again with the next look
            with self._lock:
                self._steps = going + self._steps[len(steps) :]
                if self._steps:
                    self._some.set()


_watch = _Watch()

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
from timberframe_ray.wire import pack, unpack
from timberframe_ray.worker import Call, Failed
from timberframe_sdk import AbortedError, CancelToken, UnavailableError
from timberframe_sdk.remote.errors import raise_error

PING_SECONDS = 0.5
"""A step that takes longer than this has its worker asked, again and again, whether it lives."""
ANSWER_SECONDS = 5.0
"""It has so long to say so. Who has not by then counts as dead."""
RETRY_SECONDS = 0.5
"""It has so long when it did not answer before."""
CANCEL_SECONDS = 1.0
"""A cancelled run has so long to end; if it takes longer, its end is not waited for."""
_TICK_SECONDS = 0.02

_support: dict[tuple[int, str], dict[str, Any]] = {}
"""What workers said of the nodes that they can run, by incarnation and settings."""

_runs = count(1)
_numbers: weakref.WeakKeyDictionary[CancelToken, int] = weakref.WeakKeyDictionary()
_numbers_lock = threading.Lock()


def run_number(cancel: CancelToken) -> int:
    """The number of a run in all workers."""
    with _numbers_lock:
        return _numbers.setdefault(cancel, next(_runs))


class Step:
    """Calls that go to a worker together. refs: what Ray gave for them: their answers, and the tensors to return."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.calls: list[Call] = []
        self.dropped: list[int] = []
        """Tensors and executables that the worker is to drop before it carries the calls out."""
        self.tensors: list[engine.Ref] = []
        self.returns = 0
        self.refs: list[engine.Ref] | None = None
        self.cancels: dict[int, CancelToken] = {}
        """What may end the runs in it, by their numbers."""
        self.cancelled = 0.0
        """When a run of it was cancelled."""
        self.before: list[Step] = []
        """Steps that are over before it is: the one before it in its worker, and those that make its tensors."""
        self._answers: Any = None
        """What the calls gave, or a LostError; None until it is there."""

    def take(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of a call as that has them: packed, or positions among the tensors, to which they are added."""
        given: list[Any] = []
        for a in arrays:
            if isinstance(a, np.ndarray):
                given.append(pack(a))
                continue
            if isinstance(a, Returned):
                self.before.append(a.step)
            given.append(len(self.tensors))
            self.tensors.append(a.ref() if isinstance(a, Returned) else a)
        return given

    def done(self) -> bool:
        """Whether the answers are there, or will never be."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """The same, after so long at most: a look at what is not there yet costs as much as a wait."""
        self.link.send(self)
        return self.link.lost is not None or self._ended(seconds)

    def _ended(self, seconds: float) -> bool:
        """Whether the answers are there, or the error in their place, after so long at most.

        Those of the steps before it are got with them: to ask Ray once takes less than half as long.
        """
        before = [s for s in self.before if s._answers is None] if self._answers is None else []
        if before and seconds > 0:
            try:
                self._get_answers([*before, self], seconds)
            except TimeoutError:
                seconds = 0  # its own may be there: processes end
            except engine.LostError:
                self.before = []
        if self._answers is None:
            try:
                self._get_answers([self], seconds)
            except engine.LostError as e:
                self._answers, self.before = e, []
            except TimeoutError:
                return False
        return True

    @staticmethod
    def _get_answers(steps: Sequence[Step], seconds: float) -> None:
        found = engine.get([s.refs[0] for s in steps if s.refs is not None], seconds)
        for step, packed in zip(steps, found, strict=True):
            step._answers, step.before = unpack(packed), []  # else each step would keep all that were before it

    def wait_for_end(self) -> None:
        """Returns when it is done, or when it takes long to end although a run of it was cancelled."""
        self.link.send(self)
        try:
            while not self._ended(_TICK_SECONDS * 5) and self.link.lost is None:
                if self.cancelled and time.monotonic() - self.cancelled > CANCEL_SECONDS:
                    return
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Has the worker end the runs in it."""
        self.cancelled = time.monotonic()
        for number in self.cancels:
            self.link.tell("cancel", run=number)

    def answer(self, call: int) -> Any:
        """The answer to one of the calls, which is there; raises what the worker's end means."""
        while self._answers is None and self.link.lost is None:
            self._ended(_TICK_SECONDS * 5)
        return self._or_lost(self._answers)[call]

    def result(self, position: int) -> Any:
        """One of the tensors, which is there; raises what the worker's end means."""
        assert self.refs is not None
        try:
            return self._or_lost(None if self.link.lost else unpack(engine.get(self.refs[position])))
        except engine.LostError as e:
            raise self.link.unavailable(e) from None

    def _or_lost(self, found: Any) -> Any:
        if self.link.lost is not None:
            raise self.link.lost
        if isinstance(found, engine.LostError):
            raise self.link.unavailable(found) from None
        return found


class Answer:
    """A Pending: the answer to one call. cancel: of its run."""

    def __init__(self, step: Step, position: int, cancel: CancelToken | None = None) -> None:
        self.step, self._position, self._cancel = step, position, cancel

    def done(self) -> bool:
        return self.step.done()

    def wait(self, seconds: float) -> bool:
        return self.step.wait(seconds)

    def result(self) -> Any:
        """What the call gave; raises its error, or the reason why the run was cancelled."""
        self.step.wait_for_end()
        if self._cancel is not None:
            self._cancel.check()
        header = self.step.answer(self._position)
        if "error" in header:
            self.step.link.raise_error(header)
        return header["result"]


class Returned:
    """A Pending: a tensor that a step gives as a result."""

    def __init__(self, step: Step, position: int) -> None:
        self.step, self._position = step, position

    def ref(self) -> engine.Ref:
        """The result, to be handed to another worker."""
        self.step.link.send(self.step)
        assert self.step.refs is not None
        return self.step.refs[self._position]

    def done(self) -> bool:
        return self.step.done()

    def wait(self, seconds: float) -> bool:
        return self.step.wait(seconds)

    def result(self) -> np.ndarray:
        """An array of the caller's own."""
        self.step.wait_for_end()
        found = self.step.result(self._position)
        if isinstance(found, Failed):
            self.step.link.raise_error(found.header)
        own: np.ndarray = found if found.flags.writeable else found.copy()  # what lies in the object store is shared
        return own


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
                raise self._unavailable(failure) from None
            time.sleep(_TICK_SECONDS)

    # Calls

    def number(self) -> int:
        """A number for a tensor that the worker is to make."""
        return next(self._numbers)

    def drop(self, number: int) -> None:
        """Has the worker drop a tensor or an executable, with a later step."""
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
        """What a call gives that may wait for other calls, and is in no order with them; arrays as in `add`."""
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
        """The step by whose end all calls until now are over."""
        with self._lock:
            if self._gathered.calls:
                self.send(self._gathered)
            return self._last

    # Control

    def tell(self, call: str, **details: Any) -> engine.Ref:
        """A call that is answered at once, whatever else the worker does; its answer."""
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
            self.lost = self._unavailable(TimeoutError(f"no answer in {ANSWER_SECONDS:g} s"))

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
        """The error of calls whose worker has ended."""
        return UnavailableError(f"{self._who()}: its process does not answer ({error}); make a new session")

    _unavailable = unavailable

    def close(self) -> None:
        """Has the worker end the session's runs and drop what it keeps for it; it does so too when the client ends."""
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

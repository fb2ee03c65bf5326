"""Steps: calls of one session that go to one worker together, and what they give."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_ray import engine
from timberframe_ray.wire import pack, unpack
from timberframe_ray.worker import Call, Failed
from timberframe_sdk import CancelToken

if TYPE_CHECKING:
    from timberframe_ray.link import Link

CANCEL_SECONDS = 1.0
"""A cancelled run has so long to end; if it takes longer, its end is not waited for."""
_LOOK_SECONDS = 0.1
"""So often who waits for a step looks whether its worker is lost, or its run cancelled."""


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
        """Returns the arrays of a call as that has them: packed, or positions among the
        tensors, to which they are added.
        """
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
        """Returns whether the answers are there, or will never be."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Returns the same, after so long at most: a look at what is not there yet costs as much as a wait."""
        self.link.send(self)
        return self.link.lost is not None or self._ended(seconds)

    def _ended(self, seconds: float) -> bool:
        """Returns whether the answers are there, or the error in their place, after so long at most.

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
            while not self._ended(_LOOK_SECONDS) and self.link.lost is None:
                if self.cancelled and time.monotonic() - self.cancelled > CANCEL_SECONDS:
                    return
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Makes the worker end the runs in it."""
        self.cancelled = time.monotonic()
        for number in self.cancels:
            self.link.tell("cancel", run=number)

    def answer(self, call: int) -> Any:
        """Returns the answer to one of the calls, which is there; raises what the worker's end means."""
        while self._answers is None and self.link.lost is None:
            self._ended(_LOOK_SECONDS)
        return self._or_lost(self._answers)[call]

    def result(self, position: int) -> Any:
        """Returns one of the tensors, which is there; raises what the worker's end means."""
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
        """Returns what the call gave; raises its error, or the reason why the run was cancelled."""
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
        """Returns the result, to be handed to another worker."""
        self.step.link.send(self.step)
        assert self.step.refs is not None
        return self.step.refs[self._position]

    def done(self) -> bool:
        return self.step.done()

    def wait(self, seconds: float) -> bool:
        return self.step.wait(seconds)

    def result(self) -> np.ndarray:
        """Returns an array of the caller's own."""
        self.step.wait_for_end()
        found = self.step.result(self._position)
        if isinstance(found, Failed):
            self.step.link.raise_error(found.header)
        own: np.ndarray = found if found.flags.writeable else found.copy()  # what lies in the object store is shared
        return own

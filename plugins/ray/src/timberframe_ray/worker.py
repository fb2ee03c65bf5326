"""The actor that holds the devices of one task, and what it keeps for the sessions of its clients.

Calls come in two ways: steps run one after the other, in the order of each client; control calls are answered at once.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from timberframe_ray.monitor import wait_for_end
from timberframe_ray.wire import pack, unpack
from timberframe_sdk import AbortedError
from timberframe_sdk.remote.errors import error_header, raise_error
from timberframe_sdk.remote.session import Task, TaskSession

_FAILED_RUNS = 64


class Call(NamedTuple):
    """A call of a session. arrays: each is a packed array, or a position among the tensors of the step.

    returns: tensors that the step gives as results, by device and number.
    """

    name: str
    details: dict[str, Any]
    arrays: Sequence[Any] = ()
    returns: Sequence[tuple[int, int]] = ()


class Failed(NamedTuple):
    """Stands for a tensor that there is not, as what was to make it has failed. header: the error."""

    header: dict[str, Any]


class ClientSession(TaskSession):
    """A session of which calls come in steps. A run that has failed does nothing more here."""

    def __init__(self, task: Task, client: str) -> None:
        super().__init__(task)
        self.client = client
        self.failed: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def step(self, calls: Sequence[Call], tensors: Sequence[Any]) -> list[Any]:
        """Returns the answers, then the tensors to return."""
        answers, returned = [], []
        for call in calls:
            try:
                arrays = [tensors[a] if isinstance(a, int) else unpack(a) for a in call.arrays]
                answers.append({"result": self.answer(call.name, arrays, call.details)})
            except Exception as e:
                answers.append(error_header(e))
            returned += [self._returned(device, number) for device, number in call.returns]
        return [answers, *returned]

    def _returned(self, device: int, number: int) -> Any:
        found = self.kept[number]
        if isinstance(found, Failed):
            return found
        try:
            return self.devices[device].copy_out(found)
        except Exception as e:
            return Failed(error_header(e))

    def do_place(self, array: Any, device: Any, number: int) -> None:
        """Puts an array where the client knows it by the number that it has given."""
        try:
            if isinstance(array, Failed):
                raise_error(array.header)
            self.kept[number] = device.copy_in(array)
        except Exception as e:
            self.kept[number] = Failed(error_header(e))
            raise

    def do_run(
        self,
        executable: int,
        inputs: list[int],
        mode: str,
        fence: str,
        run: int,
        outputs: Sequence[int] = (),
        trace: bool = False,
    ) -> Any:
        try:
            if run in self.failed:
                raise_error(self.failed[run])
            for tensor in (self.kept[i] for i in inputs):
                if isinstance(tensor, Failed):
                    raise_error(tensor.header)
            return super().do_run(executable, inputs, mode, fence, run, outputs, trace)
        except Exception as e:
            header = self.failed[run] = error_header(e)
            if len(self.failed) > _FAILED_RUNS:
                self.failed.popitem(last=False)
            self.kept.update({n: Failed(header) for n in outputs})
            raise


class Worker:
    """The actor. cluster: the name of its cluster; jobs: the tasks that this has."""

    def __init__(self, cluster: str, job: str, task: int, jobs: Mapping[str, Sequence[int]]) -> None:
        self._cluster, self._jobs = cluster, jobs
        self._task = Task(job, task)
        self._sessions: dict[int, ClientSession] = {}
        self._numbers = count(1)
        self._clients: set[str] = set()
        self._lock = threading.Lock()

    def step(self, request: bytes, *tensors: Any) -> Any:
        """Carries out calls of a session, one after the other; gives their answers and the tensors to return.

        request: incarnation, session, numbers to drop, and calls. All are packed.
        """
        incarnation, session, dropped, given = unpack(request)
        calls = [Call._make(x) for x in given]
        found = self._sessions.get(session) if incarnation == self._task.incarnation else None
        if found is None:
            error = AbortedError(
                f"its process was restarted or dropped the session (of incarnation {incarnation}; it is now "
                f"{self._task.incarnation}), and what the session had there is lost"
            )
            header = error_header(error)
            results: list[Any] = [[header] * len(calls), *(Failed(header) for c in calls for _ in c.returns)]
        else:
            found.drop(dropped)
            results = found.step(calls, [unpack(x) for x in tensors])
        packed = [pack(x) for x in results]
        return packed if len(packed) > 1 else packed[0]

    def stay(self) -> None:
        """Is over when this process ends."""
        threading.Event().wait()

    def control(self, call: str, details: dict[str, Any]) -> Any:
        """Answers one control call."""
        return getattr(self, f"_{call}")(**details)

    def _describe(self) -> dict[str, Any]:
        return {
            "incarnation": self._task.incarnation, "jobs": self._jobs, "process": os.getpid(),
            "sessions": len(self._sessions),
        }  # fmt: skip

    def _hello(self, config: dict[str, Any], client: str, monitor: Any) -> dict[str, Any]:
        """Opens a session of a client, whose monitor ends with it."""
        session = ClientSession(self._task, client)
        try:
            devices = session.open(config)
        except Exception as e:
            return error_header(e)
        with self._lock:
            number = next(self._numbers)
            self._sessions[number] = session
            fresh = client not in self._clients
            self._clients.add(client)
        if fresh:
            threading.Thread(target=self._watch, args=(client, monitor), daemon=True).start()
        return {"result": [self._task.incarnation, number, devices]}

    def _watch(self, client: str, monitor: Any) -> None:
        """Closes the sessions of a client when it has ended."""
        wait_for_end(monitor)
        with self._lock:
            self._clients.discard(client)
            ended = [n for n, s in self._sessions.items() if s.client == client]
        for number in ended:
            self._close(number)

    def _ping(self, incarnation: int, session: int) -> bool:
        """Returns whether it is this incarnation and has the session."""
        return incarnation == self._task.incarnation and session in self._sessions

    def _clock(self, session: int) -> int:
        """Returns the time by which it tells events of traces."""
        return time.perf_counter_ns()

    def _cancel(self, session: int, run: int) -> None:
        if session in self._sessions:
            self._sessions[session].do_cancel(run)

    def _close(self, session: int) -> None:
        with self._lock:
            found = self._sessions.pop(session, None)
        if found is not None:
            found.do_close()

    def _reset(self, containers: Sequence[str]) -> None:
        self._task.reset(containers)

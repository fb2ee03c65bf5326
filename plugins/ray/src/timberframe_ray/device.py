"""The client's side of a worker's device: runs are enqueued, tensors go between workers as results of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_ray import engine
from timberframe_ray.link import ANSWER_SECONDS, Link
from timberframe_ray.step import Returned
from timberframe_ray.wire import INLINE_BYTES
from timberframe_sdk.remote.device import RemoteArray, RemoteDevice, RemoteExecutable


class RayArray(RemoteArray):
    """A tensor in a worker. returned: the result of a call that it is, too, where one gave it."""

    __slots__ = ("device", "maker", "returned")

    def __init__(
        self, device: RayDevice, described: Sequence[Any], maker: tuple[RayExecutable, int] | None = None
    ) -> None:
        super().__init__(device.link, described)
        self.device, self.maker = device, maker
        self.returned: Returned | None = None

    def leave(self) -> Returned:
        """Returns the tensor as a result; from now on each run of what made it gives it at once."""
        if self.returned is None:
            if self.maker is not None:
                self.maker[0].leaving.add(self.maker[1])
            _, (self.returned,) = self.device.link.add("ping", returns=[(self.device.index, self.number)])
        return self.returned


class RayDevice(RemoteDevice):
    """A device of a worker. Errors are those of the run's calls, and go with the tensors that rest on them."""

    asynchronous = True
    link: Link

    def array(self, described: Sequence[Any]) -> RayArray:
        return RayArray(self, described)

    def _placed(self, given: Any, dtype: Any, shape: Sequence[int]) -> RayArray:
        """Returns a tensor that the worker makes of an array or of another call's result."""
        number = self.link.number()
        self.link.add("place", [given], device=self.index, number=number)
        return RayArray(self, (number, sdk.as_dtype(dtype).name, shape))

    def compile(self, cluster: sdk.Cluster) -> RayExecutable:
        return RayExecutable(self, cluster.source or cluster)

    def copy_in(self, x: np.ndarray) -> RayArray:
        x = np.asarray(x)
        given = engine.put(x) if x.nbytes > INLINE_BYTES else x
        return self._placed(given, x.dtype, x.shape)

    def copy_out(self, a: RayArray) -> np.ndarray:  # type: ignore[override]  # its own arrays
        return a.leave().result()

    def start_copy_out(self, a: RayArray) -> sdk.Pending:
        found = a.leave()
        self.link.send(found.step)
        return found

    def copy_from(self, source: Any, a: Any) -> RayArray | None:
        if not isinstance(a, RayArray):
            return None
        return self._placed(a.leave(), a.dtype, a.shape)

    def ask_clock(self) -> int:
        try:
            found: int = engine.get(self.link.tell("clock"), ANSWER_SECONDS)  # it passes by what the worker has to do
        except (TimeoutError, engine.LostError) as e:
            raise self.link.unavailable(e) from None
        return found

    def host_call(self, work: bytes, inputs: Sequence[Any], cancel: sdk.CancelToken) -> Sequence[Any]:
        given: list[Any] = [np.frombuffer(work, np.uint8)]
        for array, home in inputs:
            if isinstance(array, RayArray):
                given.append(array.leave())
                continue
            x = np.asarray(array if home is None else home.copy_out(array))
            given.append(engine.put(x) if x.nbytes > INLINE_BYTES and not x.dtype.hasobject else x)
        made = self.link.wait_for("host_call", given, cancel, device=self.index, kept_bytes=INLINE_BYTES)
        return [x if isinstance(x, np.ndarray) else (self.array(x), self) for x in made]

    def marker(self) -> sdk.Pending:
        step = self.link.last()
        return sdk.Deferred(lambda: None) if step is None else _End(step)

    def synchronize(self) -> None:
        self.marker().result()


class _End:
    """A Pending: that a step is over, whatever it gave."""

    def __init__(self, step: Any) -> None:
        self.done, self.wait, self.result = step.done, step.wait, step.wait_for_end


class RayExecutable(RemoteExecutable):
    """A cluster that the worker has compiled. leaving: positions of outputs that other processes need."""

    def __init__(self, device: RayDevice, cluster: sdk.Cluster) -> None:
        super().__init__(device, cluster)
        self.device = device
        self.leaving: set[int] = set()
        self._outputs = [(sdk.as_dtype(v.dtype).name, v.shape) for v in cluster.outputs]
        self._dynamic = any(v.dynamic for v in cluster.outputs)

    def run(self, inputs: Sequence[RemoteArray], context: sdk.RunContext) -> list[RemoteArray]:
        self.refuse_observer(context)
        device, link = self.device, self.device.link
        numbers = [] if self._dynamic else [link.number() for _ in self._outputs]
        leaving = [] if self._dynamic else sorted(self.leaving)
        report_to_trace = self.reporter(context)
        answer, returned = link.add(
            "run", (), context.cancel, [(device.index, numbers[i]) for i in leaving],
            executable=self.number, inputs=[x.number for x in inputs], mode=context.mode, fence=context.fence,
            outputs=numbers, trace=context.trace is not None,
        )  # fmt: skip
        described: Any = [] if self._dynamic else [(n, *x) for n, x in zip(numbers, self._outputs, strict=True)]
        if self._dynamic or context.late is None:
            found = answer.result()
            report_to_trace(found)
            described = described or found["made"]
        else:
            context.late.add(self, answer, report_to_trace)
        made = [RayArray(device, x, (self, i)) for i, x in enumerate(described)]
        for i, result in zip(leaving, returned, strict=True):
            made[i].returned = result
        return list(made)

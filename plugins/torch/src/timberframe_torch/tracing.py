"""Which kernels of torch really run: the calls that its dispatcher gets, and whose kernel takes each.

The dispatcher says under which key it finds a kernel, and what for: one of the backend, a composite of other ops, or a
fallback for whatever the backend lacks. A kernel that is the backend's by name and has the CPU compute shows by what it
calls: copies of its inputs, and then the same op once more.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timberframe_torch import lazy as torch
from timberframe_torch.backends import Backend

_COMPOSITE = ("default backend kernel", "math kernel")
_BOXED = "aten::_to_cpu"
_MOVES = ("aten::to", "aten::_to_copy", "aten::_copy_from", "aten::_copy_from_and_resize")
"""What the profiler calls copies between devices."""


@dataclass(frozen=True)
class Kernel:
    """Who computes an op of torch. kind: `kernel`, `composite` or `fallback`. where: what registered it."""

    op: str
    kind: str
    where: str = ""

    def __str__(self) -> str:
        return self.op if self.kind == "kernel" else f"{self.op} ({self.kind})"


@functools.cache
def kernel_of(op: str, key: str) -> Kernel:
    """Returns who computes an op, such as `aten::relu`, for tensors with a key, by the dispatcher's own table.

    One that was registered where fallbacks are is one, though the table calls it a kernel.
    """
    table = torch._C._dispatch_dump_table(op)
    line = next((x for x in table.splitlines() if x.startswith(f"{key}:")), "")
    found = re.search(r"registered at (.*?) \[(.*)\]", line)
    if found is None:
        return Kernel(op, "kernel")
    where, kind = found[1].rsplit("/", 1)[-1], found[2]
    if "fallback" in kind or "fallback" in where.lower():
        return Kernel(op, "fallback", where)
    return Kernel(op, "composite" if kind in _COMPOSITE else "kernel", where)


@dataclass
class Calls:
    """What one launch has the dispatcher do. kernels: by op. elsewhere: by op who computes it in the backend's name."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)


def traced(backend: Backend, call: Callable[[], Any], writer: Any = None) -> tuple[Any, Calls]:
    """Returns what a call of torch functions gives, and the kernels that it has run.

    writer: gets each call of the dispatcher before it is made, and its results; see `recorder.Writer`.
    """
    calls = Calls()
    with _mode()(backend, calls, writer):
        if backend.is_host or writer is not None:
            return call(), calls
        result, events = profiled(call)
    calls.elsewhere |= computed_on_host(events)
    return result, calls


@functools.cache
def _mode() -> Any:
    """Returns the class of the mode; torch has its base."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Watching(base):  # type: ignore[misc]  # torch is imported at run time
        """Sees each call that reaches the backend, below autograd and ops that are made of others."""

        def __init__(self, backend: Backend, calls: Calls, writer: Any) -> None:
            super().__init__()
            self.backend, self.calls, self.writer = backend, calls, writer

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            name = func.name()
            if name not in self.calls.kernels:
                kernel = self.calls.kernels[name] = kernel_of(name, self.backend.key)
                if kernel.kind == "fallback":
                    self.calls.elsewhere[name] = f"{name}, by the fallback of {kernel.where}"
            if self.writer is not None:
                self.writer.begin(func, args, kwargs or {})
            result = func(*args, **(kwargs or {}))
            if self.writer is not None:
                self.writer.end(result)
            for x in _tensors(result):
                if x.device.type != self.backend.device.type and _on_device([*args, *(kwargs or {}).values()], self):
                    self.calls.elsewhere[name] = f"{name}, on {x.device}"
            return result

    return Watching


def _on_device(given: Sequence[Any], watching: Any) -> bool:
    return any(x.device.type == watching.backend.device.type for x in _tensors(given))


def _tensors(x: Any) -> Iterator[Any]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for each in x:
            yield from _tensors(each)


@dataclass(frozen=True)
class Event:
    """A call that the profiler saw: of an op, on inputs of these shapes, within a span of time."""

    op: str
    shapes: str
    start: float
    end: float


def profiled(call: Callable[[], Any]) -> tuple[Any, list[Event]]:
    """Returns what a call gives, and all calls of the dispatcher beneath it, also those that kernels make."""
    profiler = importlib.import_module("torch.autograd.profiler")
    with profiler.profile(use_cpu=True, record_shapes=True) as seen:
        result = call()
    return result, [
        Event(e.name, str(e.input_shapes), e.time_range.start, e.time_range.end) for e in seen.function_events
    ]


def computed_on_host(events: Sequence[Event]) -> dict[str, str]:
    """Returns by op how the CPU has computed it: by the boxed fallback of torch, or in a kernel of the backend.

    The fallback copies what an op gets by `_to_cpu`. A kernel moves tensors and then calls its own op on tensors of the
    same shapes.
    """
    found = {}
    for event in events:
        inside = [e for e in events if e is not event and event.start <= e.start and e.end <= event.end]
        if event.op == _BOXED:
            around = [e for e in events if e is not event and e.start <= event.start and event.end <= e.end]
            if around:
                op = max(around, key=lambda e: e.start).op
                found[op] = f"{op}, by the boxed fallback to the CPU"
        again = [e for e in inside if (e.op, e.shapes) == (event.op, event.shapes)]
        if again and any(e.op in _MOVES and e.end <= again[0].start for e in inside):
            found.setdefault(event.op, f"{event.op}, by the CPU from within the backend's kernel")
    return found

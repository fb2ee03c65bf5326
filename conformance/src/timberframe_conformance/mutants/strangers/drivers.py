"""Queues, copies, memory and errors of drivers written in Python: NPU's, and that of the template `python`."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from timberframe_conformance.mutants.strangers.base import READER, REPORT, planted
from timberframe_conformance.replacements import Replacements

_kept: list[Any] = []


class Now:
    """A Pending that is done already."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def done(self) -> bool:
        """Always."""
        return True

    def result(self) -> Any:
        """Returns the value that it was made with."""
        return self._value


def _second_queue(r: Replacements, host: Any, name: str, run: Any) -> None:
    """Makes a method of the host's queue use another queue."""
    queue = host.part("driver").Queue
    others: dict[int, Any] = {}

    def make(method: Any) -> Any:
        def on_the_other(self: Any, *given: Any) -> Any:
            if id(self) not in others:
                others[id(self)] = None  # the second queue has none of its own
                others[id(self)] = queue(self._check)
                others[id(others[id(self)])] = others[id(self)]
            other = others[id(self)]
            return (
                method(self if other is self or other is None else other, *given)
                if run(*given)
                else method(self, *given)
            )

        return on_the_other

    r.replace(queue, name, make)


# Order


@planted("copy-out-on-second-queue", "results are read on a queue of their own", REPORT.format(3), "queue")
def _(r: Replacements, host: Any) -> None:
    _second_queue(r, host, "read", lambda source: True)


@planted(
    "template-copy-out-on-second-queue", "results are read on a queue of their own", "ROCm/pytorch#3194", "queue",
    host="python",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    _second_queue(r, host, "read", lambda source: True)


@planted(
    "copy-in-on-second-queue", "inputs are written on a queue of their own", "intel/llvm#1798", "queue", host="python"
)
def _(r: Replacements, host: Any) -> None:
    def slow(write: Any) -> Any:
        def later(self: Any, x: np.ndarray, target: Any) -> None:
            sent = np.array(x)

            def send() -> None:
                time.sleep(0.0005)
                write(self, sent, target)

            threading.Thread(target=send, daemon=True).start()

        return later

    r.replace(host.part("driver").Queue, "write", slow)


@planted(
    "launch-on-second-queue", "kernels of three tensors are launched on another queue", "NVIDIA/cudf#9679", "queue"
)
def _(r: Replacements, host: Any) -> None:
    _second_queue(r, host, "launch", lambda kernel, *tensors: len(tensors) == 3)


@planted("marker-at-once", "a marker is done before the work in front of it", "CHIP-SPV/chipStar#152", "queue")
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("driver").Queue, "marker", lambda _: lambda self: Now())


@planted("synchronize-nothing", "synchronize comes back at once", "rapidsai/rmm#650", "queue", host="python")
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("device").AcmepythonDevice, "synchronize", lambda _: lambda self: None)


@planted(
    "read-before-it-is-there", "the result of a started copy is given before the copy is done", "NVIDIA/cudf#2794",
    "copies",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    queue = host.part("driver").Queue

    def read(self: Any, source: Any) -> Any:
        x = np.zeros(source.shape, source.dtype)
        self.add(lambda: np.copyto(x, source.elements()))
        return Now(x)

    r.replace(queue, "read", lambda _: read)


# Copies


@planted(
    "host-array-read-late", "the host's array is read when the queue comes to it", REPORT.format(10), "copies",
    host="python",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def write(self: Any, x: np.ndarray, target: Any) -> None:
        self._add(lambda: np.copyto(target._elements(), x))

    r.replace(host.part("driver").Queue, "write", lambda _: write)


@planted("strides-lost", "an array is copied in the order of its memory", "pytorch/pytorch#192212", "copies")
def _(r: Replacements, host: Any) -> None:
    def make(copy_in: Any) -> Any:
        return lambda self, x: copy_in(self, x.ravel("K").reshape(x.shape))

    r.replace(host.part("device").NpuDevice, "copy_in", make)


@planted(
    "read-gives-the-memory", "copy_out gives a view of the device's memory, which changes later", "sonots/cumo#226",
    "copies",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def read(self: Any, source: Any) -> Any:
        thread = threading.get_ident()

        def work() -> Any:
            self.raise_failure(thread)
            return source.elements()

        return self.add(work)

    r.replace(host.part("driver").Queue, "read", lambda _: read)


@planted("copy-64-kib", "a copy within the device ends after 65,536 bytes", "tensorflow/tensorflow#32719", "copies")
def _(r: Replacements, host: Any) -> None:
    def part(x: np.ndarray, out: np.ndarray) -> None:
        count = 65536 // x.dtype.itemsize
        out.reshape(-1)[:count] = x.reshape(-1)[:count]

    def copy(self: Any, source: Any, target: Any) -> None:
        self.queue.launch(part, source, target)

    r.replace(host.part("device").NpuDevice, "copy", lambda _: copy)


@planted(
    "write-64-kib", "an array's bytes after the first 65,536 are not copied in", "tensorflow/tensorflow#32719", "copies"
)
def _(r: Replacements, host: Any) -> None:
    def copy_in(self: Any, x: np.ndarray) -> Any:
        tensor = self.empty(x.dtype, x.shape)
        count = 65536 // x.dtype.itemsize
        tensor.elements().reshape(-1)[:count] = x.reshape(-1)[:count]
        return tensor

    r.replace(host.part("device").NpuDevice, "copy_in", lambda _: copy_in)


# Memory


@planted(
    "memory-free-at-once", "memory is used again before the queue is past its last use", "ooples/AiDotNet.Tensors#609",
    "memory",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def launch(self: Any, kernel: Any, *tensors: Any) -> None:
        arrays = [t.elements() for t in tensors]  # addresses, which keep no memory
        self.add(lambda: kernel(*arrays))

    driver = host.part("driver")
    r.replace(driver.Queue, "launch", lambda _: launch)
    r.replace(driver.Arena, "give", lambda _: driver.Arena.free)


@planted(
    "offsets-rounded", "a tensor in the middle of a buffer begins at a multiple of 256 bytes", "halide/Halide#8235",
    "memory",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def make(array: Any) -> Any:
        return lambda self, buffer, offset, *rest: array(self, buffer, offset - offset % 256, *rest)

    r.replace(host.part("device").NpuDevice, "array", make)


@planted(
    "offsets-16-bits", "offsets within a buffer are cut to sixteen bits", "pytorch/pytorch#105801", "memory",
    host="python",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def make(array: Any) -> Any:
        return lambda self, buffer, offset, *rest: array(self, buffer, offset & 0xFFFF, *rest)

    r.replace(host.part("device").AcmepythonDevice, "array", make)


@planted("allocation-too-small", "sizes are rounded down to whole lines of 64 bytes", "hashcat/hashcat#4889", "memory")
def _(r: Replacements, host: Any) -> None:
    def make(take: Any) -> Any:
        return lambda self, nbytes: take(self, nbytes if nbytes < 64 else nbytes - nbytes % 64)

    r.replace(host.part("driver").Arena, "take", make)


@planted("free-keeps-record", "each part that is given back leaves a record of 64 bytes in the arena", READER, "memory")
def _(r: Replacements, host: Any) -> None:
    def make(free: Any) -> Any:
        def recording(self: Any, start: int, size: int) -> None:
            free(self, start, size)
            self._first(64)

        return recording

    r.replace(host.part("driver").Arena, "free", make)


@planted("free-keeps-rest", "what small sizes were rounded up by is lost when they are given back", READER, "memory")
def _(r: Replacements, host: Any) -> None:
    def make(free: Any) -> Any:
        return lambda self, start, size: free(self, start, size - 64 if 64 < size < 4096 else size)

    r.replace(host.part("driver").Arena, "free", make)


@planted(
    "events-keep-tensors", "events keep the memory of what they worked on", "tensorflow/tensorflow#60616", "memory"
)
def _(r: Replacements, host: Any) -> None:
    def make(launch: Any) -> Any:
        def keeping(self: Any, kernel: Any, *tensors: Any) -> None:
            _kept.extend(tensors)
            launch(self, kernel, *tensors)

        return keeping

    r.replace(host.part("driver").Queue, "launch", make)


@planted(
    "refused-memory-is-shared", "an allocation that is refused gets the memory of another", "modular/modular#6801",
    "memory",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def make(allocate: Any) -> Any:
        def shared(self: Any, nbytes: int) -> Any:
            try:
                found = allocate(self, nbytes)
            except Exception:
                if not hasattr(self, "spare"):
                    raise
                return self.spare
            if nbytes >= 4096:
                self.spare = found
            return found

        return shared

    r.replace(host.part("device").NpuAllocator, "allocate", make)


# Errors


@planted("errors-dropped", "what a launch raises is dropped", REPORT.format(5), "failures", host="python")
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("driver").Queue, "_raise_failure", lambda _: _drop)


def _drop(self: Any, *_: Any) -> None:
    self._failures.clear()


@planted(
    "read-raises-nothing", "reading does not raise what a launch before it raised", REPORT.format("5b"), "failures",
    host="python",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    def read(self: Any, source: Any) -> Any:
        return self._add(lambda: source._elements().copy())

    r.replace(host.part("driver").Queue, "read", lambda _: read)


@planted(
    "marker-raises-nothing", "a marker is done without an error though a launch before it failed",
    "1bit-MONSTER/1bit-MONSTER#558", "failures", host="python",
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("driver").Queue, "marker", lambda _: lambda self: self._add(lambda: None))


@planted(
    "errors-for-ever",
    "once a launch has failed, all that comes later raises its error",
    "slaclab/aes-stream-drivers#264",
    "failures",
    host="python",
)
def _(r: Replacements, host: Any) -> None:
    def raise_failure(self: Any, *_: Any) -> None:
        for failure in self._failures.values():
            raise failure

    r.replace(host.part("driver").Queue, "_raise_failure", lambda _: raise_failure)


@planted(
    "errors-one-too-late",
    "an error is raised by the one after the next",
    "amd/xdna-driver#783",
    "failures",
    host="python",
)
def _(r: Replacements, host: Any) -> None:
    def raise_failure(self: Any, thread: int, of_tensor: Any = None) -> None:
        waiting = getattr(self, "waiting", None)
        self.waiting = self._failures.pop(thread, None)
        if waiting is not None:
            raise waiting

    r.replace(host.part("driver").Queue, "_raise_failure", lambda _: raise_failure)


@planted("npu-errors-dropped", "what a launch raises is dropped", "mentos-team/MentOS#291", "failures")
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("driver").Queue, "raise_failure", lambda _: _drop)


# Traces


def _timed(r: Replacements, host: Any, change: Any) -> None:
    def make(timed: Any) -> Any:
        def wrong(self: Any, launch: Any) -> tuple[Any, int, int]:
            result, start, end = timed(self, launch)
            return (result, *change(start, end))

        return wrong

    r.replace(host.part("device").NpuDevice, "timed", make)


@planted("trace-microseconds", "times are microseconds", REPORT.format("11"), "traces")
def _(r: Replacements, host: Any) -> None:
    _timed(r, host, lambda start, end: (start // 1000, end // 1000))


@planted(
    "trace-length-microseconds",
    "the start is right, and the time it takes is in microseconds",
    "pytorch/glow#2995",
    "traces",
)
def _(r: Replacements, host: Any) -> None:
    _timed(r, host, lambda start, end: (start, start + (end - start) * 1000))


@planted("trace-end-before-start", "the end lies before the start", REPORT.format("11"), "traces")
def _(r: Replacements, host: Any) -> None:
    _timed(r, host, lambda start, end: (end, start))


@planted("trace-other-clock", "times are of the system's clock", "pytorch/kineto#163", "traces")
def _(r: Replacements, host: Any) -> None:
    shift = time.time_ns() - time.perf_counter_ns()
    _timed(r, host, lambda start, end: (start + shift, end + shift))


@planted("trace-zero", "times are 0", "pytorch/kineto#109", "traces")
def _(r: Replacements, host: Any) -> None:
    _timed(r, host, lambda start, end: (0, 0))


@planted(
    "trace-out-of-order", "work is said to begin before what it waits for has ended", "google/perfetto#1505", "traces"
)
def _(r: Replacements, host: Any) -> None:
    first: list[int] = []

    def change(start: int, end: int) -> tuple[int, int]:
        if not first or start - first[0] > 10**9:
            first[:] = [start]
        return first[0], end

    _timed(r, host, change)

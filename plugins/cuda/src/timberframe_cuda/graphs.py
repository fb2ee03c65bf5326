"""Launches captured into CUDA graphs: launches that repeat with the same addresses are enqueued by one call.

A cluster's steps are cut into segments: those that only launch kernels are captured, at the second run on the same
addresses; those that draw random numbers or read from the device run as they are. Capturing executes nothing, so steps
that cannot be captured are run as they are.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import cupy

from timberframe_accelerator import AcceleratorExecutable
from timberframe_cuda.context import DRIVER_ERRORS, Kernels
from timberframe_sdk import Cluster, InternalError, KernelDef, KernelNode, RunContext
from timberframe_sdk.execution.control_flow import is_control_flow
from timberframe_sdk.execution.steps import Step

FEWEST_STEPS = 4
"""Least number of steps that are worth a graph."""
MOST_GRAPHS = 8
"""Most graphs of a segment, each for other addresses; and most addresses that are known from one run."""


@dataclass
class Capture:
    """A capture of one thread: the kernels, the pointers that they were given, and in the end the graph."""

    kernels: Kernels = field(default_factory=Kernels)
    pointers: list[Any] = field(default_factory=list)
    graph: Any = None


class Streams:
    """The stream of a device, and the one on which a thread captures a graph instead. The GPU must be current."""

    def __init__(self) -> None:
        self.main = cupy.cuda.Stream()
        self.capturing = threading.Lock()
        self._captured = cupy.cuda.Stream(non_blocking=True)
        self._of_thread = threading.local()

    @property
    def capture(self) -> Capture | None:
        """What this thread captures at present."""
        return self._of_thread.__dict__.get("capture")

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self._of_thread.capture = capture

    @property
    def current(self) -> cupy.cuda.Stream:
        """Where the work of this thread goes."""
        return self.main if self.capture is None else self._captured

    @property
    def all(self) -> tuple[cupy.cuda.Stream, cupy.cuda.Stream]:
        """Both streams."""
        return self.main, self._captured

    def refuse_in_capture(self) -> None:
        """Raises InternalError where this thread captures: graphs hold kernels and copies on the device alone."""
        if self.capture is not None:
            raise InternalError("a CUDA graph is being captured; it holds kernels and copies on the device alone")


Addresses = tuple[int, ...]
"""The address of each slot of a segment."""


class Graphs:
    """The graphs of a segment by their addresses, and the addresses that occurred once: of both those used last."""

    def __init__(self) -> None:
        self._captured: OrderedDict[Addresses, Capture] = OrderedDict()
        self._occurred: OrderedDict[Addresses, None] = OrderedDict()

    def find(self, key: Addresses) -> Capture | None:
        """Returns the graph for these addresses."""
        if key in self._captured:
            self._captured.move_to_end(key)
        return self._captured.get(key)

    def is_repeated(self, key: Addresses) -> bool:
        """Returns whether addresses without a graph occurred before; notes that they occur now."""
        if key in self._occurred:
            return True
        self._occurred[key] = None
        if len(self._occurred) > MOST_GRAPHS:
            self._occurred.popitem(last=False)
        return False

    def add(self, key: Addresses, capture: Capture) -> None:
        """Keeps a graph; CUDA frees the one that goes when it has ended."""
        self._occurred.pop(key, None)
        self._captured[key] = capture
        if len(self._captured) > MOST_GRAPHS:
            self._captured.popitem(last=False)


@dataclass
class Segment:
    """Steps next to each other, and the slots that they use. graphs: None where nothing is captured."""

    steps: list[Step]
    slots: list[int]
    graphs: Graphs | None


class CapturingExecutable(AcceleratorExecutable):
    """A cluster as launches and graphs of launches."""

    def __init__(self, device: Any, cluster: Cluster) -> None:
        with device.modules.together():
            super().__init__(device, cluster)
        self._segments = list(_segments(self.steps)) if device.options["graphs"] else []
        self._lock = threading.Lock()

    def _build(self, node: KernelNode, kernel: KernelDef | None) -> Any:
        device: Any = self.device
        with device.modules.asking(node):
            return super()._build(node, kernel)

    def _launch(self, slots: list[Any], context: RunContext) -> dict[int, tuple[int, ...]]:
        if context.mode != "fast" or context.trace is not None or not self._segments:
            return super()._launch(slots, context)
        shapes: dict[int, tuple[int, ...]] = {}
        for segment in self._segments:
            captured = self._captured(segment, slots, context)
            if captured is None:
                shapes |= self._launch_steps(segment.steps, slots, context)
            else:
                context.cancel.check()
                self._launch_graph(segment, captured)
        return shapes

    def _launch_graph(self, segment: Segment, captured: Capture) -> None:
        """Enqueues the graph of a segment."""
        device: Any = self.device
        device.failures.check("launch")
        device.kernels_under_way.launched_all(captured.kernels)
        with device.calling():
            captured.graph.launch(stream=device.stream)

    def _captured(self, segment: Segment, slots: list[Any], context: RunContext) -> Capture | None:
        """Returns the graph of a segment for the addresses in the slots; None where its steps are to be launched."""
        if segment.graphs is None:
            return None
        key = tuple(slots[i].handle.ptr for i in segment.slots)
        with self._lock:
            graphs = segment.graphs
            if graphs is None:
                return None
            found = graphs.find(key)
            if found is None and graphs.is_repeated(key):
                found = self._capture(segment, slots, context)
                if found is None:
                    segment.graphs = None
                else:
                    graphs.add(key, found)
            return found

    def _capture(self, segment: Segment, slots: list[Any], context: RunContext) -> Capture | None:
        """Returns the steps as a graph; None where they do something that no graph holds."""
        try:
            with capturing(self.device) as capture:
                self._launch_steps(segment.steps, slots, context)
        except Exception:
            if context.cancel.reason is not None:
                raise
            return None
        # Tables of a kernel live as long as the graph; the memory of slots is given back after each run.
        passing = {id(slots[i].handle.mem) for i in segment.slots}
        capture.pointers = [p for p in capture.pointers if id(p.mem) not in passing]
        return capture


def _segments(steps: list[Step]) -> Iterator[Segment]:
    for capturable, group in itertools.groupby(steps, _only_launches):
        run = list(group)
        slots = sorted({i for step in run for i in step.slots})
        yield Segment(run, slots, Graphs() if capturable and len(run) >= FEWEST_STEPS else None)


def _only_launches(step: Step) -> bool:
    """Returns whether a step enqueues the same kernels in every run, as far as is known in advance."""
    node = step.node
    decides = is_control_flow(node) or any(v.dynamic for v in node.outputs) or node.stream is not None
    return not decides and step.launch.repeatable


@contextmanager
def capturing(device: Any) -> Iterator[Capture]:
    """Captures this thread's work on the device instead of doing it."""
    capture, streams = Capture(), device.streams
    with streams.capturing:
        streams.capture = capture
        try:
            with device.calling():
                streams.current.begin_capture()
                try:
                    yield capture
                except BaseException:
                    with suppress(*DRIVER_ERRORS):  # the capture is lost, and the first error gives the reason
                        streams.current.end_capture()
                    raise
                capture.graph = streams.current.end_capture()
        finally:
            streams.capture = None

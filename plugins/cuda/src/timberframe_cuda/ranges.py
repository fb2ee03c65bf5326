"""NVTX ranges, by which a profiler shows what enqueued a kernel: the run of a cluster, and in it each node or graph.

A device without them has another class of executables, so that they cost nothing there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cupy.cuda import nvtx

from timberframe_cuda.graphs import Capture, CapturingExecutable, Segment
from timberframe_sdk import Cluster, KernelNode, RunContext
from timberframe_sdk.execution.steps import Step

PROFILER = "NVTX_INJECTION64_PATH"
"""The variable in which a profiler names its library to NVTX (NVTX 3, nvtxDetail/nvtxInit.h)."""


def profiler_attached() -> bool:
    """Returns whether this process runs under a profiler that shows ranges, such as Nsight Systems."""
    return PROFILER in os.environ and bool(nvtx.available)


@contextmanager
def marked(name: str) -> Iterator[None]:
    """Makes a range of this thread around what is done within."""
    nvtx.RangePush(name)
    try:
        yield
    finally:
        nvtx.RangePop()


class RangedExecutable(CapturingExecutable):
    """A cluster whose runs, nodes and graphs are ranges: ``Relu dense/Relu``, ``graph of 9: Exp a to Neg b``."""

    def __init__(self, device: Any, cluster: Cluster) -> None:
        super().__init__(device, cluster)
        self._name = f"cluster of {_described(cluster.nodes)}"
        for step in self.steps:
            step.launch = replace(step.launch, call=_ranged(step))

    def run(self, inputs: Sequence[Any], context: RunContext) -> list[Any]:
        with marked(self._name):
            return super().run(inputs, context)

    def _launch_graph(self, segment: Segment, captured: Capture) -> None:
        with marked(f"graph of {_described([step.node for step in segment.steps])}"):
            super()._launch_graph(segment, captured)


def _described(nodes: Sequence[KernelNode]) -> str:
    """Returns how many nodes there are, with the first and the last."""
    if not nodes:
        return "0"
    first, last = (f"{node.op} {node.name}" for node in (nodes[0], nodes[-1]))
    return f"{len(nodes)}: {first} to {last}" if len(nodes) > 1 else f"1: {first}"


def _ranged(step: Step) -> Any:
    """Returns a step's launcher as a range with the node's op and name."""
    name, call = f"{step.node.op} {step.node.name}", step.launch.call

    def launch(*arrays: Any) -> Any:
        with marked(name):
            return call(*arrays)

    return launch

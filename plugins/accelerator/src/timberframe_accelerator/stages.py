"""Launchers of several kernels, which hand each other tensors in the node's workspace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe_accelerator.launches import Source
from timberframe_sdk import KernelNode, Launcher, passed_inputs

_ALIGNMENT = 64
_SIDE = 16  # of a tile of layout.h
_MOST_GROUPS = 65535  # in the second and third dimension of a launch, for CUDA


class BufferView(NamedTuple):
    """A tensor in an argument of the launcher (-1: the workspace), from element `start` on."""

    argument: int
    start: int = 0


class Argument(NamedTuple):
    """An argument of the launcher that a kernel takes without a start."""

    number: int


def nothing(*_: Any) -> None:
    """Launches nothing, for a node with an empty result."""


class Stages:
    """What a launcher does step by step, and the workspace that it needs."""

    def __init__(self, node: KernelNode) -> None:
        self.node = node
        self.device: Any = node.device
        self.result = len(passed_inputs(node))
        """The argument that is the node's output."""
        self._steps: list[Callable[[Sequence[Any]], None]] = []
        self._nbytes = 0

    def room(self, size: int, itemsize: int) -> BufferView:
        """Returns a view of the workspace for so many elements."""
        start = self._nbytes
        self._nbytes += -(-size * itemsize // _ALIGNMENT) * _ALIGNMENT
        return BufferView(-1, start // itemsize)

    def call(self, function: Any, items: Sequence[int], group: Sequence[int], *given: Any) -> None:
        """Appends a launch. A BufferView given becomes its tensor and its start (int64), an Argument its tensor."""
        if not math.prod(items):
            return

        def step(arrays: Sequence[Any]) -> None:
            arguments: list[Any] = []
            for argument in given:
                if isinstance(argument, BufferView):
                    arguments += (arrays[argument.argument], np.int64(argument.start))
                else:
                    arguments.append(arrays[argument.number] if isinstance(argument, Argument) else argument)
            function(items, group, *arguments)

        self._steps.append(step)

    def swap(
        self, source: BufferView, target: BufferView | None, dtype: np.dtype[Any], batch: int, rows: int, columns: int
    ) -> BufferView:
        """Transposes a batch of matrices into `target`, or into the workspace; returns where."""
        target = target or self.room(batch * rows * columns, dtype.itemsize)
        function = self.device.function(Source.file("layout.h", T=f"uint{8 * dtype.itemsize}"), "tf_swap")
        tiles = -(-rows // _SIDE) * -(-columns // _SIDE)
        items = tiles * _SIDE, _SIDE, min(batch, _MOST_GROUPS)
        self.call(function, items, (_SIDE, _SIDE, 1), source, target, *map(np.int32, (batch, rows, columns)))
        return target

    def launcher(self) -> Launcher:
        """Returns the launcher of all steps."""
        if self._nbytes:
            self.node.workspace(self._nbytes)
        steps = tuple(self._steps)

        def launch(*arrays: Any) -> None:
            for step in steps:
                step(arrays)

        return launch

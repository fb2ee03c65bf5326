"""Running node by node: with time stamps, an observer, and guard zones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_cpu.changing import program_for_versions
from timberframe_cpu.emission import Piece, PythonPiece
from timberframe_cpu.guard import GuardedArena, GuardedLayout
from timberframe_cpu.library import ffi
from timberframe_cpu.native import using_isa
from timberframe_sdk import Array, KernelNode, RunContext, TraceSink, Value
from timberframe_sdk.allocator import Buffer
from timberframe_sdk.execution.tracing import work_of
from timberframe_sdk.testing.guard import GuardedArray
from timberframe_sdk.testing.pages import new_pages

if TYPE_CHECKING:
    from timberframe_cpu.instance import Instance
    from timberframe_cpu.program import CpuExecutable

Check = Callable[[int, KernelNode], None]


def run_watched(executable: CpuExecutable, inputs: Sequence[Array], context: RunContext) -> list[Array]:
    """Runs in mode `nodes` or `guarded`. The observer sees loops and branches as one node.

    In mode `nodes` memory is shared as in a fast run: a kernel that works in place has put its output over its input.
    """
    if context.mode == "guarded":
        return _run_guarded(executable, inputs, context)
    executable = program_for_versions(_unrewritten_twin(executable))
    instance = executable.take()
    walker = _Walker(executable, context)
    allocator = executable.device.allocator
    outputs = executable.run_on(instance, inputs, context, allocator.empty, allocator.new_version, walker)
    executable.give(instance)
    return outputs


def _guarded_twin(executable: CpuExecutable, fence: str) -> CpuExecutable:
    """Returns the same cluster laid out with guard zones; no tensor, and no variable, is written in place."""
    twin = executable.guarded.get(fence)
    if twin is None:
        cluster = executable.source
        cluster = replace(cluster, updates=[replace(u, in_place=False) for u in cluster.updates])
        with using_isa(executable.device.isa):
            twin = type(executable)(executable.device, cluster, GuardedLayout(fence))
        executable.guarded[fence] = twin
    return twin


def _guarded_instance(executable: CpuExecutable, fence: str) -> Instance:
    """Returns an instance to run once; with a fence its arena has pages of its own, for which no limit counts."""
    if not fence:
        return executable.take()
    nbytes = executable.memory.arena
    return executable.instance(Buffer(new_pages(nbytes), nbytes, lambda _: None))


def _unrewritten_twin(executable: CpuExecutable) -> CpuExecutable:
    """Returns the cluster that was there before passes rewrote it, each of its nodes by itself."""
    if not executable.rewritten:
        return executable
    if executable.unrewritten is None:
        with using_isa(executable.device.isa):
            executable.unrewritten = type(executable)(executable.device, executable.source)
    return executable.unrewritten


def _run_guarded(executable: CpuExecutable, inputs: Sequence[Array], context: RunContext) -> list[Array]:
    executable = program_for_versions(_guarded_twin(executable, context.fence))
    instance = _guarded_instance(executable, context.fence)
    assert instance.arena is not None
    arena = GuardedArena(executable.prepared, instance.arena.handle, context.fence)
    made: list[GuardedArray] = []

    def empty(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        made.append(GuardedArray(dtype, shape, context.fence))
        return made[-1].array

    def check(position: int, node: KernelNode) -> None:
        what = f"{node.op} '{node.name}'"
        plan = executable.prepared.plan
        for i, value in enumerate(node.outputs):
            if value.id in plan.offsets:
                arena.check_tensor(plan.offsets[value.id], value.nbytes, f"{what}: output {i}")
        for guarded in made:
            guarded.check(f"{what}: an output of the run")
        if position in executable.prepared.controls:
            arena.check_all(what)
        elif node.workspace_bytes:
            arena.check_tensor(plan.workspaces[position], node.workspace_bytes, f"{what}: workspace")

    outputs = executable.run_on(instance, inputs, context, empty, empty, _Walker(executable, context, check))
    arena.check_all("the run")
    if not context.fence:
        executable.give(instance)
    return [np.array(x, order="C") for x in outputs]


class _Walker:
    """Executes a program one node at a time; if only a trace watches it, many at a time, with the time of each."""

    def __init__(self, executable: CpuExecutable, context: RunContext, check: Check | None = None) -> None:
        self._executable = executable
        self._context = context
        self._check = check

    def __call__(self, instance: Instance, arrays: dict[int, Array], context: RunContext) -> None:
        hold = self._executable.bind(instance, arrays)
        for positions, piece in self._pieces():
            self._run(positions, piece, instance, arrays)
            for position in positions:
                # The node has the inputs that it is computed from, not their other forms.
                node = self._executable.given.nodes[position]
                if self._check is not None:
                    self._check(position, node)
                if context.observer is not None:
                    values = [[self._array(v, instance, arrays) for v in vs] for vs in (node.inputs, node.outputs)]
                    context.observer(node, *values)
        del hold

    def _run(self, positions: Sequence[int], piece: Piece, instance: Instance, arrays: dict[int, Array]) -> None:
        """Runs the nodes at these positions and reports the times of those that ended."""
        context, times = self._context, np.zeros(len(positions) + 1, np.int64)
        start = time.perf_counter_ns()
        try:
            cancel, room = ffi.from_buffer("int32_t *", context.cancel.word), ffi.from_buffer("int64_t *", times)
            self._executable.run_piece(piece, instance, arrays, context, cancel, room)
            if isinstance(piece, PythonPiece):
                times[:] = start, time.perf_counter_ns()
        finally:
            if context.trace is not None:
                ended = times[: np.count_nonzero(times)]
                self._report(context.trace, positions, (start + ended - times[0]).tolist())

    def _report(self, trace: TraceSink, positions: Sequence[int], times: Sequence[int]) -> None:
        executable = self._executable
        for position, start, end in zip(positions, times, times[1:], strict=False):
            node, launch = executable.given.nodes[position], executable.prepared.launches[position]
            details = work_of(node, None if launch is None else launch.definition)
            trace.event(node.name, node.op, start, end, executable.device.spec, **details)

    def _pieces(self) -> Iterator[tuple[Sequence[int], Piece]]:
        """Yields the positions in the cluster of nodes, with what runs them."""
        launches = self._executable.prepared.launches
        native = [i for i, launch in enumerate(launches) if launch is None or launch.native is not None]
        single = self._check is not None or self._context.observer is not None
        for piece in self._executable.emitter.pieces:
            if isinstance(piece, PythonPiece):
                yield [self._position(piece)], piece
            elif single:
                for k in range(*piece):
                    yield [native[k]], (k, k + 1)
            else:
                yield native[slice(*piece)], piece

    def _position(self, piece: PythonPiece) -> int:
        return next(i for i, n in enumerate(self._executable.cluster.nodes) if n is piece.node)

    def _array(self, value: Value, instance: Instance, arrays: dict[int, Array]) -> np.ndarray:
        array = self._executable.array(value, instance, arrays)
        if value.dynamic and value.id not in arrays:
            return self._executable.true_part(value, array, instance)
        return array

"""CompilerDevice: a device whose toolchain compiles whole graphs. A vendor writes what calls the toolchain."""

from __future__ import annotations

import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timberframe_core import logging
from timberframe_core.errors import NoKernelError, OpError, ResourceExhaustedError, UnimplementedError, UnknownError
from timberframe_core.failures import raised
from timberframe_core.fallback import attempt
from timberframe_core.plugin.contracts import (
    Array,
    Cluster,
    DeviceAttributes,
    KernelNode,
    Memory,
    RunContext,
)
from timberframe_core.plugin.device_defaults import DeviceDefaults
from timberframe_sdk.allocator import Allocator
from timberframe_sdk.cluster_function import ClusterFunction, single
from timberframe_sdk.execution.constants import PerConstant
from timberframe_sdk.execution.errors import at_node
from timberframe_sdk.execution.last_used import LastUsed
from timberframe_sdk.execution.tracing import work_of
from timberframe_sdk.failures import Failures
from timberframe_sdk.program_cache import ProgramCache, not_kept
from timberframe_sdk.transaction import Transaction


@dataclass(frozen=True)
class Program:
    """What a toolchain made of a ClusterFunction.

    run: called with the arrays of the function's parameters, returns those of its results. It changes none of the
    arrays, as they may be versions of variables that others read, and may be called by several threads at once. memory:
    what the program needs beside its parameters and results. save: returns the program as bytes, of which
    `CompilerDevice.load` makes it again; None where it cannot be kept.
    """

    run: Callable[[Sequence[Array]], Sequence[Array]]
    memory: Memory = field(default_factory=Memory)
    save: Callable[[], bytes] | None = None


class CompilerDevice(DeviceDefaults):
    """Base of devices that compile a cluster as a whole.

    A subclass sets `type`, `allocator` and `attributes`, and writes `supports`, `build`, `upload` and `copy_out`. One
    that is asynchronous also writes `ready` and `wait`. Its arrays have `dtype` and `shape`, can be weakly referenced,
    and never change. Constants of more than `inline_bytes` are parameters of programs, uploaded once. Equal clusters,
    by their `fingerprint`, are compiled once; the `cached_programs` last used are kept. One whose programs can be saved
    sets `cache` to what `program_cache` gives, and writes `load`.
    """

    type = ""
    supports_by_dtype = False
    inline_bytes: int | None = 1024
    cached_programs = 256
    cache: ProgramCache | None = None
    allocator: Allocator
    attributes: DeviceAttributes

    def __init__(self, index: int = 0) -> None:
        self.spec = f"/device:{self.type}:{index}"
        self.failures = Failures("compile")
        self._constants = PerConstant[Array]()
        self._unfinished: list[weakref.ref[Array]] = []
        self._lock = threading.Lock()
        self._programs = LastUsed[str, Program](self.cached_programs)

    def __repr__(self) -> str:
        return f"<Device {self.spec} ({self.attributes.model})>"

    # What a vendor writes

    @abstractmethod
    def supports(self, node: KernelNode) -> str | None:
        """Returns None if `build` can translate the node, else why not."""
        raise NotImplementedError

    @abstractmethod
    def build(self, function: ClusterFunction) -> Program:
        """Compiles a cluster."""
        raise NotImplementedError

    def load(self, function: ClusterFunction, data: bytes) -> Program:
        """Returns a program of a cluster, as `Program.save` of an equal one has written it; any
        error where it cannot be.
        """
        raise NotImplementedError

    @abstractmethod
    def upload(self, x: np.ndarray) -> Array:
        """Returns a copy of a host array of any strides; later changes of x do not show in it."""
        raise NotImplementedError

    @abstractmethod
    def copy_out(self, a: Array) -> np.ndarray:
        """Returns a host copy that owns its memory; waits for the work that makes `a` and raises its errors."""
        raise NotImplementedError

    def ready(self, a: Array) -> bool:
        """Returns whether the work that makes `a` is done; never waits."""
        return True

    def wait(self, a: Array) -> None:
        """Waits for the work that makes `a` and raises its errors."""

    def error(self, e: Exception) -> OpError:
        """Returns what an exception of the toolchain is to the user; `ResourceExhaustedError`
        where memory does not suffice.
        """
        if isinstance(e, OpError):
            return e
        kind = ResourceExhaustedError if isinstance(e, MemoryError) else UnknownError
        return kind(f"device {self.spec} failed: {raised(e)}")

    # What is done for the vendor

    def compile(self, cluster: Cluster) -> CompiledCluster:
        try:
            self.failures.check("compile")
        except OpError as e:
            raise at_node(e, cluster.nodes[0]) from e
        return CompiledCluster(self, cluster)

    def inject_failure(self, kind: str) -> bool:
        """See Device: allocations, compiling a cluster, and the kinds that the toolchain checks `failures` for."""
        return self.failures.inject(kind) or super().inject_failure(kind)

    def withdraw_failures(self) -> Collection[str]:
        """See Device."""
        return [*self.failures.withdraw(), *super().withdraw_failures()]

    def copy_in(self, x: np.ndarray) -> Array:
        """Returns what `upload` makes, which counts as used memory for as long as it lives."""
        self.allocator.reserve(x.nbytes)
        try:
            made = self.upload(x)
        except BaseException:
            self.allocator.release(x.nbytes)
            raise
        self.note([made], [x.nbytes])
        return made

    def program(self, function: ClusterFunction) -> Program:
        """Returns what `build` makes of a function, or has made of an equal one;
        FailedPreconditionError where it must not.
        """
        if _draws(function.cluster):
            return self._built(function)
        return self._programs.get(function.cluster.fingerprint, lambda: self._loaded(function) or self._built(function))

    def _loaded(self, function: ClusterFunction) -> Program | None:
        """Returns the program of a cluster that is on disk; one that cannot be loaded is dropped there."""
        fingerprint = function.cluster.fingerprint
        data = None if self.cache is None else self.cache.get(fingerprint)
        if self.cache is None or data is None:
            return None
        try:
            return self.load(function, data)
        except Exception as e:  # whatever the toolchain has against it
            logging.warning("%s: a program on disk cannot be loaded, and is dropped: %s", self.spec, raised(e))
            self.cache.drop(fingerprint)
            return None

    def _built(self, function: ClusterFunction) -> Program:
        """Returns what `build` makes of a function, kept on disk where that is wanted."""
        cache = self.cache
        if cache is None:
            return self.build(function)
        if cache.only:
            raise at_node(not_kept(self.spec, function.cluster, cache), function.cluster.nodes[0])
        program = self.build(function)
        if program.save is not None and not _draws(function.cluster):
            try:
                cache.put(function.cluster.fingerprint, program.save())
            except Exception as e:  # a toolchain may have no form to keep this one
                logging.warning("%s: a program is not kept on disk: %s", self.spec, raised(e))
        return program

    def constant(self, x: np.ndarray) -> Array:
        """Returns the device's copy of a host constant; each is uploaded once, and dropped with the host's array."""
        found = self._constants.get(x)
        return self._constants.keep(x, self.copy_in(x)) if found is None else found

    def note(self, arrays: Sequence[Array], sizes: Sequence[int]) -> None:
        """Releases reserved memory with the arrays that it was reserved for, and makes `marker` wait for them."""
        for array, nbytes in zip(arrays, sizes, strict=True):
            self.allocator.release_with(array, nbytes)
        if self.asynchronous:
            with self._lock:
                known = [r for r in self._unfinished if (a := r()) is not None and not self.ready(a)]
                self._unfinished = known + [weakref.ref(a) for a in arrays]

    def start_copy_out(self, a: Array) -> ArraysReady:
        """Returns the copy, made when `a` is ready: arrays never change, so that later work cannot disturb it."""
        return ArraysReady(self, [a], lambda: self.copy_out(a))

    def marker(self) -> ArraysReady:
        """Is done when all arrays that are still in use have been made."""
        with self._lock:
            found = [r() for r in self._unfinished]
        return ArraysReady(self, [a for a in found if a is not None])

    def synchronize(self) -> None:
        self.marker().result()

    def close(self) -> None:
        """Waits for pending work, and drops programs and the constants that were uploaded."""
        self.synchronize()
        self._constants.clear()
        self._programs.clear()


def _draws(cluster: Cluster) -> bool:
    """Returns whether a node draws random numbers, from a stream that is its own."""
    return any(n.stream is not None or any(map(_draws, n.inner)) for n in cluster.nodes)


class ArraysReady:
    """A Pending: arrays that a device is making; its result is what `result` gives when they are there."""

    def __init__(
        self, device: CompilerDevice, arrays: Sequence[Array], result: Callable[[], Any] = lambda: None
    ) -> None:
        self._device, self._arrays, self._result = device, list(arrays), result

    def done(self) -> bool:
        return all(map(self._device.ready, self._arrays))

    def result(self) -> Any:
        """Waits; the toolchain's errors are raised as what `CompilerDevice.error` makes of them."""
        try:
            for array in self._arrays:
                self._device.wait(array)
            return self._result()
        except OpError:
            raise
        except Exception as e:
            raise self._device.error(e) from e


class _Compiled:
    """A program with its constants; `run` keeps the accounts of memory."""

    def __init__(self, device: CompilerDevice, cluster: Cluster) -> None:
        self.device = device
        self.function = ClusterFunction(cluster, device.inline_bytes)
        self.program = device.program(self.function)
        self.constants = [device.constant(v.constant) for v in self.function.constants]
        self.sizes = [v.nbytes for v in self.function.results]
        makers = {v.id: n for n in cluster.nodes for v in n.outputs}
        self._reserved_for = [(v.nbytes, makers.get(v.id)) for v in self.function.results]
        if self.program.memory.arena:
            self._reserved_for.append((self.program.memory.arena, None))

    def run(self, given: Sequence[Array]) -> list[Array]:
        """Returns the results for these inputs and versions: used memory from before they are
        made until they are dropped.
        """
        allocator, reserved = self.device.allocator, []
        try:
            for nbytes, node in self._reserved_for:
                try:
                    allocator.reserve(nbytes)
                except ResourceExhaustedError as e:
                    raise at_node(e, node) from e.__cause__
                reserved.append(nbytes)
            made = list(self.program.run([*given, *self.constants]))
        except BaseException:
            for nbytes in reserved:
                allocator.release(nbytes)
            raise
        for nbytes in reserved[len(made) :]:
            allocator.release(nbytes)  # the arena
        self.device.note(made, self.sizes)
        return made


class CompiledCluster:
    """An Executable: one program for the whole cluster, and one for each node where a run is watched.

    A cluster that the toolchain cannot compile as a whole, though it can compile each node, is run node by node.
    """

    def __init__(self, device: CompilerDevice, cluster: Cluster) -> None:
        self.device, self.cluster = device, cluster
        self.transaction = Transaction(cluster)
        self._parts: list[_Compiled] | None = None
        self._lock = threading.Lock()
        self._whole: _Compiled | None = attempt(
            "compiling a cluster as a whole", self._compile_whole, self._compile_by_node
        )
        self.memory = _memory([self._whole] if self._whole is not None else self._by_node())

    def _compile_whole(self) -> _Compiled:
        try:
            return _Compiled(self.device, self.cluster)
        except UnimplementedError as e:
            raise NotImplementedError(str(e)) from e  # which node it is shows when each is compiled alone

    def _compile_by_node(self) -> None:
        self._by_node()

    def _by_node(self) -> list[_Compiled]:
        """Returns a program for each node; an error names the one that the toolchain cannot compile.

        It is a NoKernelError where the translation raises UnimplementedError.
        """
        with self._lock:
            if self._parts is None:
                self._parts = [self._compiled_alone(n) for n in self.cluster.nodes]
            return self._parts

    def _compiled_alone(self, node: KernelNode) -> _Compiled:
        try:
            return _Compiled(self.device, single(node))
        except UnimplementedError as e:
            raise NoKernelError(str(at_node(e, node)), node.name) from e
        except Exception as e:
            raise self._at(node, e) from (e.__cause__ if isinstance(e, OpError) else e)

    def _at(self, node: KernelNode, e: Exception) -> OpError:
        return at_node(self.device.error(e), node)

    def run(self, inputs: Sequence[Array], context: RunContext) -> list[Array]:
        """Runs the program, or node by node where the context asks for that, and commits new versions of variables."""
        context.cancel.check()
        cluster = self.cluster
        with self.transaction.begin() as versions:
            given = [*inputs, *(versions[v.id] for v in cluster.resources)]
            if self._whole is None or context.mode != "fast" or context.trace is not None:
                made = self._run_by_node(given, context)
            else:
                made = self._run_whole(self._whole, given)
            under_way = ArraysReady(self.device, made)
            if cluster.updates:
                context.cancel.wait(under_way)  # a version is committed only when it is known to be good
            elif context.late is not None:
                context.late.add(self.device, under_way, lambda _: None)
            versions.update(zip((u.new.id for u in cluster.updates), made[len(cluster.outputs) :], strict=True))
        return made[: len(cluster.outputs)]

    def _run_whole(self, whole: _Compiled, given: Sequence[Array]) -> list[Array]:
        try:
            return whole.run(given)
        except OpError:
            raise
        except Exception as e:
            if self.device.cache is None or not self.device.cache.only:
                self._run_by_node(given, RunContext())  # raises at the node that fails
            raise self.device.error(e) from e

    def _run_by_node(self, given: Sequence[Array], context: RunContext) -> list[Array]:
        cluster, device = self.cluster, self.device
        found = dict(zip((v.id for v in (*cluster.inputs, *cluster.resources)), given, strict=True))
        for node, part in zip(cluster.nodes, self._by_node(), strict=True):
            context.cancel.check()
            start = time.perf_counter_ns()
            try:
                made = part.run([found[v.id] for v in part.function.cluster.inputs])
                ArraysReady(device, made).result()
            except Exception as e:
                raise self._at(node, e) from (e.__cause__ if isinstance(e, OpError) else e)
            found.update(zip((v.id for v in node.outputs), made, strict=True))
            if context.trace is not None:
                context.trace.event(node.name, node.op, start, time.perf_counter_ns(), device.spec, **work_of(node))
            if context.observer is not None:
                seen = [device.constant(v.constant) if v.kind == "const" else found[v.id] for v in node.inputs]
                context.observer(node, seen, made)
        return [found[v.id] for v in ClusterFunction(cluster).results]


def _memory(parts: Sequence[_Compiled]) -> Memory:
    """Returns what programs that run one after the other need."""
    known = [p.program.memory for p in parts]
    constants = {v.id: v.nbytes for p in parts for v in p.function.constants}
    return Memory(
        persistent=sum(constants.values()) + sum(m.persistent for m in known),
        arena=max((m.arena for m in known), default=0),
        workspace=max((m.workspace for m in known), default=0),
    )

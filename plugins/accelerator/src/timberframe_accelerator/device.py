"""AcceleratorDevice: a KernelDevice whose kernels are sources that it compiles.

A plugin writes memory, copies and `build`; the kernels of `timberframe_accelerator` then are its own, and it may
replace those for which its maker has a library.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.elementwise import build_fused, can_fuse, can_reduce
from timberframe_accelerator.launches import Function, Limits, Source
from timberframe_accelerator.library import Multiplication
from timberframe_core.ops.definition import registry
from timberframe_sdk import Cluster, Executable, KernelDef, KernelNode, RunContext, Support, arg_ranges
from timberframe_sdk.elementwise.fusion import FUSED, Fusion
from timberframe_sdk.execution.kernel_executable import KernelExecutable
from timberframe_sdk.execution.last_used import LastUsed
from timberframe_sdk.include import include_directory
from timberframe_sdk.kernel_device import KernelDevice

DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool",
)  # fmt: skip
"""The dtypes that accelerators hold. Complex numbers and strings stay on the host."""
CACHED_FUNCTIONS = 128
"""Compiled kernels that a device keeps, beside those in use: on a driver for the CPU each may take some megabytes."""
HEADERS = Path(__file__).parent / "include"
"""Where the kernels' own headers lie."""


class DeviceTensor:
    """A dense row-major tensor in a device's memory.

    handle: what the device's kernels take for a pointer. owner: keeps the memory, which begins `offset` bytes into it;
    two tensors of the same owner and offset lie in the same memory.
    """

    __slots__ = ("__weakref__", "dtype", "handle", "offset", "owner", "shape")

    def __init__(
        self, handle: Any, dtype: np.dtype[Any], shape: tuple[int, ...], owner: Any = None, offset: int = 0
    ) -> None:
        self.handle = handle
        self.owner = owner
        self.offset = offset
        self.dtype = dtype
        self.shape = shape

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for d in self.shape:
            size *= d
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def begins_where(self, other: DeviceTensor) -> bool:
        """Returns whether both lie in the same memory."""
        return self is other or (self.owner is not None and self.owner is other.owner and self.offset == other.offset)


class Table(DeviceTensor):
    """Numbers of the host that a kernel reads at each launch, such as sizes and strides: an argument of Functions.

    They are uploaded at the first launch, and dropped again where that run fails.
    """

    __slots__ = ("_device", "_host", "_uploaded")

    def __init__(self, device: AcceleratorDevice, host: np.ndarray) -> None:
        self._device = device
        self._host = host
        self._uploaded: DeviceTensor | None = None
        super().__init__(None, host.dtype, host.shape)

    @property
    def handle(self) -> Any:
        """What the device's kernels take for a pointer."""
        return self.upload().handle

    @handle.setter
    def handle(self, handle: Any) -> None:
        self._uploaded = handle

    def upload(self) -> DeviceTensor:
        """Brings the numbers to the device unless they are there, before what cannot be undone."""
        uploaded = self._uploaded
        if uploaded is None:
            uploaded = self._uploaded = self._device.copy_in(self._host)
            self._device.uploads().append(self)
        return uploaded

    def drop(self) -> None:
        """Gives the device's memory back until the next launch."""
        self._uploaded = None


class AcceleratorExecutable(KernelExecutable):
    """A cluster as a list of launches; a run that fails leaves no table that it uploaded."""

    def run(self, inputs: Sequence[Any], context: RunContext) -> list[Any]:
        device: Any = self.device
        uploads: list[Table] = device.uploads()
        before = len(uploads)  # not 0 in the body of a loop
        try:
            return super().run(inputs, context)
        except BaseException:
            for table in uploads[before:]:
                table.drop()
            raise
        finally:
            if not before:
                uploads.clear()


class AcceleratorDevice(KernelDevice):
    """Base of devices that compile kernels from source.

    A subclass also writes `build`, and sets `limits`. Its `copy` copies as many bytes as the target has, which may be
    fewer than the source's. `executable` is what it makes of a cluster.
    """

    asynchronous = True
    executable = AcceleratorExecutable
    limits = Limits()
    fusion = Fusion(can_fuse, can_reduce)

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._functions = LastUsed[tuple[Source, str], Function](CACHED_FUNCTIONS)
        self._building = threading.Lock()
        self._of_thread = threading.local()

    @abstractmethod
    def build(self, source: str, name: str) -> Function:
        """Compiles a source and returns its kernel `name`; InternalError with the compiler's words where it fails.

        A source is given for each of its kernels that is wanted, and again when that has not been used for long.
        """
        raise NotImplementedError

    def multiplier(self, wanted: Multiplication) -> Function | None:
        """Returns the library product that computes this; None where the kernels of this package are to do so.

        It is called as a kernel is, over (1,) work-items, with each of the left operand, the right one and the result
        as a tensor and the index of its first element (int64). It may be launched in parts of a run that a device
        records.
        """
        return None

    def function(self, source: Source, name: str) -> Function:
        """Returns the kernel `name` of a source, compiled once and kept while it is among those used last."""
        with self._building:
            return self._functions.get((source, name), lambda: self.build(source.whole(), name))

    def table(self, host: np.ndarray) -> Table:
        """Returns numbers that a builder has for its kernel."""
        return Table(self, host)

    def uploads(self) -> list[Table]:
        """Returns the tables that the run of this thread has uploaded so far."""
        found: list[Table] = self._of_thread.__dict__.setdefault("uploads", [])
        return found

    def supports(self, node: KernelNode) -> Support:
        held = self.attributes.dtypes
        handles = _handles(node)
        for i, value in enumerate((*node.inputs, *node.outputs)):
            if value.dtype.name not in held and value.kind != "const" and i not in handles:
                return f"the device holds no {value.dtype.name}; it holds {', '.join(held)}"
        return super().supports(node)

    def take(self, a: DeviceTensor, shape: tuple[int, ...]) -> DeviceTensor:
        taken: DeviceTensor = self.empty(a.dtype, shape)
        self.copy(a, taken)
        return taken

    def kernel(self, node: KernelNode) -> KernelDef | None:
        """Returns the registered kernel for a node; chains of elementwise nodes are built from source."""
        if node.op == FUSED:
            return KernelDef(FUSED, self.type, build_fused)
        return super().kernel(node)

    def compile(self, cluster: Cluster) -> Executable:
        return self.executable(self, cluster)


def _handles(node: KernelNode) -> set[int]:
    """Returns positions of the inputs that stand for variables, whose values kernels get in their place."""
    op = registry.find(node.op)
    if op is None or not (op.reads or op.updates):
        return set()
    ranges = arg_ranges(op.inputs, node.attrs)
    return {i for name in (*op.reads, *op.updates) for i in ranges[name]}


def header_folders() -> tuple[Path, ...]:
    """Returns the folders to give to a compiler of sources, each with -I: the kernels' own headers, and the SDK's."""
    return HEADERS, Path(include_directory())

"""AcceleratorDevice: a KernelDevice whose kernels are sources that it compiles.

A plugin writes memory, copies and `build`; the kernels of `timberframe_accelerator` then are its own, and it may
replace those for which its maker has a library.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from timberframe_core.errors import OpError
from timberframe_core.fallback import attempt
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Cluster, Executable, KernelDef, KernelNode, Launcher, RunContext
from timberframe_sdk.declare import Builder
from timberframe_sdk.fusion import FUSED, fuse
from timberframe_sdk.include import include_directory
from timberframe_sdk.kernel_device import KernelDevice, KernelExecutable

DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool",
)  # fmt: skip
"""The dtypes that accelerators hold. Complex numbers and strings stay on the host."""
HEADERS = Path(__file__).parent / "include"
"""Where the kernels' own headers lie."""
GROUP = 256
"""Work-items of a group where a kernel does not ask for something else."""
MOST_ITEMS = 1 << 22
"""Work-items of a launch; elements beyond that are taken in turns."""
MOST_GROUPS = 65535
"""Groups in the second and third dimension of a launch: a limit of CUDA (CUDA C++ Programming Guide)."""


class DeviceTensor:
    """A dense row-major tensor in a device's memory.

    handle: what the device's kernels take for a pointer. owner: keeps the memory, which begins `offset` bytes into it;
    two tensors of the same owner and offset lie in the same memory.
    """

    __slots__ = ("dtype", "handle", "offset", "owner", "shape")

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
        """Whether both lie in the same memory."""
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
        uploaded = self._uploaded
        if uploaded is None:
            uploaded = self._uploaded = self._device.copy_in(self._host)
            self._device.uploads().append(self)
        return uploaded.handle

    @handle.setter
    def handle(self, handle: Any) -> None:
        self._uploaded = handle

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


@dataclass(frozen=True)
class Source:
    """A source and the macros that are defined before it."""

    text: str
    defines: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def file(cls, name: str, **defines: str | int) -> Source:
        """The file ``timberframe/accelerator/<name>``, included with these macros defined."""
        return cls(f"#include <timberframe/accelerator/{name}>\n", tuple(sorted(defines.items())))

    def whole(self) -> str:
        """The text after its defines."""
        return "".join(f"#define {name} {value}\n" for name, value in self.defines) + self.text


class Function(Protocol):
    """A compiled kernel: enqueues itself over `items` work-items (by dimension) in groups of `group`."""

    def __call__(self, items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
        """arguments: tensors, and NumPy scalars of the kernel's parameter types."""


@dataclass(frozen=True)
class Limits:
    """What sizes of work a device takes. group: most work-items of a group; shared: bytes of its shared memory.

    items: work-items of a group of elementwise kernels; where a group is a CPU's thread, more of them cost less.
    reducing: work-items of a group that reduces, a power of two up to 256; where a group is a CPU's thread, as many as
    its vectors have elements, as the group then reads memory in order.
    """

    group: int = 256
    shared: int = 32 * 1024
    float64: bool = True
    items: int = GROUP
    reducing: int = 256
    details: Mapping[str, Any] = field(default_factory=dict)


class AcceleratorDevice(KernelDevice):
    """Base of devices that compile kernels from source.

    A subclass also writes `build`, and sets `limits`. Its `copy` copies as many bytes as the target has, which may be
    fewer than the source's. `executable` is what it makes of a cluster.
    """

    asynchronous = True
    executable = AcceleratorExecutable
    limits = Limits()
    fuse = True

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._functions: dict[tuple[Source, str], Function] = {}
        self._building = threading.Lock()
        self._of_thread = threading.local()

    def build(self, source: str, name: str) -> Function:
        """Compiles a source and returns its kernel `name`; InternalError with the compiler's words where it fails."""
        raise NotImplementedError

    def function(self, source: Source, name: str) -> Function:
        """The kernel `name` of a source, compiled once."""
        key = source, name
        found = self._functions.get(key)
        if found is None:
            with self._building:
                found = self._functions.get(key)
                if found is None:
                    found = self._functions[key] = self.build(source.whole(), name)
        return found

    def table(self, host: np.ndarray) -> Table:
        """Numbers that a builder has for its kernel."""
        return Table(self, host)

    def uploads(self) -> list[Table]:
        """The tables that the run of this thread has uploaded so far."""
        found: list[Table] = self._of_thread.__dict__.setdefault("uploads", [])
        return found

    def supports(self, node: KernelNode) -> str | None:
        held = self.attributes.dtypes
        handles = _handles(node)
        for i, value in enumerate((*node.inputs, *node.outputs)):
            if value.dtype.name not in held and value.kind != "const" and i not in handles:
                return f"the device holds no {value.dtype.name}; it holds {', '.join(held)}"
        found = self.kernel(node)
        if found is not None and not self.limits.float64 and getattr(found.build, "needs_float64", False):
            return "its kernel computes in float64, which the device lacks"
        return super().supports(node)

    def take(self, a: DeviceTensor, shape: tuple[int, ...]) -> DeviceTensor:
        taken: DeviceTensor = self.empty(a.dtype, shape)
        self.copy(a, taken)
        return taken

    def kernel(self, node: KernelNode) -> KernelDef | None:
        """The registered kernel for a node; chains of elementwise nodes are built from source."""
        if node.op == FUSED:
            from timberframe_accelerator.kernels.elementwise import build_fused

            return KernelDef(FUSED, self.type, build_fused)
        return super().kernel(node)

    def compile(self, cluster: Cluster) -> Executable:
        from timberframe_accelerator.kernels.elementwise import can_fuse, can_reduce

        if not self.fuse:
            return self.executable(self, cluster)
        return attempt(
            "fusing elementwise nodes",
            lambda: self.executable(self, fuse(cluster, can_fuse, reduces=can_reduce)),
            lambda: self.executable(self, cluster),
            errors=True,
        )


def _handles(node: KernelNode) -> set[int]:
    """Positions of the inputs that stand for variables, whose values kernels get in their place."""
    op = registry.find(node.op)
    if op is None or not (op.reads or op.updates):
        return set()
    ranges = arg_ranges(op.inputs, node.attrs)
    return {i for name in (*op.reads, *op.updates) for i in ranges[name]}


def needs_float64(build: Builder) -> Builder:
    """Marks a kernel's builder: it serves only devices that have float64."""
    build.needs_float64 = True  # type: ignore[attr-defined]  # a function takes attributes; Callable does not say so
    return build


def spread(count: int, group: int = GROUP) -> tuple[tuple[int], tuple[int]]:
    """Work-items and group size for a kernel that goes over `count` elements by TF_EACH."""
    return (max(group, min(-(-count // group) * group, MOST_ITEMS)),), (group,)


def spread_rows(length: int, rows: int, lanes: int = GROUP) -> tuple[tuple[int, int], tuple[int, int]]:
    """Work-items and group size for a kernel whose first dimension goes over rows of `length`, its second over rows.

    lanes: `Limits.reducing`, where each row takes much to find: where a group is a thread it goes over a whole row.
    """
    if lanes < GROUP:
        return (lanes, max(1, min(rows, MOST_GROUPS))), (lanes, 1)
    x = min(GROUP, 1 << max(length - 1, 0).bit_length())
    y = GROUP // x
    wide = max(x, min(-(-length // x) * x, MOST_ITEMS))
    return (wide, max(1, min(-(-rows // y), MOST_ITEMS // (wide * y), MOST_GROUPS)) * y), (x, y)


def index_name(*counts: int) -> str:
    """What INDEX must be for these numbers of elements, so that places do not overflow: int32 or int64."""
    return "int64" if max(counts, default=0) + MOST_ITEMS >= 2**31 else "int32"


def index_type(*counts: int) -> type[np.int32] | type[np.int64]:
    """The scalar type of a kernel's tf_index arguments for these numbers of elements."""
    return np.int64 if index_name(*counts) == "int64" else np.int32


def failing(launch: Launcher, *reasons: tuple[type[OpError], str]) -> Launcher:
    """A launcher whose kernel calls tf_report; reason 1 is the first pair: the error, and its words with {0} to {3}."""
    launch.reasons = reasons  # type: ignore[attr-defined]  # a function takes attributes; Callable does not say so
    return launch


def header_folders() -> tuple[Path, ...]:
    """The folders to give to a compiler of sources, each with -I: the kernels' own headers, and the SDK's."""
    return HEADERS, Path(include_directory())

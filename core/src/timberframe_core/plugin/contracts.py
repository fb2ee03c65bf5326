"""The contract between the core and devices. Plugins import it through `timberframe_sdk`.

In the order in which a device meets it: the cluster of nodes it is handed, the executable it returns, its memory, the
device itself, and the kernels it looks up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.plugin.allocation import Allocator as Allocator
from timberframe_core.plugin.allocation import AllocatorStatistics as AllocatorStatistics
from timberframe_core.plugin.allocation import Buffer as Buffer
from timberframe_core.plugin.attributes import DeviceAttributes as DeviceAttributes
from timberframe_core.plugin.collectives import Collective as Collective
from timberframe_core.plugin.collectives import CollectiveGroup as CollectiveGroup
from timberframe_core.plugin.judged import Judged as Judged
from timberframe_core.plugin.patterns import Part as Part
from timberframe_core.plugin.state import RandomStream as RandomStream
from timberframe_core.plugin.state import Variable as Variable
from timberframe_core.plugin.state import VariableVersion as VariableVersion
from timberframe_core.plugin.tracing import TraceSink as TraceSink
from timberframe_core.plugin.waiting import CancelToken as CancelToken
from timberframe_core.plugin.waiting import Deferred as Deferred
from timberframe_core.plugin.waiting import LateError as LateError
from timberframe_core.plugin.waiting import LateErrors as LateErrors
from timberframe_core.plugin.waiting import Pending as Pending
from timberframe_core.plugin.wire import fingerprint

if TYPE_CHECKING:
    from timberframe_core.plugin.fusion import Fusion
    from timberframe_core.plugin.kernels import KernelRegistry

Array = Any  # whatever a device uses for a tensor; it has `dtype` and `shape`

UNKNOWN_RANK = (-2,)
"""The shape, while nodes are placed, of a tensor of which not even the number of dimensions is known."""


class Depends(Enum):
    """The type of DEPENDS."""

    ON_SHAPES = "depends on the shapes"


DEPENDS = Depends.ON_SHAPES
"""The answer of `KernelDef.suits` and `Device.supports` where sizes or constants that are not known yet decide."""

Support = str | Depends | None
"""Whether something can run a node: None means yes, a str why not, DEPENDS that it is to be asked again."""


@dataclass(slots=True, eq=False)
class Value:
    """One tensor of a cluster.

    kind: `input` (handed to run), `const` (constant holds it), `resource` (the current version of a variable, constant
    holds the Variable) or `temp` (made by a node). shape is an upper bound where `dynamic` is set. replaced: the
    cluster itself gives the variable a new version.
    """

    id: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    kind: str = "temp"
    constant: Any = None
    dynamic: bool = False
    replaced: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements in memory."""
        return self.dtype.itemsize * math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """What a launcher gets in place of an input, see KernelNode.prepared: `make` of the input's array."""

    input: int
    key: Hashable
    make: Callable[[Array], Array]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(slots=True, eq=False)
class KernelNode:
    """One node as the builder of its kernel sees it.

    attrs holds every attr of the op, type attrs as DType. `where` is the user's file:line. `inner` holds the bodies of
    While (cond, body), If (then, else) and Case (its branches), whose inputs line up with this node's inputs (for If
    and Case: after the first, which chooses); of a kernel with `covers`, the nodes that it covers.
    `index` is the node's place in its executable, from 0; in status words nodes count from 1, as `number` does.
    `stream` is set for ops that draw random numbers. `placing`: the node is being placed, and neither built nor run;
    sizes that are not known yet are -1, unknown ranks UNKNOWN_RANK, and `const` knows nothing.
    """

    op: str
    name: str
    attrs: Mapping[str, Any]
    inputs: list[Value]
    outputs: list[Value]
    device: Device
    where: str = ""
    inner: tuple[Cluster, ...] = ()
    index: int = 0
    workspace_bytes: int = 0
    preparations: tuple[Preparation, ...] = ()
    stream: RandomStream | None = None
    placing: bool = False

    @property
    def number(self) -> np.int64:
        """What a kernel hands to tf_report: the node's number from 1, as 0 in the status words means no error."""
        return np.int64(self.index + 1)

    def const(self, i: int) -> np.ndarray | None:
        """Host value of input i if it is a constant or a `shape` input, else None."""
        value = self.inputs[i]
        return value.constant if value.kind == "const" else None

    def prepared(
        self,
        input: int,
        key: Hashable,
        make: Callable[[Array], Array],
        shape: tuple[int, ...] | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> bool:
        """Makes the launcher get, in place of an input, what `make` gives for it: packed weights, a table of them.

        It is made once a device for each constant and each version of a variable, however many nodes, shapes, runs and
        sessions use it, and dropped with the constant or when a new version commits. False where the input is neither,
        or where the cluster itself replaces the version: the launcher then gets the input. key: says all that `make`
        depends on but the array. make: takes an array of the device, which it must not write to, and gives another, of
        `shape` and `dtype` (by default the input's).
        """
        value = self.inputs[input]
        if value.kind not in ("const", "resource") or value.replaced:
            return False
        given = Preparation(
            input, key, make, value.shape if shape is None else shape, value.dtype if dtype is None else dtype
        )
        self.preparations = (*(p for p in self.preparations if p.input != input), given)
        return True

    def workspace(self, nbytes: int) -> None:
        """Asks for scratch memory, which becomes the launcher's last argument (a uint8 tensor)."""
        self.workspace_bytes = nbytes


@dataclass(slots=True, eq=False)
class Update:
    """A variable's new version: `new` is committed when the run succeeds; `in_place` says it may overwrite `old`."""

    variable: Any
    old: Value | None
    new: Value
    in_place: bool


@dataclass(slots=True, eq=False)
class Cluster:
    """Nodes of one device in topological order, with no path that leaves them and returns; run as one pure function.

    source: the cluster before passes rewrote it, None where none did. What runs node by node (tracing, guard zones, the
    search for a node that fails) runs that one.
    """

    device: Device
    nodes: list[KernelNode]
    inputs: list[Value]
    outputs: list[Value]
    resources: list[Value] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    source: Cluster | None = None

    @property
    def fingerprint(self) -> str:
        """What identifies it in a cache that outlives the process: 64 hexadecimal digits.

        Clusters that differ in an op, attr, dtype, shape, constant, or in how values connect, have different ones;
        equal ones have the same in every process. Names, the lines of the program and the device do not count.
        """
        return fingerprint(self)


@dataclass(frozen=True)
class Memory:
    """Bytes that an executable needs: for its constants, for one run's arena, and the part of it that is workspace."""

    persistent: int = 0
    arena: int = 0
    workspace: int = 0


@dataclass(slots=True)
class RunContext:
    """What an executable is given for one run.

    mode: `fast`; `nodes` runs node by node (tracing, and finding the node that fails); `guarded` also puts guard zones
    around every output and poisons memory first. fence: `start` or `end` in guarded mode has devices with host memory
    put this end of each tensor that they make against an inaccessible page, so that reading past it as an input ends
    the process; empty is zones alone. observer, when set, is called after each node in these two modes with
    (node, input arrays, output arrays). late, when set, takes the checks for which an asynchronous executable would
    wait.
    """

    cancel: CancelToken = field(default_factory=CancelToken)
    trace: TraceSink | None = None
    mode: str = "fast"
    observer: Callable[[KernelNode, Sequence[Array], Sequence[Array]], None] | None = None
    late: LateErrors | None = None
    fence: str = ""


class Executable(Protocol):
    """What a device made of a cluster."""

    memory: Memory

    def run(self, inputs: Sequence[Array], context: RunContext) -> list[Array]:
        """Runs once and returns the outputs, whose memory is the caller's. May be called by several threads at once."""


class Device(Protocol):
    """A device. `type` is its kind in capitals, `spec` its name in messages, such as ``/device:ACME:0``.

    `name` is its full name, as TensorFlow writes it: ``/job:localhost/replica:0/task:0/device:ACME:0``. It follows from
    `spec`; a device of another process names its job and task in `spec`, which then is the full name.

    A device must have `type`, `spec`, `attributes`, `allocator`, `supports`, `compile`, `copy_in` and `copy_out`. What
    it lacks of the rest is taken from `DeviceDefaults` when it is registered.

    priority: the device with the highest gets nodes that nobody placed. host_memory: an ndarray is its Array.
    asynchronous: run() only enqueues, so the executor needs no thread to overlap it with other devices; such a device
    must have `start_copy_out` and `marker` of its own. incarnation: of a device in another process, a number that no
    other start of that process had. dlpack_device: (type, id) of the DLPack standard where its
    tensors can be handed out and taken in without a copy, else None. fusion: what nodes it can run as one,
    None if there are none. collective_library: name and version of what `collective` works by, empty where it has none:
    devices of different processes work together where theirs are equal.
    """

    type: str
    spec: str
    attributes: DeviceAttributes
    priority: int
    host_memory: bool
    asynchronous: bool
    incarnation: int
    dlpack_device: tuple[int, int] | None
    fusion: Fusion | None
    collective_library: str
    kernels: KernelRegistry
    """Set by the core: the kernels of all plugins."""

    @property
    def name(self) -> str: ...

    @property
    def allocator(self) -> Allocator: ...

    is_cpu: bool
    """Whether it is the host's processor under another driver, such as one of OpenCL: a request for a GPU does not
    mean it."""

    @property
    def lost(self) -> str:
        """Why the device does nothing any more until its process ends, such as ``the GPU is lost to an illegal
        address``; empty while it works. Its calls then raise UnavailableError with it."""

    supports_by_dtype: bool
    """Whether what `supports` answers follows from op, type attrs and the kernel's label, but for ops that have a
    kernel with `suits`. The placer then asks about a few nodes of each op; otherwise about each node."""

    def supports(self, node: KernelNode) -> Support:
        """Returns None if it can run this node, a str that says why not, or DEPENDS.

        Asked while nodes are placed, those of bodies of loops too (see KernelNode.placing); where it answered DEPENDS
        again when all shapes are known, and then it must decide. Asked about a loop or branch, by `role(node.op)`, it
        says whether it runs such a node with its bodies; where it does not, the executor drives them, body by body.
        """

    def kernel(self, node: KernelNode) -> KernelDef | None:
        """Returns the kernel that runs a node, for `Session.explain`; None where the device does so without one."""

    def compile(self, cluster: Cluster) -> Executable:
        """Prepares a cluster: the one way in which work reaches a device."""

    def copy_in(self, x: np.ndarray) -> Array:
        """Returns the device's copy of a host array of any strides; may be x itself where host_memory is set.

        Elsewhere x may change as soon as it returns: it waits until x is read, or copies x first.
        """

    def copy_out(self, a: Array) -> np.ndarray:
        """Returns a host copy; waits for pending work and raises its errors."""

    def start_copy_out(self, a: Array) -> Pending:
        """Starts what copy_out does, after the work that makes `a` and before work that is enqueued later."""

    def marker(self) -> Pending:
        """Is done when all work that was enqueued before it is; result() raises its errors."""

    def copy_from(self, source: Device, a: Array) -> Array | None:
        """Returns a tensor of another device here by a direct way; None where it must go through the host."""

    def to_dlpack(self, a: Array) -> Any:
        """Returns an object with `__dlpack__`: a view of `a` where `dlpack_device` is set, else a host copy."""

    def from_dlpack(self, x: Any) -> Array:
        """Returns the tensor of an object with `__dlpack__` that lies on `dlpack_device`: a
        view that keeps it alive.
        """

    def synchronize(self) -> None:
        """Waits for all pending work and raises its errors."""

    def inject_failure(self, kind: str) -> bool:
        """Makes the next work of a kind fail once, as the driver's own failures do; False where it cannot.

        kind: "launch" of a kernel or of a copy within the device, "copy" from or to the host, "allocation", "compile",
        or "queue". The run that the work belongs to raises an error that says what failed: at once, or from its next
        copy out, marker or synchronize, and names the node where runs wait for each. All else is as before.
        """

    def withdraw_failures(self) -> Collection[str]:
        """Takes back the failures of `inject_failure` that no work has met yet, and gives their kinds."""

    def record(self, folder: str) -> bool:
        """Writes each program that it runs from now on into a folder, before it runs; False where it cannot.

        For `script`, also of runs that end the process.
        """

    def script(self, folder: str, title: str, judged: Sequence[Judged]) -> str:
        """Returns a program in its toolchain's words, without Timberframe, that shows what `record` wrote last.

        It has status 1 while the device is wrong; "" if nothing ran. title: what is wrong. judged: what was judged;
        empty where the process ended or an error was raised before.
        """

    def close(self) -> None:
        """Gives back what it holds; called once, when the process and its threads end, the device made last first."""

    def variable(self, name: str, number: int, dtype: DType) -> Variable:
        """Returns the state of a variable on this device, without a value if it is new; `number`
        gives the order of locks.

        name: with its container, ``container:name``, where it has one.
        """

    def direct_call(self, executable: Executable, general: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns a function of host arrays that runs an executable of this device and returns its
        output, or a list of them.

        Only devices with `host_memory` are asked, about clusters without updates. The function calls `general` with the
        same arguments wherever they are not arrays of the cluster's inputs' dtypes and shapes, or its variables have no
        value or one of another shape by now. None where there is no way shorter than `run`.
        """

    def host_call(
        self, work: bytes, inputs: Sequence[tuple[Array, Device | None]], cancel: CancelToken
    ) -> Sequence[Any] | None:
        """Carries out an op on a resource with a `shared_name` in the process of this device; returns its outputs.

        work: the op, as `runtime.shared_resources.carry_out` reads it. inputs: arrays with their devices, None for the
        host. An output is an array of the host, or a pair of an array and this device. None, always, where the process
        keeps no resources for sessions: then they live in that of their session.
        """

    def collective(self, group: CollectiveGroup) -> Collective:
        """Returns what carries out the collectives of a group on arrays of this device,
        without taking them to the host.

        Called in all processes of the group, on devices with one `collective_library`, when it first has arrays on all
        of these devices; each may wait for the others. What it raises makes all of them go through the host.
        """


Launcher = Callable[..., Any]


@dataclass(frozen=True)
class KernelDef:
    """A kernel as data: `build(node)` prepares it once and returns the launcher that runs at every step.

    The launcher is called as ``launch(*inputs, *outputs[, workspace][, status])`` on preallocated outputs, without the
    `shape` inputs; it returns None, or the true shapes of outputs whose size only it knows. (A device may accept other
    things from a builder, such as the CPU's Native.)

    types: allowed dtypes by type attr, ``{"T": ("float32", "float64")}``; an attr not named may be anything.
    inplace: (output, input) pairs that may share memory. status: the launcher wants a status word. reads_status: it
    takes one where the cluster has any, to leave variables alone after another kernel's error. priority, label: a
    higher priority wins; a label is chosen by the attr `_kernel`. fallback: it computes by the op's reference, so that
    the op runs at all; conformance reports it as that, and counts it towards no level.

    suits(node) is asked about nodes whose type attrs are allowed: None takes the node, a str says why the kernel
    cannot, and DEPENDS that sizes or constants decide. It sees every attr and the shapes as far as they are known (see
    KernelNode.placing); it is not asked while a rank is unknown, and must decide when all is known. Where it declines,
    the kernel of the next lower priority is asked, then, with soft placement, the next device.

    covers: the kernel runs several nodes as one: these parts, in an order in which they could run, the last of which
    makes the outputs. Nobody else may read what the others make. `op` is then a name of the kernel's own
    (``Vendor>Name``), and `types` are those of the last part. The node that `suits` and `build` see has the last one's
    name and attrs; its inputs are what the other names of the parts stand for, in the order in which they are first
    named (the launcher gets all of them), and the nodes of `inner[0]` are those of the parts, in their order. Of
    several kernels that suit, the one with the most parts wins, then the one of the highest priority; where none does,
    the parts run by themselves.
    """

    op: str
    device: str
    build: Callable[[KernelNode], Any]
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inplace: tuple[tuple[int, int], ...] = ()
    status: bool = False
    reads_status: bool = False
    priority: int = 0
    label: str = ""
    suits: Callable[[KernelNode], Support] | None = None
    covers: tuple[Part, ...] = ()
    fallback: bool = False

    def accepts(self, attrs: Mapping[str, Any]) -> str | None:
        """Returns None if the type attrs are allowed, else which one is not."""
        for name, allowed in self.types.items():
            value = attrs.get(name)
            for dtype in value if isinstance(value, tuple) else (value,):
                if isinstance(dtype, DType) and dtype.name not in allowed:
                    return f"{name}={dtype.name} is not one of {', '.join(allowed)}"
        return None

    def origin(self) -> str:
        """Module and name of the builder, for messages."""
        return f"{self.build.__module__}.{getattr(self.build, '__qualname__', self.build)}"

"""The members of a device that are optional, as they are where a device does not say otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import BY_NAME, DType
from timberframe_core.errors import InternalError, UnimplementedError
from timberframe_core.graph.device_spec import full_name
from timberframe_core.plugin.contracts import (
    Array,
    CancelToken,
    Collective,
    CollectiveGroup,
    Deferred,
    Judged,
    KernelDef,
    KernelNode,
    Pending,
    Variable,
)
from timberframe_core.plugin.fusion import Fusion

_REQUIRED = ("type", "spec", "attributes", "allocator", "supports", "compile", "copy_in", "copy_out")
_OF_ALLOCATOR = ("alignment", "allocate", "statistics", "fail_at")
_OF_ASYNCHRONOUS = ("start_copy_out", "marker")


class DeviceDefaults:
    """Base of devices; one that does not derive from it gets what it lacks when it is registered. See `Device`."""

    priority = 0
    host_memory = False
    asynchronous = False
    incarnation = 1
    dlpack_device: tuple[int, int] | None = None
    is_cpu = False
    supports_by_dtype = True
    fusion: Fusion | None = None
    collective_library = ""

    @property
    def name(self: Any) -> str:
        """The full name that follows from `spec`."""
        return full_name(self.spec)

    @property
    def lost(self) -> str:
        """Empty: no error of the device outlasts the call that reports it."""
        return ""

    def kernel(self: Any, node: KernelNode) -> KernelDef | None:
        """Returns the registered one that takes the node, of highest priority."""
        found: KernelDef | None = self.kernels.find(node)
        return found

    def start_copy_out(self: Any, a: Array) -> Pending:
        """Returns a copy that is made when its result is asked for."""
        return Deferred(lambda: self.copy_out(a))

    def marker(self: Any) -> Pending:
        """Is done at once; asking for the result waits for pending work."""
        return Deferred(self.synchronize)

    def copy_from(self, source: Any, a: Array) -> Array | None:
        """Returns None: tensors of other devices come through the host."""
        return None

    def to_dlpack(self: Any, a: Array) -> Any:
        """Returns a host copy."""
        return self.copy_out(a)

    def from_dlpack(self: Any, x: Any) -> Array:
        """Returns a copy of what x holds in the host's memory."""
        return self.copy_in(np.from_dlpack(x))

    def synchronize(self) -> None:
        """Does nothing: a run has ended when it returns."""

    def inject_failure(self: Any, kind: str) -> bool:
        """Makes the allocator's next allocation fail; the device can fail at nothing else."""
        if kind == "allocation":
            self.allocator.fail_at = 0
        return kind == "allocation"

    def withdraw_failures(self: Any) -> Collection[str]:
        """Takes back those of allocations, as there are no others."""
        pending = self.allocator.fail_at is not None
        self.allocator.fail_at = None
        return ("allocation",) if pending else ()

    def record(self, folder: str) -> bool:
        """Returns False: it cannot write programs without Timberframe."""
        return False

    def script(self: Any, folder: str, title: str, judged: Sequence[Judged]) -> str:
        """Raises UnimplementedError: it has recorded nothing."""
        raise UnimplementedError(f"device {self.spec}: records no programs")

    def close(self) -> None:
        """There is nothing to give back."""

    def variable(self: Any, name: str, number: int, dtype: DType) -> Variable:
        """Returns one that holds its value itself, as long as the session has it."""
        return Variable(name, number, self, dtype)

    def direct_call(self, executable: Any, general: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns None: every call takes the general way."""
        return None

    def host_call(self, work: bytes, inputs: Sequence[Any], cancel: CancelToken) -> Sequence[Any] | None:
        """Returns None: resources live in the process of their session."""
        return None

    def collective(self: Any, group: CollectiveGroup) -> Collective:
        """It has none, as `collective_library` says."""
        raise UnimplementedError(f"device {self.spec}: has no collectives of its own")


_OPTIONAL = tuple(name for name in vars(DeviceDefaults) if not name.startswith("_"))


def complete(device: Any) -> None:
    """Adds the optional members that a device lacks; InternalError that names those which it must have and has not."""
    name = getattr(device, "spec", None) or type(device).__name__
    kind = type(device)
    missing = [m for m in _REQUIRED if getattr(device, m, "") == ""]  # bases leave `type` empty
    missing += [m for m in dir(kind) if getattr(getattr(kind, m, None), "__isabstractmethod__", False)]
    if not missing:
        missing = [f"allocator.{m}" for m in _OF_ALLOCATOR if not hasattr(device.allocator, m)]
    if missing:
        raise InternalError(f"device {name}: has no {', '.join(missing)}; every device must have them")
    wrong = [d for d in device.attributes.dtypes if d not in BY_NAME]
    if wrong:
        raise InternalError(f"device {name}: attributes.dtypes names {', '.join(wrong)}; names of dtypes are required")
    for member in _OPTIONAL:
        if not hasattr(device, member):
            default = vars(DeviceDefaults)[member]
            setattr(device, member, default.__get__(device) if hasattr(default, "__get__") else default)
    missing = [m for m in _OF_ASYNCHRONOUS if getattr(kind, m, None) in (None, getattr(DeviceDefaults, m))]
    if device.asynchronous and missing:
        raise InternalError(f"device {name}: is asynchronous and has no {', '.join(missing)} of its own; it must have")

"""What builders and launchers return, checked: a mistake names the kernel that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_core.errors import InternalError, NoKernelError, OpError, UnimplementedError
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Value
from timberframe_sdk.execution.control_flow import current_context
from timberframe_sdk.execution.errors import naming
from timberframe_sdk.failures import Failures


@dataclass(frozen=True, slots=True)
class Launch:
    """A launcher with what a KernelDevice should know of it.

    reasons: reason i that a kernel reports in its status word is the pair ``reasons[i - 1]``: the error, and its
    message as a str.format template in which {0} to {3} are the details. repeatable: each launch with the same arrays
    enqueues the same work, so that a device may record it and enqueue the record; False where the host does some of
    it. context: the launcher gets the run's RunContext before the arrays; one that takes long calls
    `context.cancel.check()` now and then, which raises when the run was cancelled.
    """

    call: Callable[..., Any]
    reasons: tuple[tuple[type[OpError], str], ...] = ()
    repeatable: bool = True
    context: bool = False

    def __call__(self, *arrays: Any) -> Any:
        return self.call(current_context(), *arrays) if self.context else self.call(*arrays)


def as_launch(built: Any) -> Launch:
    """Returns what a builder returned, with the defaults for what it left out."""
    if not isinstance(built, Launch):
        return Launch(built)
    return replace(built, call=built, context=False) if built.context else built


def build_kernel(kernel: KernelDef, node: KernelNode) -> Any:
    """Returns what the kernel's builder makes of a node; any exception of it comes out as an OpError that names both.

    UnimplementedError says that there is no kernel for this node after all: NoKernelError.
    """
    node.preparations = ()
    try:
        with naming(node, f"kernel {kernel.origin()}"):
            if isinstance(failures := getattr(node.device, "failures", None), Failures):
                failures.check("compile")
            built = kernel.build(node)
    except UnimplementedError as e:
        raise NoKernelError(str(e), node.name) from e
    if built is None:
        fact = f"kernel {kernel.origin()} built None"
        raise InternalError(f"{node.op} '{node.name}': {fact}; a launcher is required", node.name)
    return built


def check_returned(node: KernelNode, arrays: Sequence[Any], returned: Any) -> None:
    """InternalError where a launcher returned a new array of NumPy, so that its outputs were not filled.

    All else does not matter: NumPy's functions return their `out`, and drivers handles of the work.
    """
    if any(returned is a for a in arrays) or not isinstance(returned, np.ndarray | np.generic):
        return
    if any(isinstance(a, np.ndarray) and np.may_share_memory(a, returned) for a in arrays):
        return
    raise InternalError(
        f"{node.op} '{node.name}': its launcher returned a new array of shape {returned.shape} and dtype "
        f"{returned.dtype}; it must fill the outputs that it is given",
        node.name,
    )


def true_shapes(node: KernelNode, returned: Any) -> list[tuple[Value, tuple[int, ...]]]:
    """Returns the outputs whose size only their kernel knows, with the shapes that its launcher returned."""
    dynamic = [v for v in node.outputs if v.dynamic]
    if not dynamic:
        return []
    try:
        shapes = [tuple(int(d) for d in shape) for shape in returned]
    except TypeError:
        shapes = []
    if len(shapes) != len(dynamic):
        raise InternalError(
            f"{node.op} '{node.name}': its launcher returned {returned!r}; "
            f"a list of {len(dynamic)} true shapes is required",
            node.name,
        )
    return list(zip(dynamic, shapes, strict=True))

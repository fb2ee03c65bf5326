"""Which kernels a device looks up to run a case: reports name them, and those by reference count for no level."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timberframe_core.plugin.nodes import UNIT_KERNELS
from timberframe_sdk.reference import computed_ops

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Device, KernelDef, KernelNode
    from timberframe_core.plugin.kernels import KernelRegistry

FALLBACK = "the op's reference (fallback)"


@dataclass(frozen=True)
class Used:
    """names: the kernels by plugin and builder. fallback: whether references computed what was judged."""

    names: tuple[str, ...] = ()
    fallback: bool = False


class Lookups:
    """Notes what a device looks up in its registry of kernels, from `begin` to `end`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._found: dict[tuple[str, int], tuple[str, KernelDef | None]] = {}
        self._elsewhere: dict[str, str] = {}
        self._lock = threading.Lock()
        registry = getattr(device, "kernels", None)
        if registry is not None:
            _listeners(registry).append(self._note)

    def _note(self, node: KernelNode, kernel: KernelDef | None) -> None:
        if node.device.type != self._device.type:
            if kernel is not None and not node.placing:
                self._elsewhere.setdefault(node.op, node.device.spec)
            return
        if not node.placing and (kernel is not None or node.op not in UNIT_KERNELS):
            with self._lock:
                self._found[node.op, id(kernel)] = node.op, kernel

    def begin(self) -> None:
        """Forgets what was noted."""
        with self._lock:
            self._found.clear()
            self._elsewhere.clear()

    def elsewhere(self, op: str) -> str:
        """Another device that has looked up a kernel of the op since, "" where none has."""
        return self._elsewhere.get(op, "")

    def end(self, ops: Iterable[str] = ()) -> Used:
        """What was looked up since. ops: those that the case is about; none means all that ran."""
        wanted = set(ops)
        with self._lock:
            found = list(self._found.values())
        names = dict.fromkeys(self._name(kernel) for _, kernel in found)
        judged = [kernel for op, kernel in found if op in wanted or not wanted]
        fallback = any(self._is_fallback(kernel) for kernel in judged)
        if not found and any(map(self._translated_by_reference, wanted)):
            return Used((FALLBACK,), True)
        return Used(tuple(name for name in names if name), fallback)

    def _translated_by_reference(self, op: str) -> bool:
        """Whether a device that has no kernels of an op, such as a compiler, has it computed by its reference."""
        kernels = self._device.kernels.kernels(op)
        return op in computed_ops(self._device.type) and all(k.device != self._device.type for k in kernels)

    def _is_fallback(self, kernel: KernelDef | None) -> bool:
        return bool(getattr(self._device, "by_reference", False)) if kernel is None else kernel.fallback

    def _name(self, kernel: KernelDef | None) -> str:
        if kernel is None:
            return FALLBACK if self._is_fallback(None) else ""
        plugin = self._device.kernels.plugin_of(kernel)
        return f"{plugin}: {kernel.origin()}{' (fallback)' if kernel.fallback else ''}"


_by_registry: dict[int, tuple[KernelRegistry, list[Any]]] = {}


def _listeners(registry: KernelRegistry) -> list[Any]:
    """The functions to call with what `find` of a registry gives; each registry's is wrapped once."""
    known = _by_registry.get(id(registry))
    if known is not None:
        return known[1]
    listeners: list[Any] = []
    find = registry.find

    def noting(node: KernelNode) -> KernelDef | None:
        found = find(node)
        for listener in listeners:
            listener(node, found)
        return found

    registry.find = noting  # type: ignore[method-assign]  # the way in for all devices, which have no hook for this
    _by_registry[id(registry)] = registry, listeners
    return listeners

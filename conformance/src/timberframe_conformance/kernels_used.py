"""Which kernels a device looks up to run a case: reports name them, and those by reference count for no level."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timberframe_core.plugin.nodes import UNIT_KERNELS
from timberframe_sdk.fallbacks import kernels_noted, times_fallen_back
from timberframe_sdk.reference import times_computed

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
        self._computed: Mapping[str, int] = {}
        """Number of times that the device has had each op computed by its reference before `begin`."""
        self._given_away: Mapping[tuple[str, str], int] = {}
        """Number of times that the device has had each op computed by others before `begin`."""
        self._noted: Mapping[tuple[str, str], int] = {}
        """Number of times that each kernel of the device's toolchain has run for each op before `begin`."""
        self._lock = threading.Lock()
        self._registry: KernelRegistry | None = getattr(device, "kernels", None)

    def _note(self, node: KernelNode, kernel: KernelDef | None) -> None:
        if node.device.type != self._device.type:
            if kernel is not None and not node.placing:
                with self._lock:
                    self._elsewhere.setdefault(node.op, node.device.spec)
            return
        if not node.placing and (kernel is not None or node.op not in UNIT_KERNELS):
            with self._lock:
                self._found[node.op, id(kernel)] = node.op, kernel

    def begin(self) -> None:
        """Begins to note, with nothing noted."""
        with self._lock:
            self._found.clear()
            self._elsewhere.clear()
        self._computed = times_computed(self._device.type)
        self._given_away = times_fallen_back(self._device.type)
        self._noted = kernels_noted(self._device.type)
        if self._registry is not None and self._note not in self._registry.listeners:
            self._registry.listeners += (self._note,)

    def elsewhere(self) -> dict[str, str]:
        """Returns by op another device that has looked up a kernel of it since."""
        with self._lock:
            return dict(self._elsewhere)

    def own(self) -> frozenset[str]:
        """Returns the ops that the device itself has looked up kernels of since."""
        with self._lock:
            return frozenset(op for op, kernel in self._found.values() if kernel is not None)

    def end(self, ops: Iterable[str] = ()) -> Used:
        """Returns what was looked up since. ops: those that the case is about; none means all that ran."""
        if self._registry is not None:
            self._registry.listeners = tuple(n for n in self._registry.listeners if n != self._note)
        wanted = set(ops)
        with self._lock:
            found = list(self._found.values())
        names = dict.fromkeys([*(self._name(kernel) for _, kernel in found), *self._of_toolchain(wanted)])
        judged = [kernel for op, kernel in found if op in wanted or not wanted]
        fallback = any(self._is_fallback(kernel) for kernel in judged)
        if others := self._others(wanted):
            return Used(tuple(f"{by} (fallback)" for by in others), True)
        if not found and any(map(self._translated_by_reference, wanted)):
            return Used((FALLBACK,), True)
        return Used(tuple(name for name in names if name), fallback)

    def _others(self, wanted: set[str]) -> list[str]:
        """Returns who else has computed these ops in the device's name since, of all ops where none is wanted."""
        return _since(times_fallen_back(self._device.type), self._given_away, wanted)

    def _of_toolchain(self, wanted: set[str]) -> list[str]:
        """Returns the kernels of the device's toolchain that have run for these ops since."""
        return _since(kernels_noted(self._device.type), self._noted, wanted)

    def _translated_by_reference(self, op: str) -> bool:
        """Returns whether a device without kernels of an op, such as a compiler, has had it
        computed by its reference since.
        """
        kernels = self._device.kernels.kernels(op)
        again = times_computed(self._device.type).get(op, 0) > self._computed.get(op, 0)
        return again and all(k.device != self._device.type for k in kernels)

    def _is_fallback(self, kernel: KernelDef | None) -> bool:
        return bool(getattr(self._device, "by_reference", False)) if kernel is None else kernel.fallback

    def _name(self, kernel: KernelDef | None) -> str:
        if kernel is None:
            return FALLBACK if self._is_fallback(None) else ""
        plugin = self._device.kernels.plugin_of(kernel)
        return f"{plugin}: {kernel.origin()}{' (fallback)' if kernel.fallback else ''}"


def _since(now: Mapping[tuple[str, str], int], before: Mapping[tuple[str, str], int], wanted: set[str]) -> list[str]:
    """Returns the names that have been counted since, for the wanted ops, or for all where none is."""
    since = [key for key, count in now.items() if count > before.get(key, 0)]
    return list(dict.fromkeys(by for op, by in since if op in wanted or not wanted))

"""Which dtypes devices have an op in, as far as the kernels say that plugins register: no device is asked."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import KernelDef
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core.plugin.loader import registry as plugins

ROLE = "the runtime itself carries it out, for all devices"
HOST = "the host carries it out, for all devices"


def load() -> KernelRegistry:
    """Returns the kernels of all plugins that are installed; a plugin needs no hardware to register them."""
    plugins.load()
    return plugins.kernels


def device_types(kernels: KernelRegistry) -> list[str]:
    """Returns the device types that have kernels: CPU first, as the one that every machine has."""
    return sorted({k.device for k in kernels.kernels()}, key=lambda name: (name != "CPU", name))


def dtypes(op: OpDef, kernels: KernelRegistry) -> dict[str, str]:
    """By device type, the dtypes that its kernels take by the op's type attrs."""
    by_device: dict[str, list[KernelDef]] = {}
    for kernel in kernels.kernels(op.name):
        by_device.setdefault(kernel.device, []).append(kernel)
    return {device: _types(op, found) for device, found in by_device.items()}


def nobody(op: OpDef) -> str:
    """Returns what stands for devices where no kernel is registered."""
    if op.on_host:
        return HOST
    return ROLE if op.role or op.name.startswith("_") or op.reference is None else "no device"


def _types(op: OpDef, kernels: list[KernelDef]) -> str:
    """Returns the dtypes by type attr that any of the kernels takes."""
    by_attr: dict[str, dict[str, None]] = {}
    free = {attr for k in kernels for attr in op.attrs if attr not in k.types}
    for kernel in kernels:
        for attr, names in kernel.types.items():
            by_attr.setdefault(attr, {}).update(dict.fromkeys(names))
    found = [f"{attr}: {', '.join(names)}" for attr, names in by_attr.items() if attr not in free]
    text = "; ".join(found) or "all that the signature allows"
    return text + " (by the op's reference)" if all(k.fallback for k in kernels) else text

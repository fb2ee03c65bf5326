"""Which devices are accelerators."""

from __future__ import annotations

from collections.abc import Iterable

from timberframe_core.plugin.contracts import Device


def accelerators(devices: Iterable[Device], host: Device | None) -> list[Device]:
    """Returns those that are neither the host nor another way to use the host's processor, in the order given."""
    return [d for d in devices if d is not host and not d.is_cpu]

"""Puts a known bug into a device's kernels, and takes it out again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from timberframe.plugin import loader
from timberframe_conformance.mutants import base
from timberframe_conformance.mutants import catalogue as catalogue  # declares all mutants

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

_registered: set[str] = set()


def activate(target: Target, name: str) -> None:
    """Makes a mutant the kernel of its op; any other name takes all out."""
    device: Any = target.device
    registry = getattr(device, "kernels", loader.registry.kernels)
    if device.type not in _registered:
        _registered.add(device.type)
        registry.register(base.kernels(device.type))
    base.ACTIVE[0] = name
    registry.register([])  # forgets which kernels were found before


@contextmanager
def active(target: Target, name: str) -> Iterator[None]:
    """A mutant within the block."""
    activate(target, name)
    try:
        yield
    finally:
        activate(target, "")

"""A plugin, and ops, for some tests alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from timberframe_core.errors import AlreadyExistsError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import host_ops, loader
from timberframe_sdk.elementwise.sources import SOURCES


@contextmanager
def loaded_plugin(name: str, module: object) -> Iterator[None]:
    """In the block, sessions that are made have the devices, kernels and passes of a module or object with the hooks.

    Sessions that are made after it have not, unless the module was loaded before. AlreadyExistsError where another
    module is loaded by this name.
    """
    before = loader.registry.plugins.get(name)
    if before is not None and before.manager is not None:
        if not before.manager.is_registered(module):
            raise AlreadyExistsError(f"plugin '{name}': is loaded from another module; another name is required")
        yield
        return
    loader.registry.add(name, module)
    try:
        yield
    finally:
        loader.registry.remove(name)
        if before is not None:
            loader.registry.plugins[name] = before  # installed, and not loaded yet


@contextmanager
def temporary_ops() -> Iterator[None]:
    """Takes away after the block what it has defined: ops, their host ops and their sources."""
    before = {op.name for op in registry.all_ops()}
    try:
        yield
    finally:
        for op in registry.all_ops():
            if op.name not in before:
                registry.unregister(op.name)
                host_ops.unregister(op.name)
                SOURCES.pop(op.name, None)

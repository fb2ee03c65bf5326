"""A plugin for some tests alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from timberframe_core.plugin import loader


@contextmanager
def loaded_plugin(name: str, module: object) -> Iterator[None]:
    """In the block, sessions that are made have the devices, kernels and passes of a module or object with the hooks.

    Sessions that are made after it have not. Kernels that the plugin generates from sources remain.
    """
    loader.registry.add(name, module)
    try:
        yield
    finally:
        loader.registry.remove(name)

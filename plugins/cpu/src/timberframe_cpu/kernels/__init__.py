"""Kernel declarations, one module for each family in csrc/, with its kernels in the list KERNELS.

What builders share with the definition of an op they import themselves: it is in memory when a node of the op is built,
and to load all kernels none is needed.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from timberframe_sdk import KernelDef


def all_kernels() -> list[KernelDef]:
    """Returns the kernels of all families."""
    families = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [kernel for family in families for kernel in family.KERNELS]

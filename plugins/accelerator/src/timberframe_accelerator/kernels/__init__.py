"""All kernels that the SDK has for accelerators: a module for each family, with its kernels in the list KERNELS.

What builders share with the definition of an op they import themselves: it is in memory when a node of the op is built.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from timberframe_sdk import KernelDef, OpDef


def accelerator_kernels(device: str) -> list[KernelDef]:
    """Returns the kernels for a device type whose class is an AcceleratorDevice."""
    families = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [replace(kernel, device=device) for family in families for kernel in family.KERNELS]


def generated_kernels(device: str, op: OpDef) -> list[KernelDef]:
    """Returns the kernels for a device type that are made of an op's source: for ops that were
    defined after the others.
    """
    from timberframe_accelerator.kernels.elementwise import source_kernels

    return [replace(kernel, device=device) for kernel in source_kernels(op)]

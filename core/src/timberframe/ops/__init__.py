"""Declarations of all ops, one block each, by family. Nothing here computes on a device.

Importing the package imports every family, which puts its ops into the registry.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

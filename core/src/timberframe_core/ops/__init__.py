"""Declarations of all ops, one block each, in TensorFlow's families. Nothing here computes on a device.

Importing the package imports every family, which puts its ops into the registry. `definition` has what defines an op.
"""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)

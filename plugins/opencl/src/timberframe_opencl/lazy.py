"""The names of pyopencl, which is imported when the first of them is looked up here.

A process that only knows of a device, as `drivers` remembers it, does not wait for that. Modules import this as `cl`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import pyopencl

    globals()[name] = found = getattr(pyopencl, name)
    return found

"""The functions of `tf.*`, one module for each family of ops.

How a function of `api/<family>.py` reaches the user:

- `tf.<name>`: put the name into the module's `__all__` and let `timberframe/__init__.py` hold one line for the family:
  ``from timberframe.api.<family> import *``.
- `tf.math`, `tf.nn`, `tf.linalg`, `tf.bitwise`, ...: a module-level table says which names go there:
  ``NAMESPACES = {"math": ("abs", "sign"), "nn": ("relu",)}``. Such a name need not be in `__all__`
  (`tf.nn.relu` is not `tf.relu`). The namespaces are `NAMES` below; their modules find the tables by themselves, when
  the first of them is used.

An alias is an assignment in the module (``mul = multiply``), listed like any other name.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from timberframe.boundary import guarded

NAMES = ("bitwise", "image", "initializers", "linalg", "lookup", "math", "nn", "quantization", "random", "strings")


def namespace(name: str) -> dict[str, Any]:
    """What the families put into `tf.<name>`, by public name."""
    return _namespaces()[name]


@cache
def _namespaces() -> dict[str, dict[str, Any]]:
    """All namespaces: a function that several of them offer is known by the first."""
    families = [importlib.import_module(info.name) for info in pkgutil.iter_modules(__path__, f"{__name__}.")]
    found: dict[str, dict[str, Any]] = {}
    for name in NAMES:
        found[name] = {
            public: guarded(getattr(module, public), f"tf.{name}.{public}")
            for module in families
            for public in getattr(module, "NAMESPACES", {}).get(name, ())
        }
    return found

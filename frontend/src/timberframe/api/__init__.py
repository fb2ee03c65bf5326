"""The functions of `tf.*`, one module for each family of ops.

How a function of `api/<family>.py` reaches the user:

- `tf.<name>`: put the name into the module's `__all__` and let `timberframe/__init__.py` hold one line for the family,
  which tells type checkers of it: ``from timberframe.api.<family> import *``.
- `tf.math`, `tf.nn`, `tf.linalg`, `tf.bitwise`, ...: a module-level table says which names go there:
  ``NAMESPACES = {"math": ("abs", "sign"), "nn": ("relu",)}``. Such a name need not be in `__all__`
  (`tf.nn.relu` is not `tf.relu`). The namespaces are `NAMES` below.

A family is imported when the first of its names is used: `index.json` says what each has. It is made of these tables by
`python frontend/tools/index_names.py`.

An alias is an assignment in the module (``mul = multiply``), listed like any other name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from timberframe.boundary import guarded

ROOT = ""
NAMES = ("bitwise", "image", "initializers", "linalg", "lookup", "math", "nn", "quantization", "random", "strings")
INDEX = Path(__file__).with_name("index.json")


def offered(space: str) -> dict[str, Any]:
    """Returns what the families put into `tf.<space>`, or into `tf` for ROOT: by public name
    a function that finds it.
    """
    return {name: partial(_find, family, name) for family, spaces in _index().items() for name in spaces.get(space, ())}


@cache
def _index() -> Mapping[str, Mapping[str, list[str]]]:
    """By family and space, the public names."""
    found: Mapping[str, Mapping[str, list[str]]] = json.loads(INDEX.read_bytes())
    return found


@cache
def _family(family: str) -> ModuleType:
    """Returns the module, with the boundary around what it offers: a function is known by the first of its names."""
    module = import_module(f"{__name__}.{family}")
    for space, names in _index()[family].items():
        for name in names:
            if name in vars(module):
                guarded(vars(module)[name], ".".join(filter(None, ("tf", space, name))))
    return module


def _find(family: str, name: str) -> Any:
    return getattr(_family(family), name)

"""Which module defines an op, known before it is imported: most programs need few of the modules.

It stands in `index.json`, which `core/tools/index_ops.py` writes. An op that it lacks is found by importing them all.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

_PACKAGE = __name__.removesuffix(".definition.index")
FILE = Path(__file__).with_name("index.json")


class IndexedOp(NamedTuple):
    """What is known of an op: its module, and what kernels are checked against.

    type_attrs: names of the attrs that are dtypes. inputs: their number, None where one is a list.
    """

    module: str
    type_attrs: tuple[str, ...]
    inputs: int | None


@cache
def indexed_ops() -> dict[str, IndexedOp]:
    """Returns the ops of the core, by name."""
    return {
        name: IndexedOp(f"{_PACKAGE}.{module}", tuple(type_attrs), inputs)
        for module, ops in json.loads(FILE.read_bytes()).items()
        for name, (type_attrs, inputs) in ops.items()
    }


@cache
def import_all() -> None:
    """Imports every module of every family."""
    for module in walk_packages(import_module(_PACKAGE).__path__, f"{_PACKAGE}."):
        import_module(module.name)

"""Which module defines an op, known before it is imported: most programs need few of the modules.

It stands in a file `index.json`, which `core/tools/index_ops.py` writes: one of the frame's own ops, and one of each
package that names all its ops in this way. An op that it lacks is found by importing all modules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

PACKAGE = __name__.removesuffix(".definition.index")
FILE = Path(__file__).with_name("index.json")


class IndexedOp(NamedTuple):
    """What is known of an op: its module, and what kernels are checked against.

    type_attrs: names of the attrs that are dtypes. inputs: their number, None where one is a list.
    """

    module: str
    type_attrs: tuple[str, ...]
    inputs: int | None


@cache
def read_index(file: Path, package: str) -> Mapping[str, IndexedOp]:
    """Returns the ops of a package, by name, as the file says."""
    return {
        name: IndexedOp(f"{package}.{module}", tuple(type_attrs), inputs)
        for module, ops in json.loads(file.read_bytes()).items()
        for name, (type_attrs, inputs) in ops.items()
    }


def indexed_ops() -> Mapping[str, IndexedOp]:
    """Returns the frame's own ops, by name."""
    return read_index(FILE, PACKAGE)


def modules_of(package: str) -> Iterator[str]:
    """Yields the names of all modules of a package that are no programs, importing the packages among them."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            yield module.name


@cache
def import_all() -> None:
    """Imports every module of every family of the frame's own ops."""
    for module in modules_of(PACKAGE):
        import_module(module)

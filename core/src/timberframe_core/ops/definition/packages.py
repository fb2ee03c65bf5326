"""Ops of installed packages, whose modules are imported at first need.

An entry point of the group names an op and the module that defines it. One whose name is `*` stands for all ops of a
package: it names a module, and the file `index.json` beside that lists the ops of the package. A module that fails
costs only its own ops: it is logged once, and messages about one of them say why it is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from timberframe_core import logging
from timberframe_core.ops.definition.index import IndexedOp, modules_of, read_index

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "timberframe.ops"
ALL_OPS = "*"
"""Name of the entry points that stand for all ops of a package."""

_tried: dict[str, str] = {}
"""By module, why it could not be imported; "" where it was."""


class _Source(NamedTuple):
    """Where an op is: the entry point and the module; and what the package's index says, where it has one."""

    entry: EntryPoint
    module: str
    indexed: IndexedOp | None = None


@cache
def entries() -> tuple[EntryPoint, ...]:
    """Returns the entry points of ops, read once: that takes milliseconds, and some nodes, such
    as fused ones, have no op.
    """
    from importlib.metadata import entry_points  # here, since it takes long to import

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def whole_packages() -> list[EntryPoint]:
    """Returns the entry points that stand for all ops of their packages."""
    return [entry for entry in entries() if entry.name == ALL_OPS]


@cache
def _sources() -> Mapping[str, _Source]:
    """Returns where the ops are, by name; a package whose index cannot be read is logged and has none."""
    found = {entry.name: _Source(entry, entry.module) for entry in entries() if entry.name != ALL_OPS}
    for entry in whole_packages():
        try:
            spec = _spec_of(entry)
            ops = read_index(Path(str(spec.origin)).with_name("index.json"), str(spec.parent))
        except Exception as e:
            _keep(entry, entry.module, e)
        else:
            found |= {name: _Source(entry, op.module, op) for name, op in ops.items()}
    return found


def _spec_of(entry: EntryPoint) -> ModuleSpec:
    """Returns where the module of an entry point is; ModuleNotFoundError where there is none."""
    spec = find_spec(entry.module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {entry.module!r}", name=entry.module)
    return spec


def indexed(name: str) -> IndexedOp | None:
    """Returns what the index of an installed package says of an op; None where none does."""
    source = _sources().get(name)
    return None if source is None else source.indexed


def load(name: str) -> None:
    """Imports the module of an op, if a package names one: once; an error is kept and logged."""
    source = _sources().get(name)
    if source is not None:
        load_module(source.entry, source.module)


def load_module(entry: EntryPoint, module: str) -> bool:
    """Imports a module of an entry point's package, once; an error is kept and logged. Returns whether it is there."""
    if module not in _tried:
        try:
            import_module(module)
            _tried[module] = ""
        except (Exception, SystemExit) as e:
            _keep(entry, module, e)
    return not _tried[module]


def load_whole_packages() -> None:
    """Imports all modules of the packages that stand for their ops: the index may lack one that was just written."""
    _sources()
    for entry in whole_packages():
        if load_module(entry, entry.module):
            for module in modules_of(str(_spec_of(entry).parent)):
                load_module(entry, module)


def load_all() -> None:
    """Imports all modules of ops, as far as they can be imported."""
    for source in _sources().values():
        load_module(source.entry, source.module)
    load_whole_packages()


def missing() -> dict[str, str]:
    """Returns the ops whose modules were imported, or could not be, with package, entry point and what is wrong if
    the op is not there.
    """
    return {
        name: f"{described(source.entry)}: {_tried[source.module] or 'the module does not define the op'}"
        for name, source in _sources().items()
        if source.module in _tried
    }


def absent() -> list[str]:
    """Returns why packages are not there that alone know which ops they have."""
    _sources()
    return [f"{described(entry)}: {_tried[entry.module]}" for entry in whole_packages() if _tried.get(entry.module)]


def described(entry: EntryPoint) -> str:
    """Returns package and entry point, for messages."""
    package = f"package {entry.dist.name} {entry.dist.version}, " if entry.dist is not None else ""
    return f"{package}entry point '{entry.name} = {entry.value}'"


def _keep(entry: EntryPoint, module: str, error: BaseException) -> None:
    """Keeps and logs why a module is not there."""
    from timberframe_core.failures import describe_failure

    _tried[module] = describe_failure(error)
    logging.warning("ops of %s are left out: %s", described(entry), _tried[module])

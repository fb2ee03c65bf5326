"""Ops of installed packages: an entry point names each op and the module that defines it, imported at first need.

A module that fails costs only its own ops: it is logged once, and messages about one of them say why it is absent.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from timberframe_core import logging

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "timberframe.ops"

_tried: dict[str, str] = {}
"""By what an entry point names, why that could not be imported; "" where it was."""


@cache
def entries() -> tuple[EntryPoint, ...]:
    """Returns the entry points of ops, read once: that takes milliseconds, and some nodes, such
    as fused ones, have no op.
    """
    from importlib.metadata import entry_points  # here, since it takes long to import

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def load(entry: EntryPoint) -> None:
    """Imports what an entry point names, once; an error is kept and logged."""
    if entry.value in _tried:
        return
    try:
        entry.load()
        _tried[entry.value] = ""
    except (Exception, SystemExit) as e:
        from timberframe_core.failures import describe_failure

        _tried[entry.value] = describe_failure(e)
        logging.warning("ops of %s are left out: %s", _described(entry), _tried[entry.value])


def absence(entry: EntryPoint) -> str | None:
    """Returns why the op of an entry point that was loaded is not there, for messages; None
    for one that was not loaded.
    """
    if entry.value not in _tried:
        return None
    return f"{_described(entry)}: {_tried[entry.value] or 'the module does not define the op'}"


def _described(entry: EntryPoint) -> str:
    package = f"package {entry.dist.name} {entry.dist.version}, " if entry.dist is not None else ""
    return f"{package}entry point '{entry.name} = {entry.value}'"

"""The table of translators: which function makes what of the graph for an op of ONNX, from which opset on.

A translator is a function of the node and its inputs; inputs that are left out are None. It returns the output, or a
tuple of outputs. The newest translator that is not newer than the model's opset is taken. An op whose older forms
differ by attributes and inputs alone has one translator, and an upgrade (see `upgrades`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import timberframe_onnx.families as families

Function = Callable[..., Any]
DEFAULT_DOMAIN = ""
MACHINE_LEARNING = "ai.onnx.ml"
PREVIEW = "ai.onnx.preview"
TRAINING = "ai.onnx.preview.training"
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Translator:
    """One entry of the table.

    moves: it only moves elements, so that codes are moved as elements are. takes_coded: it takes `Coded` inputs itself.
    suits: whether it is for this node with these inputs; others are left to the op's body. None: for all.
    """

    op: str
    domain: str
    since: int
    function: Function
    moves: bool = False
    takes_coded: bool = False
    suits: Callable[[Any, Sequence[Any]], bool] | None = None


_TABLE: dict[tuple[str, str], list[Translator]] = {}


def translates(
    *ops: str,
    since: int = 1,
    domain: str = DEFAULT_DOMAIN,
    moves: bool = False,
    takes_coded: bool = False,
    suits: Callable[[Any, Sequence[Any]], bool] | None = None,
) -> Callable[[Function], Function]:
    """Enters a function as the translator of ops, from the opset `since` of their domain on."""

    def enter(function: Function) -> Function:
        for op in ops:
            entry = Translator(op, domain, since, function, moves, takes_coded, suits)
            _TABLE.setdefault((domain, op), []).append(entry)
        return function

    return enter


@cache
def load_families() -> None:
    """Imports all modules of translators."""
    for module in iter_modules(families.__path__):
        import_module(f"{families.__name__}.{module.name}")


def translator(domain: str, op: str, opset: int) -> Translator | None:
    """Returns the translator of an op in an opset, None where there is none."""
    load_families()
    known = [t for t in _TABLE.get((domain, op), ()) if t.since <= opset]
    return max(known, key=lambda t: t.since, default=None)


def translators() -> list[Translator]:
    """Returns the whole table, ordered by domain, op and opset."""
    load_families()
    return sorted((t for entries in _TABLE.values() for t in entries), key=lambda t: (t.domain, t.op, t.since))

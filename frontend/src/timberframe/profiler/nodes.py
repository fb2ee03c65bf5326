"""Profiles as trees of scopes and operations, in TensorFlow's words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class GraphNodeProto:
    """A scope or operation in a profile, with what is in it.

    accounted: it has figures of its own. shape: sizes of its variable, such as "3x4". parameters: elements of its
    variables. float_ops: floating operations of a run. exec_micros: microseconds that runs took. The totals count what
    is in it, too. children: the scopes and operations in it.
    """

    def __init__(self, name: str, accounted: bool = False) -> None:
        self.name = name
        self.accounted = accounted
        self.shape = ""
        self.parameters = self.float_ops = self.exec_micros = 0
        self.total_parameters = self.total_float_ops = self.total_exec_micros = 0
        self.children: list[GraphNodeProto] = []

    def __str__(self) -> str:
        return "\n".join(lines(self, list(_KINDS), sys.maxsize))


def add_up(node: GraphNodeProto) -> None:
    """Sets the totals of a node and of all below it."""
    for child in node.children:
        add_up(child)
    for kind in ("parameters", "float_ops", "exec_micros"):
        total = getattr(node, kind) + sum(getattr(child, f"total_{kind}") for child in node.children)
        setattr(node, f"total_{kind}", total)


def select(node: GraphNodeProto, settings: Mapping[str, Any]) -> None:
    """Leaves out what is too small or has another name, but for what is in it."""
    kept: list[GraphNodeProto] = []
    for child in node.children:
        select(child, settings)
        shown = any(re.fullmatch(pattern, child.name) for pattern in settings["show_name_regexes"])
        large = (
            child.parameters >= settings["min_params"]
            and child.float_ops >= settings["min_float_ops"]
            and child.total_exec_micros >= settings["min_micros"]
        )
        kept += [child] if shown and large else child.children
    order = _KINDS.get(settings["order_by"])
    kept.sort(key=lambda c: c.name if order is None else -getattr(c, f"total_{order}"))
    node.children = kept


_KINDS = {"params": "parameters", "float_ops": "float_ops", "micros": "exec_micros"}


def lines(node: GraphNodeProto, selected: Sequence[str], depth: int, level: int = 0) -> Iterator[str]:
    """Yields a line for a node and for each one below it, down to `depth` levels, with the selected figures."""
    figures = [node.shape] if node.shape and "params" in selected else []
    figures += [_figure(node, kind) for kind in _KINDS if kind in selected]
    yield f"{'  ' * level}{node.name} ({', '.join(figures)})"
    if level < depth:
        for child in node.children:
            yield from lines(child, selected, depth, level + 1)


def _figure(node: GraphNodeProto, kind: str) -> str:
    """Returns a node's own figure and its total, such as ``1.20k/3.40k params``."""
    word = _time if kind == "micros" else _number
    own = word(getattr(node, _KINDS[kind])) if node.accounted else "--"
    return f"{own}/{word(getattr(node, f'total_{_KINDS[kind]}'))}{_UNITS[kind]}"


_UNITS = {"params": " params", "float_ops": " flops", "micros": ""}


def _number(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.2f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}m"


def _time(micros: int) -> str:
    if micros < 1000:
        return f"{micros}us"
    return f"{micros / 1000:.2f}ms" if micros < 1_000_000 else f"{micros / 1_000_000:.2f}sec"

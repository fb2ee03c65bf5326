"""Patterns of nodes that one kernel runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One node of a pattern, see KernelDef.covers.

    name: what other parts call its output. inputs: for each of its inputs the name of an earlier part, or any other
    name, which stands for whatever is there; the same name, for the same value everywhere.
    """

    name: str
    op: str
    inputs: tuple[str, ...]

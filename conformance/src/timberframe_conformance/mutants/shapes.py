"""Bugs in what shape functions say of partly known inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.shapes import Shape
from timberframe_ops.math import selection

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

Broadcast = Callable[[Shape, Shape], Shape]


@seam_mutant(
    "size-guessed", "the shape of SelectV2 takes sizes that are not known for one", "shapes", only=("shapes/SelectV2/",)
)
def _(replacements: Replacements, target: Target) -> None:
    def guessing(right: Broadcast) -> Broadcast:
        return lambda a, b: right(_guessed(a), _guessed(b))

    replacements.replace(selection, "broadcast", guessing)


def _guessed(shape: Shape) -> Shape:
    return None if shape is None else tuple(1 if d is None else d for d in shape)

"""The Optional* ops, which the executor carries out: host-side values that hold arrays, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.plan import Located
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.lists import Driver
from timberframe_core.shapes import StaticShape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run


class OptionalValue:
    """Some arrays, or None where the value is missing."""

    __slots__ = ("components",)

    shape: StaticShape = ()

    def __init__(self, components: tuple[Located, ...] | None) -> None:
        self.components = components

    def copy(self) -> OptionalValue:
        """The value itself, which never changes."""
        return self


def _none(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(OptionalValue(None), None)]


def _from_value(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(OptionalValue(tuple(inputs)), None)]


def _get_value(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    components = inputs[0][0].components
    if components is None or len(components) != len(node.outputs):
        found = "is missing" if components is None else f"has {len(components)} components"
        raise InvalidArgumentError(
            f"{node.op.name} '{node.name}': the value {found}; one of {len(node.outputs)} components is required",
            node.name,
        )
    return list(components)


def _has_value(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(np.array(inputs[0][0].components is not None), None)]


OPTIONAL: dict[str, Driver] = {
    "OptionalFromValue": _from_value,
    "OptionalGetValue": _get_value,
    "OptionalHasValue": _has_value,
    "OptionalNone": _none,
}
"""How each op runs."""

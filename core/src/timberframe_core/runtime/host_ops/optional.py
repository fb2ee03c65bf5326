"""The Optional* ops, which the executor carries out: host-side values that hold arrays, or nothing."""

from __future__ import annotations

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import StaticShape


class OptionalValue:
    """Some arrays, or None where the value is missing."""

    __slots__ = ("components",)

    shape: StaticShape = ()

    def __init__(self, components: tuple[Located, ...] | None) -> None:
        self.components = components

    def copy(self) -> OptionalValue:
        """Returns the value itself, which never changes."""
        return self


@host_op("OptionalNone")
def _none(call: HostCall) -> list[Located]:
    return [(OptionalValue(None), None)]


@host_op("OptionalFromValue", located=["components"])
def _from_value(call: HostCall) -> list[Located]:
    return [(OptionalValue(tuple(call.inputs)), None)]


@host_op("OptionalGetValue")
def _get_value(call: HostCall) -> list[Located]:
    components = call.inputs[0].components
    if components is None or len(components) != len(call.dtypes):
        found = "is missing" if components is None else f"has {len(components)} components"
        raise InvalidArgumentError(
            f"{call.op} '{call.name}': the value {found}; one of {len(call.dtypes)} components is required",
            call.name,
        )
    return list(components)


@host_op("OptionalHasValue")
def _has_value(call: HostCall) -> list[Located]:
    return [(np.array(call.inputs[0].components is not None), None)]

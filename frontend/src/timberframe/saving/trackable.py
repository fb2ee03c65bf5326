"""Objects that checkpoints of objects save: those with variables, or with other such objects, as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from timberframe.api.partitioned_variables import PartitionedVariable
from timberframe.api.variables import Variable


class Restoration(Protocol):
    """What an object waits for whose checkpoint has more than the object has yet."""

    def go_on(self) -> None:
        """Restores what has been made since."""


class Trackable:
    """An object whose attributes are saved, as far as they are variables or objects that have some."""

    _untracked: tuple[str, ...] = ()
    """Attributes that hold again what others hold."""

    _restoration: Restoration | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self._restoration is not None and is_tracked(value):
            self._restoration.go_on()

    def _tracked(self) -> dict[str, Any]:
        """Returns what is saved of it, by name."""
        return {k: v for k, v in vars(self).items() if k not in self._untracked and is_tracked(v)}

    def _slots_of(self, variable: Any) -> dict[str, Any]:
        """Returns the variables that it keeps for another one, by name."""
        return {}


def is_tracked(value: Any) -> bool:
    """Returns whether a checkpoint saves a value that is an attribute."""
    if isinstance(value, list):
        return any(is_tracked(x) for x in value)
    if isinstance(value, dict):
        return any(is_tracked(x) for x in value.values())
    return isinstance(value, Variable | PartitionedVariable | Trackable)


def tracked_by(value: Any) -> Mapping[str, Any]:
    """Returns the parts of what is tracked, by name."""
    if isinstance(value, list):
        return {str(i): x for i, x in enumerate(value) if is_tracked(x)}
    if isinstance(value, dict):
        return {str(k): x for k, x in value.items() if is_tracked(x)}
    return value._tracked() if isinstance(value, Trackable) else {}

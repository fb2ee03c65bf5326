"""Functions of the framework or of a device that others stand in for, to look on or to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Replacements:
    """Functions that others stand in for, until it is undone."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replaces a function, or a method of a class or object, by what `make` makes of it."""
        own = name in vars(owner)
        old = vars(owner).get(name)
        setattr(owner, name, make(getattr(owner, name)))
        self._undo.append(lambda: setattr(owner, name, old) if own else delattr(owner, name))

    def undo(self) -> None:
        """Puts back what was there, the last first."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Replacements:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

"""Reference: stands for a tensor or variable where objects are compared and hashed."""

from __future__ import annotations

from typing import Any


class Reference:
    """Stands for an object: two are equal where they stand for the same one."""

    __slots__ = ("_object",)

    def __init__(self, obj: Any) -> None:
        self._object = obj

    def deref(self) -> Any:
        """Returns the object."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference to {self._object!r}>"

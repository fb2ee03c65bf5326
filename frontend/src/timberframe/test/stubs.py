"""Attributes that a test replaces for a while."""

from __future__ import annotations

from typing import Any


class StubOutForTesting:
    """Replaces attributes of modules, classes and objects, and puts the old ones back.

    It is a context manager: at its end everything is as it was.
    """

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, bool]] = []
        self._set: list[tuple[Any, str, Any, bool]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:  # noqa: N802 - TensorFlow's name
        """Puts back what `SmartSet` and `Set` replaced."""
        self.SmartUnsetAll()
        self.UnsetAll()

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Replaces an attribute that obj, or a class that it has it from, has; AttributeError where there is none."""
        getattr(obj, attr_name)
        _replace(self._replaced, obj, attr_name, new_attr)

    def SmartUnsetAll(self) -> None:  # noqa: N802 - TensorFlow's name
        """Puts back what `SmartSet` replaced, the last one first."""
        _restore(self._replaced)

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Replaces an attribute of parent itself; AttributeError where there is none."""
        getattr(parent, child_name)
        _replace(self._set, parent, child_name, new_child)

    def UnsetAll(self) -> None:  # noqa: N802 - TensorFlow's name
        """Puts back what `Set` replaced, the last one first."""
        _restore(self._set)


def _replace(replaced: list[tuple[Any, str, Any, bool]], holder: Any, name: str, value: Any) -> None:
    own = vars(holder)
    replaced.append((holder, name, own.get(name), name in own))
    setattr(holder, name, value)


def _restore(replaced: list[tuple[Any, str, Any, bool]]) -> None:
    while replaced:
        holder, name, value, own = replaced.pop()
        if own:
            setattr(holder, name, value)
        else:
            delattr(holder, name)

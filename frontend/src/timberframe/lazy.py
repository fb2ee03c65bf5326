"""Names of the API that are imported when they are first used, since many programs do without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from timberframe.boundary import guarded


class UnknownNameError(AttributeError):
    """A module of the API has no such name; the message says what serves instead, or has nearly this name.

    It is put together when it is shown: `hasattr` and the like need none.
    """

    def __init__(self, module: str, name: str) -> None:
        super().__init__(module, name)
        self._module, self._missing = module, name

    def __str__(self) -> str:
        import difflib

        from timberframe.compat.absent import hint

        inside = self._module.partition(".")[2]
        known_as = ".".join(filter(None, ("timberframe", inside)))
        advice = hint(f"{inside}.{self._missing}" if inside else self._missing)
        if not advice:
            names = [n for n in dir(sys.modules[self._module]) if not n.startswith("_")]
            near = difflib.get_close_matches(self._missing, names, 1, 0.75)
            advice = f"did you mean '{near[0]}'?" if near else ""
        return f"module '{known_as}' has no attribute '{self._missing}'" + (f"; {advice}" if advice else "")


def lazy_names(module: str, names: Mapping[str, str | Callable[[], Any]]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__` for these names, which keeps what it found, with the boundary around it.

    names: for each the module that it is, ``module:attribute``, or a function that finds it. Raises UnknownNameError
    for others.
    """

    def find(name: str) -> Any:
        where = names.get(name)
        if where is None:
            raise UnknownNameError(module, name)
        if callable(where):
            value = where()
        else:
            file, _, attribute = where.partition(":")
            found = importlib.import_module(file)
            value = getattr(found, attribute) if attribute else found
        value = guarded(value, ".".join(["tf", *module.split(".")[1:], name]))
        setattr(sys.modules[module], name, value)
        return value

    return find

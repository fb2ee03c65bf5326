"""Names of the API that are imported when they are first used, since many programs do without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` for these names, which keeps what it found.

    names: for each the module that it is, or ``module:attribute``. Raises AttributeError for others.
    """

    def find(name: str) -> Any:
        where = names.get(name)
        if where is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        file, _, attribute = where.partition(":")
        found = importlib.import_module(file)
        value = getattr(found, attribute) if attribute else found
        setattr(sys.modules[module], name, value)
        return value

    return find

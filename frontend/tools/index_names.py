"""Writes the index of the families of `tf.*` (`timberframe/api/__init__.py`) after names were added, moved or removed.

`python frontend/tools/index_names.py`
"""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import iter_modules

from timberframe import api


def index_as_text() -> str:
    """Returns one line for each family, as imported now: its public names by the space where users find them."""
    lines = []
    for info in iter_modules(api.__path__):
        module = import_module(f"timberframe.api.{info.name}")
        tables = {api.ROOT: getattr(module, "__all__", ()), **getattr(module, "NAMESPACES", {})}
        spaces = {space: list(tables[space]) for space in (api.ROOT, *api.NAMES) if tables.get(space)}
        if spaces:
            lines.append(f"{json.dumps(info.name)}: {json.dumps(spaces)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    api.INDEX.write_text(index_as_text())

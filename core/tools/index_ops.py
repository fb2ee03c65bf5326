"""Writes the indexes of ops (`timberframe_core/ops/definition/index.py`) after ops were added, moved or removed.

`python core/tools/index_ops.py`
"""

from __future__ import annotations

import json
from pathlib import Path

import timberframe_ops
from timberframe_core.ops.definition import index, registry

INDEXES = {index.PACKAGE: index.FILE, timberframe_ops.__name__: Path(timberframe_ops.__file__).with_name("index.json")}
"""By package, the file that lists its ops."""


def index_as_text(package: str) -> str:
    """Returns one line for each module of a package, as imported now: its ops, and of each what an
    `IndexedOp` has besides the module.
    """
    found: dict[str, dict[str, list[object]]] = {}
    for op in registry.all_ops():
        module = registry.module_of(op.name)
        if module.startswith(f"{package}."):
            known = [registry.type_attrs(op.name), registry.input_count(op.name)]
            found.setdefault(module.removeprefix(f"{package}."), {})[op.name] = known
    lines = [f"{json.dumps(module)}: {json.dumps(ops)}" for module, ops in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    for file in INDEXES.values():
        file.write_text("{}\n")  # the modules that it names may have moved
    for package, file in INDEXES.items():
        file.write_text(index_as_text(package))

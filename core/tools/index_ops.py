"""Writes the index of ops (`timberframe_core/ops/definition/index.py`) after ops were added, moved or removed.

`python core/tools/index_ops.py`
"""

from __future__ import annotations

import json

from timberframe_core.ops.definition import index, registry


def index_as_text() -> str:
    """Returns one line for each module, as imported now: its ops, and of each what an
    `IndexedOp` has besides the module.
    """
    package = "timberframe_core.ops."
    found: dict[str, dict[str, list[object]]] = {}
    for op in registry.all_ops():
        module = registry.module_of(op.name)
        if module.startswith(package):
            known = [registry.type_attrs(op.name), registry.input_count(op.name)]
            found.setdefault(module.removeprefix(package), {})[op.name] = known
    lines = [f"{json.dumps(module)}: {json.dumps(ops)}" for module, ops in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    index.FILE.write_text("{}\n")  # the modules that it names may have moved
    index.FILE.write_text(index_as_text())

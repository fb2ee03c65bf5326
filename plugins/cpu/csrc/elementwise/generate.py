"""Writes kernels of the SDK's elementwise sources that have none by hand: ``generate.py SDK PACKAGE OUTPUT DEPFILE``.

SDK, PACKAGE: the folders of timberframe_sdk and timberframe_cpu. Only the table and the loops are imported of them, so
that a build needs neither their dependencies nor this package itself. DEPFILE tells ninja which declarations were read.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType


def main(sdk: Path, package: Path, output: Path, depfile: Path) -> None:
    for folder in (sdk, package):
        module = ModuleType(folder.name)
        module.__path__ = [str(folder)]  # a package whose __init__.py does not run
        sys.modules[folder.name] = module
    from timberframe_cpu.loops import OPERANDS, includes, loop_source
    from timberframe_sdk.elementwise.sources import ALL_TYPES, SOURCES

    declarations = sorted((package / "kernels").glob("*.py"))
    written = _named_in(declarations)
    text, entries = ['#include "common/broadcast.h"\n'], []
    for op, source in SOURCES.items():
        if op in written:
            continue
        if source.attr_types() and max(map(source.operands, filter(source.template, ALL_TYPES))) == OPERANDS:
            sys.exit(
                f"{op}: {OPERANDS} operands and attrs; with attrs a kernel that is made has fewer, write it by hand"
            )
        text.append(includes(source))
        for dtype in filter(source.template, ALL_TYPES):
            name, operands = f"{op}_{dtype}", [dtype] * source.operands(dtype)
            loop = loop_source(f"{name}_loop", source, operands, source.result or dtype)
            kernel = "TF_BROADCAST_KERNEL_OF" if source.attr_types() else "TF_BROADCAST_KERNEL"
            text.append(f"static {loop}{kernel}({name}, {len(operands)})\n")
            entries.append(f"TF_ENTRY({name}), ")
    text.append(f"TF_TABLE(elementwise_generated) = {{{''.join(entries)}TF_END}};\n")
    output.write_text("\n".join(text))
    depfile.write_text(f"{os.path.relpath(output)}: {' '.join(map(str, declarations))}\n")


def _named_in(files: Iterable[Path]) -> set[str]:
    """Returns the strings in the kernels' declarations, the ops' names among them."""
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:]))

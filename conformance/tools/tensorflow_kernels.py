"""Writes the dtypes for which TensorFlow registers a CPU kernel, for the ops of Timberframe.

Run it with a Python that has timberframe and tensorflow:

    python conformance/tools/tensorflow_kernels.py conformance/src/timberframe_conformance/data/tensorflow_kernels.json

It takes the ops that are registered, which from then on must be. For each the file holds a list of constraint sets,
``{type attr: [dtype, ...]}``: a kernel exists for every combination within one set. An attr that a set does not name is
unconstrained.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip

NUMERIC = sorted(set(DTYPES.values()) - {"string"})

# TensorFlow registers these without a constraint on some attr, and rejects other dtypes when the kernel is built.
UNCONSTRAINED = {
    "Cast": [{"SrcT": NUMERIC, "DstT": NUMERIC}],
    "ComplexAbs": [{"T": ["complex64"], "Tout": ["float32"]}, {"T": ["complex128"], "Tout": ["float64"]}],
}


def constraint_sets(registered: list[Any], attrs: list[str]) -> list[dict[str, list[str]]]:
    """Returns the kernels of one op as few constraint sets: those that differ in one attr only
    are joined, attr by attr.
    """
    rows: list[dict[str, list[str]]] = []
    for kernel in registered:
        row = {c.name: sorted(DTYPES[t] for t in c.allowed_values.list.type if t in DTYPES) for c in kernel.constraint}
        row = {name: types for name, types in row.items() if name in attrs}
        if all(row.values()) and row not in rows:
            rows.append(row)
    for name in reversed(attrs):
        rows = join(rows, name)
    return rows


def join(rows: list[dict[str, list[str]]], name: str) -> list[dict[str, list[str]]]:
    groups: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        key = json.dumps({k: v for k, v in row.items() if k != name} | {"": name in row}, sort_keys=True)
        if key in groups and name in row:
            groups[key][name] = sorted({*groups[key][name], *row[name]})
        else:
            groups.setdefault(key, dict(row))
    return list(groups.values())


def main(path: str) -> None:
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry

    from timberframe_core.ops.definition import registry

    ops = [op.name for op in registry.all_ops() if not op.name.startswith("_") and ">" not in op.name]
    by_op: dict[str, list[Any]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            by_op.setdefault(kernel.op, []).append(kernel)
    table: dict[str, Any] = {}
    for op in ops:
        definition = op_def_registry.get(op)
        if definition is None:
            continue
        cpu = [k for k in by_op.get(op, []) if k.device_type == "CPU"] or by_op.get(op, [])
        attrs = [a.name for a in definition.attr if a.type in ("type", "list(type)")]
        if op in UNCONSTRAINED:
            table[op] = UNCONSTRAINED[op]
        elif cpu:
            table[op] = constraint_sets(cpu, attrs)
    lines = ",\n".join(f"  {json.dumps(op)}: {json.dumps(sets)}" for op, sets in sorted(table.items()))
    source = json.dumps(f"TensorFlow {tf.__version__}, kernels registered for CPU")
    text = f'{{\n"source": {source},\n"required": {json.dumps(ops)},\n"ops": {{\n{lines}\n}}\n}}\n'
    Path(path).write_text(text)
    print(f"{path}: {len(table)} ops")


if __name__ == "__main__":
    main(sys.argv[1])

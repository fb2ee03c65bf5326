"""Pages of the reference of ops: one for each family, an index, and a table of measured accuracies."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import op_devices
import op_facts
from markdown import plain, table
from measured import Measured
from op_examples import example
from op_written import written
from timberframe_conformance.reports.breadth import OPS
from timberframe_conformance.reports.breadth import family as family_of
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.kernels import KernelRegistry

PREAMBLE = """Each op has its signature in TensorFlow's notation, its attrs, its gradient, its tolerance in the
conformance suite, and the dtypes that the kernels of each device take. Measured accuracies are of the reports in
conformance/results; [all of them](../accuracy.md) are in one table. Examples begin with `import numpy as np` and
`import timberframe as tf`; they were run on the CPU while this page was built."""

ACCURACY = """# Measured accuracies

The worst error that the conformance suite found for each op, device and dtype. It is in ULP, units in the last place:
0.5 is what correct rounding costs, 1 the distance of neighbouring numbers of the dtype. In parentheses is how much of
the op's limit that is, or of what the device's profile allows ([Devices](../devices.md) lists that); [Judge a
device](../conformance.md#truth-and-tolerance) says where limits come from. A device whose cell is empty was not
measured on that op: `conformance run --device=cpu --op Tanh --json FILE` does it. Figures are of the newest report of
each device in conformance/results; [Devices](../devices.md) has what they were run with.

"""
"""What the page of measured accuracies begins with."""


@dataclass
class Facts:
    """What pages are made of besides the ops: kernels of plugins, and accuracies by op."""

    kernels: KernelRegistry
    accuracies: Mapping[str, Sequence[Measured]]


def families() -> dict[str, list[OpDef]]:
    """Returns all ops by family: the core's own, then one for each package that defines further ones."""
    found: dict[str, list[OpDef]] = {}
    for op in registry.all_ops():
        found.setdefault(family_of(op.name), []).append(op)
    return dict(sorted(found.items(), key=lambda item: (not _is_core(item[0]), item[0])))


def _is_core(family: str) -> bool:
    return importlib.util.find_spec(OPS + family) is not None


def family_page(family: str, ops: Sequence[OpDef], facts: Facts) -> str:
    """Returns the page of a family."""
    what = importlib.import_module(OPS + family).__doc__ if _is_core(family) else f"Ops of the package {family}."
    head = f"# Ops: {family}\n\n{(what or '').strip()}\n\n{PREAMBLE}\n"
    return head + "".join(op_section(op, facts) for op in ops)


def op_section(op: OpDef, facts: Facts) -> str:
    """Returns all about one op."""
    parts = [f"\n## {op.name}\n", f"{plain(op.doc)}\n", f"```text\n{op_facts.signature(op)}\n```\n", op_facts.attrs(op)]
    parts.append(_properties(op))
    devices = op_devices.dtypes(op, facts.kernels)
    rows = [(device, devices.get(device, "no kernel")) for device in op_devices.device_types(facts.kernels)]
    parts.append(table(("device", "dtypes"), rows) if devices else f"Devices: {op_devices.nobody(op)}.\n")
    parts.append(accuracy_table(facts.accuracies.get(op.name, ())))
    found = example(op)
    if found:
        parts.append(f"```python\n{found[0]}```\n\n```text\n{found[1].rstrip()}\n```\n")
    else:
        parts.append(f"No example: {written().reasons.get(op.name, 'no sample of the op runs by itself.')}\n")
    return "\n".join(part for part in parts if part)


def _properties(op: OpDef) -> str:
    lines = [
        ("Gradient", op_facts.gradient(op)),
        ("Tolerance", op_facts.tolerance(op)),
        ("Traits", op_facts.traits(op)),
    ]
    return "\n".join(f"- **{name}**: {plain(text)}" for name, text in lines if text) + "\n"


def accuracy_table(found: Sequence[Measured]) -> str:
    """Returns what was measured, by device and dtypes."""
    rows = [
        (m.device, m.dtypes, f"{m.ulp:.3g}", f"{m.share:.0%}", f"{m.cases:,}", f"{m.failing:,}", m.date)
        for m in sorted(found, key=lambda m: (m.dtypes, m.device))
    ]
    heads = ("accuracy measured on", "dtype", "worst error (ULP)", "part of its limit", "cases", "failing", "date")
    return table(heads, rows)


def index_page(found: Mapping[str, Sequence[OpDef]]) -> str:
    """Returns the list of families, each with its ops."""
    pages = "\n".join(found)
    return (
        f"# Op reference\n\nAll {sum(map(len, found.values()))} ops of the registry, those of installed plugins "
        "included, by family. Search finds an op by its name. [Measured accuracies](../accuracy.md) has devices side "
        f"by side.\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    ) + "".join(f"\n## {family}\n\n{_links(family, ops)}\n" for family, ops in found.items())


def _links(family: str, ops: Sequence[OpDef]) -> str:
    return "\n".join(
        [f"[Page of the family]({family}.md):", *(f"[{op.name}]({family}.md#{slug(op.name)})" for op in ops)]
    )


def slug(name: str) -> str:
    """Returns the anchor of an op's heading."""
    return "".join(c for c in name.lower() if c.isalnum() or c in "_-")


def accuracy_page(found: Mapping[str, Sequence[OpDef]], accuracies: Mapping[str, Sequence[Measured]]) -> str:
    """Measured accuracies: a row for each op, a column for each device, which `static/filter.js` filters."""
    devices = sorted({m.device for ms in accuracies.values() for m in ms})
    rows = [
        (f"[{op.name}](ops/{family}.md#{slug(op.name)})", *(_of_device(accuracies[op.name], d) for d in devices))
        for family, ops in found.items()
        for op in ops
        if op.name in accuracies
    ]
    rows.sort(key=lambda row: row[0].lower())
    return ACCURACY + table(("op", *devices), rows)


def _of_device(found: Sequence[Measured], device: str) -> str:
    """Returns an op's worst errors on a device, by dtype."""
    of_device = sorted((m for m in found if m.device == device), key=lambda m: m.dtypes)
    return ", ".join(f"{m.dtypes or 'no dtype'} {m.ulp:.3g} ({m.share:.0%})" for m in of_device)

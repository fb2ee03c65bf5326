"""How many pairs of op and dtypes devices support, by family of ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from timberframe_conformance.reports.badge import device_heading
from timberframe_conformance.reports.summary import Run
from timberframe_core.ops.definition import registry

OPS = "timberframe_ops."
FAMILIES = (OPS, "timberframe_core.ops.base.")
"""Prefixes of the modules that define TensorFlow's ops, before the family; all families have modules in `OPS`."""


def family(op: str) -> str:
    """Returns the family of an op: the folder among TensorFlow's ops that defines it, or else the
    package that does; "" if none does.
    """
    if registry.find(op) is None:
        return ""
    module = registry.module_of(op)
    for prefix in FAMILIES:
        module = module.removeprefix(prefix)
    return module.partition(".")[0]


def pairs(run: Run) -> dict[str, tuple[int, int]]:
    """By family, of how many pairs of op and dtypes a case passed, and how many the run tried."""
    passed: dict[tuple[str, tuple[str, ...]], bool] = {}
    for r in run.results:
        key = r.op, tuple(r.dtypes.values())
        passed[key] = passed.get(key, False) or r.verdict == "pass"
    supported, tried = Counter[str](), Counter[str]()
    for (op, _), yes in passed.items():
        name = family(op)
        supported[name] += yes
        tried[name] += 1
    return {name: (supported[name], tried[name]) for name in sorted(tried) if name}


def breadth_table(runs: Sequence[Run]) -> str:
    """Markdown: a row for each family, a column for each device."""
    found = [pairs(run) for run in runs]
    names = sorted({name for by_family in found for name in by_family})
    totals = [[sum(n) for n in zip(*by_family.values(), strict=True)] or [0, 0] for by_family in found]
    rows = [
        ("family", *(f"`{device_heading(run)}`" for run in runs)),
        ("-",) * (len(runs) + 1),
        *((name, *(_cell(*by_family.get(name, (0, 0))) for by_family in found)) for name in names),
        ("all", *(_cell(*total) for total in totals)),
    ]
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def _cell(supported: int, tried: int) -> str:
    if not tried:
        return "none tried"
    return f"{supported:,}" if supported == tried else f"{supported:,} of {tried:,}"

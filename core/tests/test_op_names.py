"""What an op is like stands in its definition, not in lists of names elsewhere.

A list of names leaves out the ops of other packages, and is forgotten when an op is added. Tables that say how each op
is computed or rewritten are fine, as is the name of an op that a pass makes or looks for: they are listed here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from timberframe_core.ops.definition import registry

WORKSPACE = Path(__file__).parents[2]
FRAME = "core/src/timberframe_core"
ROOMS = (FRAME, "core/src/timberframe_ops/host_ops", "core/src/timberframe_ops/passes", "sdk/src/timberframe_sdk")
DEFINITIONS = "core/src/timberframe_core/ops"
TEMPLATES = "sdk/src/timberframe_sdk/templates"
"""Packages for vendors to begin with, which the SDK has as data; what their kernels are is theirs to say."""

REWRITTEN = "what takes the place of each op"
MATCHED = "the ops of which the pattern that is looked for consists"
KERNELS = "the ops that it has a kernel or a plan for, and how each is computed"
MADE = "ops that the code itself puts into graphs or clusters"
ALLOWED = {
    "core/src/timberframe_core/compiler/counters.py": {"_base": MATCHED},
    "core/src/timberframe_ops/passes/dense/arrays.py": {"RULES": REWRITTEN},
    "core/src/timberframe_ops/passes/dense/lists.py": {"RULES": REWRITTEN},
    "core/src/timberframe_core/compiler/trips.py": {
        "COMPARISONS": MATCHED, "_bound": MATCHED, "counter_step": MATCHED,
    },
    "core/src/timberframe_ops/passes/loop_rewriter.py": {"erase_unread": MATCHED},
    "core/src/timberframe_ops/passes/norms.py": {"_CONVOLUTIONS": MATCHED, "_NORMS": MATCHED},
    "core/src/timberframe_ops/passes/pads.py": {"_CONVOLUTIONS": MATCHED},
    "core/src/timberframe_ops/passes/powers.py": {"_CHAINS": MADE},
    "core/src/timberframe_ops/passes/sink.py": {"_SUMS": MATCHED},
    "core/src/timberframe_core/gradients/bodies.py": {"_FILLS": REWRITTEN},
    "core/src/timberframe_core/gradients/loops.py": {"_adds_one": MATCHED},
    "core/src/timberframe_core/graph/operators.py": {"_COMPARISONS": MADE},
    "core/src/timberframe_core/graphdef/nodes.py": {"CALLS": MADE},
    "sdk/src/timberframe_sdk/numpy_device.py": {"KERNELS": KERNELS},
    "sdk/src/timberframe_sdk/plans/diagonals.py": {"diagonals": KERNELS},
    "sdk/src/timberframe_sdk/plans/indexing.py": {"MODES": KERNELS},
    "sdk/src/timberframe_sdk/plans/moves/__init__.py": {"COPIES": KERNELS},
    "sdk/src/timberframe_sdk/plans/moves/blocks.py": {"PLANS": KERNELS},
    "sdk/src/timberframe_sdk/plans/moves/joining.py": {"PLANS": KERNELS},
    "sdk/src/timberframe_sdk/plans/moves/within.py": {"PLANS": KERNELS},
    "sdk/src/timberframe_sdk/elementwise/sources.py": {"SOURCES": KERNELS},
}  # fmt: skip
"""By file: the names or functions that hold collections of op names, and why these do not say what ops are like."""

OPERATORS = ("indexed_slices", "operators", "slicing", "sparse_tensor")
"""Modules of `graph/` that make nodes of what a user writes with the operators of Python; the ops may be any."""


def _collections(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields the collections of a file that name two ops or more, each with the function or name that it is part of."""
    known = {op.name for op in registry.all_ops()}
    for statement in ast.parse(path.read_text()).body:
        for node in ast.walk(statement):
            elements = [*node.keys, *node.values] if isinstance(node, ast.Dict) else getattr(node, "elts", ())
            names = [e.value for e in elements if isinstance(e, ast.Constant) and e.value in known]
            if len(set(names)) > 1:
                yield _owner(statement, node), names


def _owner(statement: ast.stmt, inner: ast.AST) -> str:
    """Returns the innermost function around a node, what the statement assigns, or what a loop at the top adds to."""
    around = [n for n in ast.walk(statement) if isinstance(n, ast.FunctionDef) and inner in ast.walk(n)]
    if around:
        return around[-1].name
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    if isinstance(statement, ast.AnnAssign):
        return ast.unparse(statement.target)
    return "KERNELS" if "KERNELS" in ast.unparse(statement) else f"line {statement.lineno}"


@functools.cache
def _found() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for room in ROOMS:
        for path in sorted((WORKSPACE / room).rglob("*.py")):
            name = str(path.relative_to(WORKSPACE))
            if not name.startswith((DEFINITIONS, TEMPLATES)):
                for owner, names in _collections(path):
                    found.setdefault(name, {}).setdefault(owner, []).extend(names)
    return found


def test_no_list_of_names_says_what_ops_are_like() -> None:
    lists = [
        f"{path}: {owner} names {', '.join(names)}; what these have in common must be a field of OpDef"
        for path, owners in _found().items()
        for owner, names in owners.items()
        if owner not in ALLOWED.get(path, {})
    ]
    assert not lists, "\n".join(lists)


def test_what_is_allowed_is_there() -> None:
    found = _found()
    gone = [f"{path}: {name}" for path, names in ALLOWED.items() for name in names if name not in found.get(path, {})]
    assert not gone


def test_the_frame_itself_needs_its_own_ops_alone() -> None:
    """The others may be hidden from import: without them there is not all that a user writes with operators, and not
    all gradients, which are data of an op.
    """
    others = {op.name for op in registry.all_ops() if registry.module_of(op.name).startswith("timberframe_ops.")}
    operators = [WORKSPACE / FRAME / "graph" / f"{name}.py" for name in OPERATORS]
    assert all(path.exists() for path in operators)
    for path in (WORKSPACE / FRAME).rglob("*.py"):
        if path not in operators and not path.is_relative_to(WORKSPACE / FRAME / "ops" / "base"):
            words = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)}
            assert not words & others, path

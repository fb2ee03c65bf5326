"""Elementwise ops as source code: what a fused node computes, as an expression for each of its nodes.

The functions are those of ``timberframe/math``, which a device's own kernels call too: so a generated kernel has the
accuracy of the kernels that it replaces, and on the same machine their bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import Cluster, KernelNode
from timberframe_sdk.elementwise.sources import ALL_TYPES, SHORT_FLOATS, SOURCES, TYPES, CheckedSource


@dataclass(frozen=True)
class Expression:
    """A fused node as source: for each of its nodes a C declaration, ``const float v3 = v1 * v2;``.

    inputs, outputs: name and C type of the operands, which the caller declares, and of the results. headers: those of
    ``timberframe/math`` that the functions need beyond ``timberframe/elementwise.h``. functions: code of functions that
    no header has.
    """

    inputs: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    headers: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def preamble(self) -> list[str]:
        """Returns the lines that come after ``timberframe/elementwise.h``, before the code that uses the statements."""
        return [*(f"#include <timberframe/math/{header}.h>" for header in self.headers), *self.functions]


def expression(body: Cluster, complete: bool = False) -> Expression | None:
    """Returns the source of a fused node's inner cluster; None where an op or dtype has no form in source.

    complete: 16-bit floats, which are computed in float32, and ops whose code branches have a form, too.
    """
    types = ALL_TYPES if complete else TYPES
    if any(v.dtype.name not in types for v in (*body.inputs, *body.outputs)):
        return None
    names = {v.id: f"a{i}" for i, v in enumerate(body.inputs)}
    statements = []
    for i, node in enumerate(body.nodes):
        text = _term(node, [names[v.id] for v in node.inputs], complete)
        if not text:
            return None
        result = node.outputs[0]
        kind = result.dtype.name
        if kind in SHORT_FLOATS and any(v is result for n in body.nodes for v in n.inputs):
            text = f"tf_float32_from_{kind}(tf_{kind}_from_float32({text}))"  # each node rounds, as it does by itself
        name = names[result.id] = f"v{i}"
        statements.append(f"const {types[kind]} {name} = {text};")
    sources = [SOURCES[n.op] for n in body.nodes if n.op in SOURCES]
    headers = {s.header for s in sources} | {"convert" for n in body.nodes if n.op == "Cast" and complete}
    return Expression(
        tuple((names[v.id], types[v.dtype.name]) for v in body.inputs),
        tuple(statements),
        tuple((names[v.id], types[v.dtype.name]) for v in body.outputs),
        tuple(sorted(headers - {""})),
        tuple(dict.fromkeys(s.functions for s in sources if s.functions)),
    )


def has_source(op: str, dtype: str, complete: bool = False) -> bool:
    """Returns whether an op of this dtype has a form in source (see `expression`)."""
    source = SOURCES.get(op)
    if source is None or dtype not in ALL_TYPES or not (complete or (dtype in TYPES and not source.branches)):
        return False
    return bool(source.template(dtype))


def source_types(op: OpDef) -> dict[str, tuple[str, ...]] | None:
    """For each type attr of an op the dtypes for which it has a form in source: a KernelDef's types; None without any.

    What an attr says of results alone does not matter.
    """
    types = {}
    for attr in (a.name for a in op.attrs.values() if a.kind == "type"):
        types[attr] = allowed_types(op, attr)
        if op.name != "Cast" and any(a.type_attr == attr for a in op.inputs):
            types[attr] = tuple(t for t in types[attr] if has_source(op.name, t, complete=True))
    if op.name != "Cast" and (op.name not in SOURCES or not op.elementwise or not all(types.values())):
        return None
    return types


def allowed_types(op: OpDef, attr: str) -> tuple[str, ...]:
    """Returns the dtypes in which sources compute that an op takes for a type attr."""
    allowed = op.attrs[attr].allowed
    held = ALL_TYPES if allowed is None else [t.name for t in allowed]
    return tuple(t for t in ALL_TYPES if t in held)


def checked_expression(node: KernelNode, operands: Sequence[str]) -> tuple[Expression, str]:
    """Returns the source of a node of an op that is checked, and which values of its operands,
    called so, have no result.
    """
    kind, op = node.inputs[1].dtype.name, checked_source(node.op)
    term = op.template(kind).format(*operands)
    inputs = tuple((name, TYPES[kind]) for name in dict.fromkeys(operands))
    made = Expression(inputs, (f"const {TYPES[kind]} v0 = {term};",), (("v0", TYPES[kind]),), ("integers",))
    return made, op.bad.format(*operands)


def checked_source(op: str) -> CheckedSource:
    """Returns the source of an op of integers that may fail."""
    found = SOURCES[op].checked
    assert found is not None, f"{op} has no checked source"
    return found


def refusal_messages(op: str) -> tuple[str, ...]:
    """Returns the message for integers that the op refuses, for an element's number and its
    value; () where it takes all.
    """
    found = registry.get(op).refused
    return () if found is None else (found.message,)


def _term(node: KernelNode, operands: Sequence[str], complete: bool) -> str:
    """Returns the expression of one node; "" where it has none."""
    types = ALL_TYPES if complete else TYPES
    if any(v.dtype.name not in types for v in (*node.inputs, *node.outputs)):
        return ""
    if node.op == "Cast":
        return _cast(node, operands[0], complete)
    dtype = node.inputs[-1].dtype.name
    if not has_source(node.op, dtype, complete):
        return ""
    return SOURCES[node.op].term(dtype, operands, literals(node.attrs))


def literals(attrs: Mapping[str, object]) -> dict[str, str]:
    """Returns the attrs that are numbers or truth values in C; a float is a float32 in every GraphDef."""
    return {
        name: f"({float(np.float32(value)).hex()})" if isinstance(value, float) else f"({int(value)})"
        for name, value in attrs.items()
        if isinstance(value, bool | int | float)
    }


def _cast(node: KernelNode, operand: str, complete: bool) -> str:
    source, target = node.inputs[0].dtype.name, node.outputs[0].dtype.name
    if complete:
        return _conversion(source, target, operand, node.attrs.get("Truncate", False))
    if target == "bool":
        return f"{operand} != 0"
    if node.attrs.get("Truncate") or ("int" in target and "float" in source):
        return ""  # what lies out of range is the kernel's business
    return f"({TYPES[target]}){operand}"


_CUT = {("float32", "float16"): 13, ("float32", "bfloat16"): 16, ("float64", "float32"): 29, ("float64", "float16"): 42,
        ("float64", "bfloat16"): 45}  # fmt: skip


def _conversion(source: str, target: str, operand: str, truncate: bool) -> str:
    """Cast of one element, whose C type is that of `source`, to that of `target`."""
    if target == "bool":
        return f"{operand} != 0"
    if "float" not in target:
        if "float" not in source:
            return f"({target}_t){operand}"
        whole = {"uint64": "UINT64", "int64": "INT64", "uint32": "INT64"}.get(target, "INT32")
        return f"({target}_t)TF_{whole}_OF({operand})"
    if truncate and (source, target) in _CUT:
        operand = f"tf_cut_f{np.dtype(source).itemsize * 8}({operand}, {_CUT[source, target]})"
    if target == "float64":
        return f"(double){operand}"
    if target == "float32":
        return f"(float){operand}"
    narrow = f"tf_odd_float({operand})" if source == "float64" else f"(float){operand}"
    return f"tf_float32_from_{target}(tf_{target}_from_float32({narrow}))"


@dataclass(frozen=True)
class Fold:
    """What a function in C does with its result: each block of so many elements becomes one, by tf_fold_<how>."""

    how: str
    dtype: str
    block: int


def c_source(body: Cluster, moving: Sequence[bool], name: str, fold: Fold | None = None) -> str | None:
    """Returns a C function ``void name(const void *const *in, void *const *out, int64_t count)`` for a fused node.

    moving: for each input whether it has an element for each of the result; others have one for all. Results may lie
    over inputs as far as the node allows it. fold: the only result is not written, but reduced. None where the node has
    no form in source.
    """
    made = expression(body)
    if made is None:
        return None
    lines = [
        "#include <timberframe/elementwise.h>",
        *(["#include <timberframe/fold.h>"] if fold else []),
        *made.preamble(),
        "",
        f"void {name}(const void *const *in, void *const *out, int64_t count) {{",
    ]
    for i, ((operand, kind), moves) in enumerate(zip(made.inputs, moving, strict=True)):
        lines.append(
            f"  const {kind} *p{i} = in[{i}];" if moves else f"  const {kind} {operand} = *(const {kind} *)in[{i}];"
        )
    lines += [f"  {kind} *z{i} = out[{i}];" for i, (_, kind) in enumerate(made.outputs)]
    loop = ["  TF_ELEMENTS for (int64_t i = 0; i < count; i++) {"]
    loop += [f"    const {kind} {operand} = p{i}[i];" for i, (operand, kind) in enumerate(made.inputs) if moving[i]]
    loop += [f"    {statement}" for statement in made.statements]
    loop += [f"    z{i}[i] = {result};" for i, (result, _) in enumerate(made.outputs)]
    loop.append("  }")
    if fold:
        loop = _folded(loop, made.outputs[0][1], [i for i in range(len(moving)) if moving[i]], fold)
    return "\n".join([*lines, *loop, "}", ""])


def _folded(loop: Sequence[str], kind: str, moving: Sequence[int], fold: Fold) -> list[str]:
    """Returns the loop over one block, its result in an array that is reduced, in a loop over all blocks."""
    return [
        f"  {kind} *results = z0, block[{fold.block}];",
        f"  for (int64_t left = count; left > 0; left -= {fold.block}) {{",
        f"  count = left < {fold.block} ? left : {fold.block};",
        "  z0 = block;",
        *loop,
        f"  *results++ = tf_fold_{fold.how}_{fold.dtype}(block, count);",
        *(f"  p{i} += count;" for i in moving),
        "  }",
    ]

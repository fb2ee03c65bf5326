"""Elementwise ops as source code: what a fused node computes, as an expression for each of its nodes.

The functions are those of ``timberframe/math``, which a device's own kernels call too: so a generated kernel has the
accuracy of the kernels that it replaces, and on the same machine their bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from timberframe_core.plugin.contracts import Cluster, KernelNode
from timberframe_sdk import special_functions
from timberframe_sdk.special_functions import CHECKED, FLOATS, HEADERS, conversion

TYPES = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t",
    "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t",
}  # fmt: skip
"""The C types of the dtypes that a source for the CPU holds."""

SHORT_FLOATS = ("float16", "bfloat16")
ACCELERATOR_TYPES = {**TYPES, **dict.fromkeys(SHORT_FLOATS, "float")}
"""The same for accelerators, which compute with the 16-bit floats in float32 and convert where they load and store."""

# In the templates {0}, {1} and {2} are the operands, {T} their C type, {U} its unsigned one, {f} f32 or f64, {w} 32 or
# 64, {dtype} the dtype, and {alpha} and {tolerance} the op's attrs.

_FLOATS: Mapping[str, str] = {
    "Neg": "-{0}", "Square": "{0} * {0}", "Sign": "{0} > 0 ? ({T})1 : {0} < 0 ? ({T})-1 : {0} + 0",
    "Relu": "{0} <= 0 ? 0 : {0}", "Relu6": "{0} <= 0 ? 0 : {0} > 6 ? 6 : {0}",
    "LeakyRelu": "{0} < 0 ? ({T}){alpha} * {0} : {0}",
    "IsNan": "{0} != {0}", "IsInf": "tf_abs_{f}({0}) == INFINITY", "IsFinite": "tf_abs_{f}({0}) < INFINITY",
    "Add": "{0} + {1}", "AddV2": "{0} + {1}", "Sub": "{0} - {1}", "Mul": "{0} * {1}",
    "Div": "{0} / {1}", "RealDiv": "{0} / {1}", "FloorDiv": "tf_floor_{f}({0} / {1})",
    "SquaredDifference": "({0} - {1}) * ({0} - {1})", "MulNoNan": "{1} == 0 ? 0 : {0} * {1}",
    "DivNoNan": "{1} == 0 ? 0 : {0} / {1}", "Xdivy": "{0} == 0 ? {0} : {0} / {1}",
    "LeakyReluGrad": "({T})((tf_wide){1} > 0 ? (tf_wide){0} : {alpha} * (tf_wide){0})",
}  # fmt: skip
_FUNCTIONS = {
    "Abs": "abs", "Reciprocal": "reciprocal", "Inv": "reciprocal", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Exp": "exp",
    "Expm1": "expm1", "Log": "log", "Log1p": "log1p", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh",
    "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Asin": "asin", "Acos": "acos", "Atan": "atan",
    "Sigmoid": "sigmoid", "Softplus": "softplus", "Softsign": "softsign", "Elu": "elu", "Selu": "selu",
    "Floor": "floor", "Ceil": "ceil", "Rint": "rint", "Round": "rint",
}  # fmt: skip
_GRADIENTS = {
    "TanhGrad": "tanh", "SigmoidGrad": "sigmoid", "SqrtGrad": "sqrt", "RsqrtGrad": "rsqrt",
    "ReciprocalGrad": "reciprocal", "InvGrad": "reciprocal", "ReluGrad": "relu", "Relu6Grad": "relu6",
    "EluGrad": "elu", "SeluGrad": "selu", "SoftplusGrad": "softplus", "SoftsignGrad": "softsign",
}  # fmt: skip
_FLOAT_TABLE = {
    **_FLOATS,
    **{op: f"tf_{name}_{{f}}({{0}})" for op, name in _FUNCTIONS.items()},
    **{op: f"({{T}})tf_{name}_grad({{0}}, {{1}})" for op, name in _GRADIENTS.items()},
}
_INTEGERS: Mapping[str, str] = {  # they wrap around, so that sums and products are those of unsigned numbers
    "Neg": "({T})(0u - ({U}){0})", "Square": "({T})((uint64_t){0} * (uint64_t){0})",
    "Sign": "({0} > 0) - ({0} < 0)", "Abs": "{0} < 0 ? ({T})(0u - ({U}){0}) : {0}", "Invert": "~{0}",
    "Relu": "{0} > 0 ? {0} : 0", "Relu6": "{0} > 6 ? 6 : {0} > 0 ? {0} : 0",
    "Add": "({T})(1u * ({U}){0} + ({U}){1})", "AddV2": "({T})(1u * ({U}){0} + ({U}){1})",
    "Sub": "({T})(1u * ({U}){0} - ({U}){1})", "Mul": "({T})(1u * ({U}){0} * ({U}){1})",
    "BitwiseAnd": "{0} & {1}", "BitwiseOr": "{0} | {1}", "BitwiseXor": "{0} ^ {1}",
}  # fmt: skip
_NUMBERS: Mapping[str, str] = {
    "Maximum": "{0} < {1} || {1} != {1} ? {1} : {0}", "Minimum": "{1} < {0} || {1} != {1} ? {1} : {0}",
    "ClipByValue": "({0} > {2} ? {2} : {0}) < {1} ? {1} : {0} > {2} ? {2} : {0}",
    "Less": "{0} < {1}", "LessEqual": "{0} <= {1}", "Greater": "{0} > {1}", "GreaterEqual": "{0} >= {1}",
}  # fmt: skip
_ALL: Mapping[str, str] = {
    "Equal": "{0} == {1}", "NotEqual": "{0} != {1}", "Select": "{0} ? {1} : {2}", "SelectV2": "{0} ? {1} : {2}",
}  # fmt: skip
_TRUTH: Mapping[str, str] = {"LogicalAnd": "{0} & {1}", "LogicalOr": "{0} | {1}", "LogicalNot": "{0} ^ 1"}
_INFINITY = {"f32": "TF_INFINITY32", "f64": "TF_INFINITY64"}


@dataclass(frozen=True)
class Expression:
    """A fused node as source: for each of its nodes a C declaration, ``const float v3 = v1 * v2;``.

    inputs, outputs: name and C type of the operands, which the caller declares, and of the results. headers: those of
    ``timberframe/math`` that the functions need beyond ``timberframe/elementwise.h``.
    """

    inputs: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    headers: tuple[str, ...] = ()


def expression(body: Cluster, types: Mapping[str, str] = TYPES) -> Expression | None:
    """The source of a fused node's inner cluster; None where an op or dtype has no form in source.

    types: the type that each dtype is computed in.
    """
    names = {v.id: f"a{i}" for i, v in enumerate(body.inputs)}
    statements = []
    for i, node in enumerate(body.nodes):
        text = _term(node, [names[v.id] for v in node.inputs], types)
        if text is None:
            return None
        result = node.outputs[0]
        kind = result.dtype.name
        if kind in SHORT_FLOATS and any(v is result for n in body.nodes for v in n.inputs):
            text = f"tf_float32_from_{kind}(tf_{kind}_from_float32({text}))"  # each node rounds, as it does by itself
        name = names[result.id] = f"v{i}"
        statements.append(f"const {types[kind]} {name} = {text};")
    if any(v.dtype.name not in types for v in (*body.inputs, *body.outputs)):
        return None
    return Expression(
        tuple((names[v.id], types[v.dtype.name]) for v in body.inputs),
        tuple(statements),
        tuple((names[v.id], types[v.dtype.name]) for v in body.outputs),
        tuple(sorted({HEADERS[n.op] for n in body.nodes if n.op in HEADERS})),
    )


def has_source(op: str, dtype: str, types: Mapping[str, str] = TYPES) -> bool:
    """Whether an op of this dtype has a form in source; types: those of the CPU, or of accelerators."""
    return _template(op, dtype, types) is not None


def checked_expression(node: KernelNode, operands: Sequence[str]) -> tuple[Expression, str]:
    """The source of a node of an op in `CHECKED`, and which values of its operands, called so, have no result."""
    kind, op = node.inputs[1].dtype.name, CHECKED[node.op]
    term = op.term(kind).format(*operands)
    inputs = tuple((name, TYPES[kind]) for name in dict.fromkeys(operands))
    made = Expression(inputs, (f"const {TYPES[kind]} v0 = {term};",), (("v0", TYPES[kind]),), ("integers",))
    return made, op.bad.format(*operands)


def _term(node: KernelNode, operands: Sequence[str], types: Mapping[str, str]) -> str | None:
    if any(v.dtype.name not in types for v in (*node.inputs, *node.outputs)):
        return None
    if node.op == "Cast":
        return _cast(node, operands[0], types)
    dtype = node.inputs[-1].dtype
    template = _template(node.op, dtype.name, types)
    if template is None:
        return None
    kind = types[dtype.name]
    suffix = {"float": "f32", "double": "f64"}.get(kind, "")
    text = template.format(
        *operands,
        T=kind,
        U=f"u{kind}" if kind.startswith("int") else kind,
        f=suffix,
        w=suffix[1:],
        dtype=dtype.name,
        alpha=_float_attr(node, "alpha"),
        tolerance=_float_attr(node, "tolerance"),
    )
    return text.replace("INFINITY", _INFINITY.get(suffix, ""))


def _float_attr(node: KernelNode, name: str) -> str:
    """An attr as a literal; it is a float32 in every GraphDef."""
    return f"({float(np.float32(node.attrs.get(name, 0))).hex()})"


def _template(op: str, dtype: str, types: Mapping[str, str]) -> str | None:
    if dtype == "bool":
        return _TRUTH.get(op) or _ALL.get(op)
    own, others = (_INTEGERS, special_functions.INTEGERS) if "int" in dtype else (_FLOAT_TABLE, FLOATS)
    common = own.get(op) or _NUMBERS.get(op) or _ALL.get(op)
    return common or (None if types is TYPES else others.get(op))


def _cast(node: KernelNode, operand: str, types: Mapping[str, str]) -> str | None:
    source, target = node.inputs[0].dtype.name, node.outputs[0].dtype.name
    if types is not TYPES:
        return conversion(source, target, operand, node.attrs.get("Truncate", False))
    if target == "bool":
        return f"{operand} != 0"
    if node.attrs.get("Truncate") or ("int" in target and "float" in source):
        return None  # what lies out of range is the kernel's business
    return f"({types[target]}){operand}"


@dataclass(frozen=True)
class Fold:
    """What a function in C does with its result: each block of so many elements becomes one, by tf_fold_<how>."""

    how: str
    dtype: str
    block: int


def c_source(body: Cluster, moving: Sequence[bool], name: str, fold: Fold | None = None) -> str | None:
    """A C function ``void name(const void *const *in, void *const *out, int64_t count)`` for a fused node.

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
    """The loop over one block, its result in an array that is reduced, in a loop over all blocks."""
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

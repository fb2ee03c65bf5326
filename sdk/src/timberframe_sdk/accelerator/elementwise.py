"""Elementwise kernels of accelerators, generated: one source for a chain of nodes, and so for a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe.ops import registry
from timberframe.plugin.contracts import Cluster, KernelDef, KernelNode, Launcher
from timberframe_sdk.accelerator.device import Source, index_name, index_type, spread
from timberframe_sdk.accelerator.reduction import Element, Reduction, rule
from timberframe_sdk.elementwise import ACCELERATOR_TYPES, SHORT_FLOATS, Expression, expression, has_source
from timberframe_sdk.fusion import ELEMENTWISE, REDUCTIONS, Dim, merged_dims

_CANDIDATES = (
    "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64",
)  # fmt: skip


def _kernels() -> list[KernelDef]:
    """Kernels of all elementwise ops that have a source."""
    kernels = []
    for op in (registry.get(name) for name in sorted(ELEMENTWISE)):
        types = {}
        for attr in (a for a in op.attrs.values() if a.kind == "type"):
            allowed = _CANDIDATES if attr.allowed is None else [t.name for t in attr.allowed]
            types[attr.name] = tuple(
                t for t in _CANDIDATES if t in allowed and (op.name == "Cast" or has_source(op.name, t))
            )
        if all(types.values()):
            kernels.append(KernelDef(op.name, "", build_single, types))
    return kernels


def can_fuse(node: KernelNode) -> bool:
    """Whether a node has a form in source, and its operands broadcast as merged_dims walks them."""
    if _selects_rows(node):
        return False
    inputs = list({v.id: v for v in node.inputs}.values())
    return expression(Cluster(node.device, [node], inputs, node.outputs), ACCELERATOR_TYPES) is not None


def _selects_rows(node: KernelNode) -> bool:
    """Whether a Select's condition chooses rows: a vector along the first dimension, not the last."""
    return node.op == "Select" and 0 < len(node.inputs[0].shape) < len(node.outputs[0].shape)


def build_single(node: KernelNode) -> Launcher:
    """The launcher of one elementwise node."""
    if _selects_rows(node):
        condition, ones = node.inputs[0], (1,) * (len(node.outputs[0].shape) - 1)
        column = replace(condition, shape=(condition.shape[0], *ones))
        node = replace(node, inputs=[column, *node.inputs[1:]])
    inputs = list({v.id: v for v in node.inputs}.values())
    launch = _launcher(node, Cluster(node.device, [node], inputs, list(node.outputs)))
    places = [next(i for i, v in enumerate(node.inputs) if v is x) for x in inputs]
    if len(inputs) == len(node.inputs):
        return launch
    count = len(node.inputs)
    return lambda *arrays: launch(*(arrays[i] for i in places), *arrays[count:])


def can_reduce(node: KernelNode) -> bool:
    """Whether a chain may end in this reduction."""
    return node.inputs[0].dtype.name in ACCELERATOR_TYPES and node.inputs[0].dtype.name != "bool"


def build_fused(node: KernelNode) -> Launcher:
    """The launcher of a fused node."""
    body = node.inner[0]
    return _reduced(node, body) if body.nodes[-1].op in REDUCTIONS else _launcher(node, body)


def _reduced(node: KernelNode, body: Cluster) -> Launcher:
    """The launcher of a chain that ends in a reduction, which computes its elements as it needs them."""
    device: Any = node.device
    last = body.nodes[-1]
    value, dtype = last.inputs[0], last.inputs[0].dtype.name
    made = expression(replace(body, nodes=body.nodes[:-1], outputs=[value]), ACCELERATOR_TYPES)
    assert made is not None
    dims = merged_dims([v.shape for v in body.inputs], value.shape)
    element, strided = _element(made, [v.dtype.name for v in body.inputs], dtype, dims)
    index = index_type(4 * value.size)
    tables = [device.table(np.array(_walk(dims), index))] if strided else []
    axes = {int(a) % len(value.shape) for a in np.ravel(np.asarray(last.const(1)))}
    reduction = Reduction(device, value.shape, axes, rule(last.op, dtype), element)
    if reduction.scratch:
        node.workspace(reduction.scratch)
    count = len(body.inputs)
    return lambda *arrays: reduction([*arrays[:count], *tables], *arrays[count:])


def _element(made: Expression, types: Sequence[str], dtype: str, dims: Sequence[Dim]) -> tuple[Element, bool]:
    """Element i of an expression's result, and whether the walk over the dimensions is one of its operands."""
    steps = [_step(k, dims) for k in range(len(types))]
    strided = None in steps
    operands = [f"TF_GLOBAL const tf_storage_{t} *p{k}" for k, t in enumerate(types)]
    names = [f"p{k}" for k in range(len(types))]
    places = ["i" if step else "0" for step in steps]
    if strided:
        operands.append("TF_GLOBAL const tf_index *walk")
        names.append("walk")
        places = [f"o{k}" for k in range(len(types))]
    result = made.outputs[0][0]
    if dtype in SHORT_FLOATS:  # as the chain's last node does by itself
        result = f"tf_float32_from_{dtype}(tf_{dtype}_from_float32({result}))"
    lines = [
        "#include <timberframe/accelerator/language.h>",
        "#include <timberframe/elementwise.h>",
        f"static inline tf_value_{dtype} tf_element(tf_index i, {', '.join(operands)}) {{",
        *(_search(len(types), "tf_index") if strided else ()),
        *_operands(made, types, places),
        *(f"    {statement}" for statement in made.statements),
        f"    return {result};",
        "}\n",
    ]
    return Element(", ".join(operands), f"tf_element(i, {', '.join(names)})", "\n".join(lines)), strided


def _launcher(node: KernelNode, body: Cluster) -> Launcher:
    """A launcher of one of the two kernels of the source: all operands move with the result or stand still, or not."""
    device: Any = node.device
    made = expression(body, ACCELERATOR_TYPES)
    assert made is not None
    count = body.outputs[0].size
    dims = merged_dims([v.shape for v in body.inputs], body.outputs[0].shape)
    index = index_type(count)
    types = [v.dtype.name for v in (*body.inputs, *body.outputs)]
    source = Source(_source(made, types, index_name(count)))
    steps = [_step(k, dims) for k in range(len(body.inputs))]
    dense = [index(step) for step in steps if step is not None]
    if len(dense) == len(steps):
        function = device.function(source, "tf_dense")
        walk: list[Any] = dense
    else:
        function = device.function(source, "tf_strided")
        walk = [device.table(np.array(_walk(dims), index))]
    items, group = spread(count)
    total = index(count)

    def launch(*arrays: Any) -> None:
        if count:
            function(items, group, *arrays, total, *walk)

    return launch


def _step(k: int, dims: Sequence[Dim]) -> int | None:
    """1 where operand k moves with the result, 0 where it stands still, None where it has strides of its own."""
    strides = [s[k] for _, s in dims]
    if not any(strides):
        return 0
    step = 1
    for (size, _), stride in zip(dims, strides, strict=True):
        if stride != step:
            return None
        step *= size
    return 1


def _source(made: Expression, types: Sequence[str], index: str) -> str:
    """Both kernels of an expression. Sizes and strides are arguments, so that one source serves all shapes."""
    count = len(made.inputs)
    operands = [f"TF_GLOBAL const tf_storage_{types[k]} *p{k}" for k in range(count)]
    operands += [f"TF_GLOBAL tf_storage_{t} *z{k}" for k, t in enumerate(types[count:])]
    operands.append(f"{index}_t count")
    steps = [f"{index}_t m{k}" for k in range(count)]
    lines = ["#include <timberframe/accelerator/language.h>", "#include <timberframe/elementwise.h>"]
    lines += _kernel("tf_dense", [*operands, *steps], [f"i * m{k}" for k in range(count)], [], made, types, index)
    search = _search(count, f"{index}_t")
    walk = f"TF_GLOBAL const {index}_t *walk"
    places = [f"o{k}" for k in range(count)]
    return "\n".join([*lines, *_kernel("tf_strided", [*operands, walk], places, search, made, types, index), ""])


def _kernel(
    name: str,
    parameters: Sequence[str],
    places: Sequence[str],
    search: Sequence[str],
    made: Expression,
    types: Sequence[str],
    index: str,
) -> list[str]:
    """The kernel that finds operand k at places[k], after the statements of `search`."""
    count = len(made.inputs)
    lines = [
        f"TF_KERNEL {name}({', '.join(parameters)}) {{",
        f"  for ({index}_t i = ({index}_t)tf_global_id(0); i < count; i += ({index}_t)tf_global_size(0)) {{",
        *search,
    ]
    lines += _operands(made, types, places)
    lines += [f"    {statement}" for statement in made.statements]
    lines += [f"    tf_store_{types[count + k]}(z{k}, i, {result});" for k, (result, _) in enumerate(made.outputs)]
    return [*lines, "  }", "}"]


def _operands(made: Expression, types: Sequence[str], places: Sequence[str]) -> list[str]:
    """The statements that read the operands."""
    return [
        f"    const {kind} {operand} = tf_load_{types[k]}(p{k}, {places[k]});"
        for k, (operand, kind) in enumerate(made.inputs)
    ]


def _walk(dims: Sequence[Dim]) -> list[int]:
    """The dimensions as `_search` reads them: their number, and each one's size and strides."""
    return [len(dims), *(n for size, strides in dims for n in (size, *strides))]


def _search(count: int, index: str) -> list[str]:
    """The statements that find the places o0, o1, ... of the operands of element i."""
    moves = "".join(f" o{k} += at * walk[d + {k + 1}];" for k in range(count))
    return [
        f"    {index} left = i, " + ", ".join(f"o{k} = 0" for k in range(count)) + ";",
        f"    for ({index} d = 1; d < 1 + walk[0] * {count + 1}; d += {count + 1}) {{",
        f"      const {index} rest = left / walk[d], at = left - rest * walk[d];{moves}",
        "      left = rest;",
        "    }",
    ]


KERNELS = _kernels()

"""Elementwise kernels of accelerators, generated: one source for a chain of nodes, and so for a single one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.reduction import Element, Reduction, reduce, rule
from timberframe_accelerator.launches import Source, failing, index_name, index_type, needs_float64, spread
from timberframe_core.ops.definition import registry
from timberframe_sdk import Cluster, InvalidArgumentError, KernelDef, KernelNode, Launcher, OpDef
from timberframe_sdk.elementwise.expressions import (
    Expression,
    allowed_types,
    checked_expression,
    expression,
    refusal_messages,
    source_types,
)
from timberframe_sdk.elementwise.fusion import Dim, merged_dims, reduction
from timberframe_sdk.elementwise.sources import ALL_TYPES, SHORT_FLOATS, SOURCES


def source_kernels(op: OpDef) -> list[KernelDef]:
    """The kernels that an op's source gives, for any device; none for an op without one."""
    found, source, types = [], SOURCES.get(op.name), source_types(op)
    if types is not None:
        wide = source is not None and source.needs_float64
        found.append(KernelDef(op.name, "", build_single, types, suits=needs_float64 if wide else None))
    if source is not None and source.checked is not None:
        integers = tuple(t for t in allowed_types(op, "T") if "int" in t)
        found.append(KernelDef(op.name, "", build_checked, {"T": integers}, status=True))
    return found


def can_fuse(node: KernelNode) -> bool:
    """Whether a node's kernel is the generated one, and its operands broadcast as merged_dims walks them."""
    device: Any = node.device
    found = device.kernel(node)
    if found is None or found.build is not build_single:  # a vendor's own would not be run
        return False
    if _selects_rows(node) or not _broadcasts(node):
        return False
    inputs = list({v.id: v for v in node.inputs}.values())
    return expression(Cluster(node.device, [node], inputs, node.outputs), complete=True) is not None


def _broadcasts(node: KernelNode) -> bool:
    """Whether the operands do: Equal and NotEqual may be asked about shapes that do not."""
    try:
        return node.op not in ("Equal", "NotEqual") or np.broadcast_shapes(*(v.shape for v in node.inputs)) is not None
    except ValueError:
        return False


def _selects_rows(node: KernelNode) -> bool:
    """Whether a Select's condition chooses rows: a vector along the first dimension, not the last."""
    return node.op == "Select" and 0 < len(node.inputs[0].shape) < len(node.outputs[0].shape)


def build_single(node: KernelNode) -> Launcher:
    """The launcher of one elementwise node."""
    if not _broadcasts(node):
        return _answering(node)
    if _selects_rows(node):
        condition, ones = node.inputs[0], (1,) * (len(node.outputs[0].shape) - 1)
        column = replace(condition, shape=(condition.shape[0], *ones))
        node = replace(node, inputs=[column, *node.inputs[1:]])
    body = _body(node)
    made = expression(body, complete=True)
    assert made is not None
    return _without_repeated(node, body, _launcher(node, body, made))


def build_checked(node: KernelNode) -> Launcher:
    """The launcher of an op of integers that has no result for some second operands."""
    body = _body(node)
    names = {v.id: f"a{i}" for i, v in enumerate(body.inputs)}
    made, bad = checked_expression(node, [names[v.id] for v in node.inputs])
    checked = body.inputs.index(node.inputs[1]), bad
    launch = _without_repeated(node, body, _launcher(node, body, made, checked))
    return failing(launch, *((InvalidArgumentError, message) for message in refusal_messages(node.op)))


def _answering(node: KernelNode) -> Launcher:
    """The launcher of a comparison of tensors whose shapes tell them apart."""
    device: Any = node.device
    answer = device.table(np.array(node.op == "NotEqual"))
    return lambda x, y, out: device.copy(answer, out)


def _body(node: KernelNode) -> Cluster:
    """A node as a cluster of its own, each of its operands once."""
    inputs = list({v.id: v for v in node.inputs}.values())
    return Cluster(node.device, [node], inputs, list(node.outputs))


def _without_repeated(node: KernelNode, body: Cluster, launch: Launcher) -> Launcher:
    """A launcher that takes all operands of the node, of one that takes those of its body."""
    count = len(node.inputs)
    if len(body.inputs) == count:
        return launch
    indices = [next(i for i, v in enumerate(node.inputs) if v is x) for x in body.inputs]
    return lambda *arrays: launch(*(arrays[i] for i in indices), *arrays[count:])


def can_reduce(node: KernelNode) -> bool:
    """Whether a chain may end in this reduction: its kernel is the one of `reduction`."""
    device: Any = node.device
    found = device.kernel(node)
    if found is None or found.build is not reduce:
        return False
    return node.inputs[0].dtype.name in ALL_TYPES and node.inputs[0].dtype.name != "bool"


def build_fused(node: KernelNode) -> Launcher:
    """The launcher of a fused node."""
    body = node.inner[0]
    if reduction(body.nodes[-1]):
        return _reduced(node, body)
    made = expression(body, complete=True)
    assert made is not None
    return _launcher(node, body, made)


def _reduced(node: KernelNode, body: Cluster) -> Launcher:
    """The launcher of a chain that ends in a reduction, which computes its elements as it needs them."""
    device: Any = node.device
    last = body.nodes[-1]
    value, dtype = last.inputs[0], last.inputs[0].dtype.name
    made = expression(replace(body, nodes=body.nodes[:-1], outputs=[value]), complete=True)
    assert made is not None
    dims = merged_dims([v.shape for v in body.inputs], value.shape)
    element, strided = _element(made, [v.dtype.name for v in body.inputs], dtype, dims)
    index = index_type(4 * value.size)
    tables = [device.table(np.array(_walk(dims), index))] if strided else []
    axes = {int(a) % len(value.shape) for a in np.ravel(np.asarray(last.const(1)))}
    reduce_chain = Reduction(device, value.shape, axes, rule(last.op, dtype), element)
    if reduce_chain.scratch:
        node.workspace(reduce_chain.scratch)
    count = len(body.inputs)
    return lambda *arrays: reduce_chain([*arrays[:count], *tables], *arrays[count:])


def _element(made: Expression, types: Sequence[str], dtype: str, dims: Sequence[Dim]) -> tuple[Element, bool]:
    """Element i of an expression's result, and whether the walk over the dimensions is one of its operands."""
    steps = [_step(k, dims) for k in range(len(types))]
    strided = None in steps
    operands = [f"TF_GLOBAL const tf_storage_{t} *p{k}" for k, t in enumerate(types)]
    names = [f"p{k}" for k in range(len(types))]
    indices = ["i" if step else "0" for step in steps]
    if strided:
        operands.append("TF_GLOBAL const tf_index *walk")
        names.append("walk")
        indices = [f"o{k}" for k in range(len(types))]
    result = made.outputs[0][0]
    if dtype in SHORT_FLOATS:  # as the chain's last node does by itself
        result = f"tf_float32_from_{dtype}(tf_{dtype}_from_float32({result}))"
    lines = [
        "#include <timberframe/accelerator/language.h>",
        "#include <timberframe/elementwise.h>",
        *made.preamble(),
        f"static inline tf_value_{dtype} tf_element(tf_index i, {', '.join(operands)}) {{",
        *(_search(len(types), "tf_index") if strided else ()),
        *_operands(made, types, indices),
        *(f"    {statement}" for statement in made.statements),
        f"    return {result};",
        "}\n",
    ]
    return Element(", ".join(operands), f"tf_element(i, {', '.join(names)})", "\n".join(lines)), strided


def _launcher(node: KernelNode, body: Cluster, made: Expression, checked: tuple[int, str] | None = None) -> Launcher:
    """A launcher of the kernel that goes over the elements of the result.

    checked: the number of an operand whose values may be bad, and which of them are; the kernel then gets the status.
    """
    device: Any = node.device
    count = body.outputs[0].size
    types = [v.dtype.name for v in (*body.inputs, *body.outputs)]
    order = _order(device, merged_dims([v.shape for v in body.inputs], body.outputs[0].shape), len(body.inputs), count)
    name = kernel_name(body)
    source = Source(_source(name, made, types, order, checked), (("INDEX", index_name(count)),))
    function = device.function(source, name)
    items, group = order.items, order.group
    arguments = [node.number, *order.arguments] if checked else order.arguments

    def launch(*arrays: Any) -> None:
        if count:
            function(items, group, *arrays, *arguments)

    return launch


@dataclass(frozen=True)
class _Order:
    """How the elements of a result are gone over. indices: where each operand's element is, in terms of the loop.

    loop: the lines that open it and find the indices, within them i, the element's number. parameters, arguments: what
    the loop needs to know.
    """

    indices: Sequence[str]
    loop: Sequence[str]
    parameters: Sequence[str]
    arguments: Sequence[Any]
    items: tuple[int, ...]
    group: tuple[int, ...]


def _order(device: Any, dims: Sequence[Dim], operands: int, count: int) -> _Order:
    """Element by element where all operands move with the result or stand still, by rows and columns, or by strides."""
    index, width = index_type(count), device.limits.elementwise_group_size
    items, group = spread(count, width)
    steps = [_step(k, dims) for k in range(operands)]
    if None not in steps:
        indices = ["i" if step else "0" for step in steps]
        return _Order(indices, ["  TF_EACH(i, count) {"], ["tf_index count"], [index(count)], items, group)
    rows = [_row_index(k, dims) for k in range(operands)]
    if len(dims) == 2 and None not in rows and dims[0][0] >= _LEAST_ROW:
        columns = dims[0][0]
        across = spread(columns, min(width, 1 << (columns - 1).bit_length()))
        loop = [
            "  TF_EACH(column, columns) for (tf_index row = (tf_index)tf_global_id(1); row < rows;"
            " row += (tf_index)tf_global_size(1)) {",
            "    const tf_index i = row * columns + column;",
        ]
        return _Order(
            [index for index in rows if index is not None], loop, ["tf_index columns", "tf_index rows"],
            [index(columns), index(dims[1][0])], (*across[0], min(dims[1][0], _MOST_ROWS)), (*across[1], 1),
        )  # fmt: skip
    table = device.table(np.array(_walk(dims), index))
    return _Order(
        [f"o{k}" for k in range(operands)], ["  TF_EACH(i, count) {", *_search(operands, "tf_index")],
        ["tf_index count", "TF_GLOBAL const tf_index *walk"], [index(count), table], items, group,
    )  # fmt: skip


_NAMED_OPS = 6
"""Ops in the name of a kernel."""
_LEAST_ROW = 32
"""Elements of a row from which on a launch by rows and columns is worth it."""
_MOST_ROWS = 1 << 15
"""Rows that are taken at a time: devices launch fewer groups along the second dimension."""


def _row_index(k: int, dims: Sequence[Dim]) -> str | None:
    """Where operand k of a result of two dimensions is; None where it moves otherwise."""
    if len(dims) != 2:
        return None
    (size, inner), (_, outer) = dims
    return {(1, size): "i", (0, 0): "0", (1, 0): "column", (0, 1): "row"}.get((inner[k], outer[k]))


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


def _check(made: Expression, indices: Sequence[str], checked: tuple[int, str]) -> str:
    """The statement that reports a bad operand: its index and its value."""
    k, bad = checked
    return f"    if ({bad}) tf_report(status, node, 1, {indices[k]}, (int64_t){made.inputs[k][0]}, 0);"


def kernel_name(body: Cluster) -> str:
    """The kernel's name, which profilers show: the first of its ops, and how many more there are."""
    ops = [re.sub(r"\W", "_", node.op) for node in body.nodes]
    more = [f"and_{len(ops) - _NAMED_OPS}"] if len(ops) > _NAMED_OPS else []
    return "_".join(["tf", *ops[:_NAMED_OPS], *more])


def _source(
    name: str, made: Expression, types: Sequence[str], order: _Order, checked: tuple[int, str] | None = None
) -> str:
    """The kernel of an expression. Sizes and strides are arguments, so that one source serves many shapes."""
    count = len(made.inputs)
    parameters = [f"TF_GLOBAL const tf_storage_{types[k]} *p{k}" for k in range(count)]
    parameters += [f"TF_GLOBAL tf_storage_{t} *z{k}" for k, t in enumerate(types[count:])]
    parameters += ["TF_GLOBAL int64_t *status", "int64_t node"] if checked else []
    lines = [
        "#include <timberframe/accelerator/language.h>",
        "#include <timberframe/elementwise.h>",
        *made.preamble(),
        f"TF_KERNEL {name}({', '.join([*parameters, *order.parameters])}) {{",
        *order.loop,
        *_operands(made, types, order.indices),
        *([_check(made, order.indices, checked)] if checked else []),
        *(f"    {statement}" for statement in made.statements),
    ]
    lines += [f"    tf_store_{types[count + k]}(z{k}, i, {result});" for k, (result, _) in enumerate(made.outputs)]
    return "\n".join([*lines, "  }", "}", ""])


def _operands(made: Expression, types: Sequence[str], indices: Sequence[str]) -> list[str]:
    """The statements that read the operands."""
    return [
        f"    const {kind} {operand} = tf_load_{types[k]}(p{k}, {indices[k]});"
        for k, (operand, kind) in enumerate(made.inputs)
    ]


def _walk(dims: Sequence[Dim]) -> list[int]:
    """The dimensions as `_search` reads them: their number, and each one's size and strides."""
    return [len(dims), *(n for size, strides in dims for n in (size, *strides))]


def _search(count: int, index: str) -> list[str]:
    """The statements that find the indices o0, o1, ... of the operands of element i."""
    moves = "".join(f" o{k} += at * walk[d + {k + 1}];" for k in range(count))
    return [
        f"    {index} left = i, " + ", ".join(f"o{k} = 0" for k in range(count)) + ";",
        f"    for ({index} d = 1; d < 1 + walk[0] * {count + 1}; d += {count + 1}) {{",
        f"      const {index} rest = left / walk[d], at = left - rest * walk[d];{moves}",
        "      left = rest;",
        "    }",
    ]


_OWN_OPS = sorted(op for op in (*SOURCES, "Cast") if ">" not in op)  # a vendor's get theirs when they are needed

KERNELS = [kernel for op in _OWN_OPS for kernel in source_kernels(registry.get(op))]

"""Elementwise kernels of accelerators, generated: one source for a chain of nodes, and so for a single one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.reduction import Element, Reduction, reduce, rule
from timberframe_accelerator.launches import Source, failing, index_name, index_type, needs_float64
from timberframe_accelerator.traversal import Traversal, operand_step, pack_width, search, traversal, walk
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
    """Returns the kernels that an op's source gives, for any device; none for an op without one."""
    found, source, types = [], SOURCES.get(op.name), source_types(op)
    if types is not None:
        wide = source is not None and source.needs_float64
        found.append(KernelDef(op.name, "", build_single, types, suits=needs_float64 if wide else None))
    if source is not None and source.checked is not None:
        integers = tuple(t for t in allowed_types(op, "T") if "int" in t)
        found.append(KernelDef(op.name, "", build_checked, {"T": integers}, status=True))
    return found


def can_fuse(node: KernelNode) -> bool:
    """Returns whether a node's kernel is the generated one, and its operands broadcast as merged_dims walks them."""
    device: Any = node.device
    found = device.kernel(node)
    if found is None or found.build is not build_single:  # a vendor's own would not be run
        return False
    if _selects_rows(node) or not _broadcasts(node):
        return False
    inputs = list({v.id: v for v in node.inputs}.values())
    return expression(Cluster(node.device, [node], inputs, node.outputs), complete=True) is not None


def _broadcasts(node: KernelNode) -> bool:
    """Returns whether the operands do: Equal and NotEqual may be asked about shapes that do not."""
    try:
        return node.op not in ("Equal", "NotEqual") or np.broadcast_shapes(*(v.shape for v in node.inputs)) is not None
    except ValueError:
        return False


def _selects_rows(node: KernelNode) -> bool:
    """Returns whether a Select's condition chooses rows: a vector along the first dimension, not the last."""
    return node.op == "Select" and 0 < len(node.inputs[0].shape) < len(node.outputs[0].shape)


def build_single(node: KernelNode) -> Launcher:
    """Returns the launcher of one elementwise node."""
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
    """Returns the launcher of an op of integers that has no result for some second operands."""
    body = _body(node)
    names = {v.id: f"a{i}" for i, v in enumerate(body.inputs)}
    made, bad = checked_expression(node, [names[v.id] for v in node.inputs])
    checked = body.inputs.index(node.inputs[1]), bad
    launch = _without_repeated(node, body, _launcher(node, body, made, checked))
    return failing(launch, *((InvalidArgumentError, message) for message in refusal_messages(node.op)))


def _answering(node: KernelNode) -> Launcher:
    """Returns the launcher of a comparison of tensors whose shapes tell them apart."""
    device: Any = node.device
    answer = device.table(np.array(node.op == "NotEqual"))
    return lambda x, y, out: device.copy(answer, out)


def _body(node: KernelNode) -> Cluster:
    """Returns a node as a cluster of its own, each of its operands once."""
    inputs = list({v.id: v for v in node.inputs}.values())
    return Cluster(node.device, [node], inputs, list(node.outputs))


def _without_repeated(node: KernelNode, body: Cluster, launch: Launcher) -> Launcher:
    """Returns a launcher that takes all operands of the node, of one that takes those of its body."""
    count = len(node.inputs)
    if len(body.inputs) == count:
        return launch
    indices = [next(i for i, v in enumerate(node.inputs) if v is x) for x in body.inputs]
    return lambda *arrays: launch(*(arrays[i] for i in indices), *arrays[count:])


def can_reduce(node: KernelNode) -> bool:
    """Returns whether a chain may end in this reduction: its kernel is the one of `reduction`."""
    device: Any = node.device
    found = device.kernel(node)
    if found is None or found.build is not reduce:
        return False
    return node.inputs[0].dtype.name in ALL_TYPES and node.inputs[0].dtype.name != "bool"


def build_fused(node: KernelNode) -> Launcher:
    """Returns the launcher of a fused node."""
    body = node.inner[0]
    if reduction(body.nodes[-1]):
        return _reduced(node, body)
    made = expression(body, complete=True)
    assert made is not None
    return _launcher(node, body, made)


def _reduced(node: KernelNode, body: Cluster) -> Launcher:
    """Returns the launcher of a chain that ends in a reduction, which computes its elements as it needs them."""
    device: Any = node.device
    last = body.nodes[-1]
    value, dtype = last.inputs[0], last.inputs[0].dtype.name
    made = expression(replace(body, nodes=body.nodes[:-1], outputs=[value]), complete=True)
    assert made is not None
    dims = merged_dims([v.shape for v in body.inputs], value.shape)
    element, strided = _element(made, [v.dtype.name for v in body.inputs], dtype, dims)
    index = index_type(4 * value.size)
    tables = [device.table(np.array(walk(dims), index))] if strided else []
    axes = {int(a) % len(value.shape) for a in np.ravel(np.asarray(last.const(1)))}
    reduce_chain = Reduction(device, value.shape, axes, rule(last.op, dtype), element)
    if reduce_chain.scratch:
        node.workspace(reduce_chain.scratch)
    count = len(body.inputs)
    return lambda *arrays: reduce_chain([*arrays[:count], *tables], *arrays[count:])


def _element(made: Expression, types: Sequence[str], dtype: str, dims: Sequence[Dim]) -> tuple[Element, bool]:
    """Element i of an expression's result, and whether the walk over the dimensions is one of its operands."""
    steps = [operand_step(k, dims) for k in range(len(types))]
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
        *(search(len(types)) if strided else ()),
        *_operands(made, types, indices),
        *(f"    {statement}" for statement in made.statements),
        f"    return {result};",
        "}\n",
    ]
    return Element(", ".join(operands), f"tf_element(i, {', '.join(names)})", "\n".join(lines)), strided


def _launcher(node: KernelNode, body: Cluster, made: Expression, checked: tuple[int, str] | None = None) -> Launcher:
    """Returns a launcher of the kernel that goes over the elements of the result.

    checked: the number of an operand whose values may be bad, and which of them are; the kernel then gets the status.
    """
    device: Any = node.device
    count = body.outputs[0].size
    types = [v.dtype.name for v in (*body.inputs, *body.outputs)]
    dims = merged_dims([v.shape for v in body.inputs], body.outputs[0].shape)
    loops = traversal(device, dims, len(body.inputs), count, _pack_width(device, body, dims))
    name = kernel_name(body)
    source = Source(_source(name, made, types, loops, checked), (("INDEX", index_name(count)),))
    function = device.function(source, name)
    items, group = loops.items, loops.group
    arguments = [node.number, *loops.arguments] if checked else loops.arguments

    def launch(*arrays: Any) -> None:
        if count:
            function(items, group, *arrays, *arguments)

    return launch


_NAMED_OPS = 6
"""Ops in the name of a kernel."""


def _pack_width(device: Any, body: Cluster, dims: Sequence[Dim]) -> int:
    """Returns the elements that a work-item takes at once; 1 where memory is not what such a node waits for."""
    if not dims or any(node.op in SOURCES and SOURCES[node.op].branches for node in body.nodes):
        return 1
    moving = [v for k, v in enumerate(body.inputs) if dims[0][1][k]]
    return pack_width(device.limits.access_bytes, [v.dtype.itemsize for v in (*moving, *body.outputs)])


def kernel_name(body: Cluster) -> str:
    """Returns the kernel's name, which profilers show: the first of its ops, and how many more there are."""
    ops = [re.sub(r"\W", "_", node.op) for node in body.nodes]
    more = [f"and_{len(ops) - _NAMED_OPS}"] if len(ops) > _NAMED_OPS else []
    return "_".join(["tf", *ops[:_NAMED_OPS], *more])


def _source(
    name: str, made: Expression, types: Sequence[str], loops: Traversal, checked: tuple[int, str] | None = None
) -> str:
    """Returns the kernel of an expression. Sizes and strides are arguments, so that one source serves many shapes."""
    count = len(made.inputs)
    parameters = [f"TF_GLOBAL const tf_storage_{types[k]} *p{k}" for k in range(count)]
    parameters += [f"TF_GLOBAL tf_storage_{t} *z{k}" for k, t in enumerate(types[count:])]
    parameters += ["TF_GLOBAL int64_t *status", "int64_t node"] if checked else []
    body = [
        *_operands(made, types, loops.indices),
        *_check(made, loops.indices, checked),
        *(f"    {statement}" for statement in made.statements),
        *(f"    tf_store_{types[count + k]}(z{k}, i, {result});" for k, (result, _) in enumerate(made.outputs)),
    ]
    packs = _Packs(made, types, loops, checked)
    lines = [
        "#include <timberframe/accelerator/language.h>",
        "#include <timberframe/elementwise.h>",
        *made.preamble(),
        *(packs.declarations() if loops.width > 1 else ()),
        f"TF_KERNEL {name}({', '.join([*parameters, *loops.parameters])}) {{",
        *loops.loops(body, packs.body, packs.conditions()),
    ]
    return "\n".join([*lines, "}", ""])


def _check(made: Expression, indices: Sequence[str], checked: tuple[int, str] | None) -> list[str]:
    """Returns the statement that reports a bad operand: its index and its value."""
    if checked is None:
        return []
    k, bad = checked
    return [f"    if ({bad}) tf_report(status, node, 1, {indices[k]}, (int64_t){made.inputs[k][0]}, 0);"]


def _operands(made: Expression, types: Sequence[str], indices: Sequence[str]) -> list[str]:
    """Returns the statements that read the operands."""
    return [
        f"    const {kind} {operand} = tf_load_{types[k]}(p{k}, {indices[k]});"
        for k, (operand, kind) in enumerate(made.inputs)
    ]


@dataclass(frozen=True)
class _Packs:
    """What a kernel does with packs: b0, b1, ... are those of operands that move within one, c0, c1, ... of results."""

    made: Expression
    types: Sequence[str]
    loops: Traversal
    checked: tuple[int, str] | None

    def _moving(self) -> list[tuple[int, str]]:
        """Returns the operands that have a pack, and their dtypes."""
        return [(k, self.types[k]) for k, moves in enumerate(self.loops.moves) if moves]

    def _results(self) -> list[tuple[int, str]]:
        """Returns the results and their dtypes."""
        return list(enumerate(self.types[len(self.made.inputs) :]))

    def declarations(self) -> list[str]:
        """Returns the types of packs."""
        dtypes = dict.fromkeys(dtype for _, dtype in (*self._moving(), *self._results()))
        packs = (f"TF_PACK({dtype}, {self.loops.width})" for dtype in dtypes)
        return ["#include <timberframe/accelerator/pack.h>", *packs]

    def conditions(self) -> list[str]:
        """Returns whether all tensors begin where packs may."""
        pointers = [*((f"p{k}", t) for k, t in self._moving()), *((f"z{k}", t) for k, t in self._results())]
        return [f"TF_HOLDS_PACKS({dtype}, {self.loops.width}, {pointer})" for pointer, dtype in pointers]

    def body(self) -> list[str]:
        """Reads the packs, goes over their elements, and writes the results."""
        made, types, loops = self.made, self.types, self.loops
        moving, results = self._moving(), self._results()
        operands = _operands(made, types, loops.indices)
        for k, dtype in moving:
            operand, kind = made.inputs[k]
            operands[k] = f"    const {kind} {operand} = tf_load_{dtype}(b{k}.element, j);"
        moves = loops.moves
        indices = [f"{index} + j" if moves[k] else index for k, index in enumerate(loops.indices)]
        return [
            *(f"    const tf_pack_{t} b{k} = TF_LOAD_PACK({t}, p{k}, {loops.indices[k]});" for k, t in moving),
            *(f"    tf_pack_{t} c{k};" for k, t in results),
            *(operands[k] for k in range(len(operands)) if not moves[k]),
            "    TF_UNROLL",
            f"    for (int32_t j = 0; j < {loops.width}; j++) {{",
            *(operands[k] for k, _ in moving),
            *_check(made, indices, self.checked),
            *(f"    {statement}" for statement in made.statements),
            *(f"    tf_store_{t}(c{k}.element, j, {made.outputs[k][0]});" for k, t in results),
            "    }",
            *(f"    TF_STORE_PACK({t}, z{k}, i, c{k});" for k, t in results),
        ]


_OWN_OPS = sorted(op for op in (*SOURCES, "Cast") if ">" not in op)  # a vendor's get theirs when they are needed

KERNELS = [kernel for op in _OWN_OPS for kernel in source_kernels(registry.get(op))]

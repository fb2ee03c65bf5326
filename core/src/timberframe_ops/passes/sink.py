"""Pass `sink`: products that the iterations of a loop add up are one product after the loop.

The gradient of weights that all steps of a recurrent network share is such a sum. Each product is of few terms and as
large as the weights, so that adding it up takes longer than multiplying; one product of all terms writes it once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from timberframe_core.compiler.counters import LoopCounters
from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.plugin.contracts import KernelNode, Value
from timberframe_core.plugin.passes import Pass
from timberframe_ops.passes.loop_rewriter import (
    EXACT_ENOUGH,
    LoopRewriter,
    RefusedError,
    Row,
    counted_loops,
)

_SUMS = ("AddN", "Add", "AddV2")


@dataclass(frozen=True)
class _Sum:
    """A loop variable to which each iteration adds a product, and nothing else reads it.

    row: the operand of the product, number `operand`, that is a row of what is there before the loop.
    """

    position: int
    sum: KernelNode
    product: KernelNode
    operand: int
    row: Row


def run(rewriter: ClusterRewriter) -> None:
    """Rewrites sums of products, of rows that the iterations read, in the bodies of loops."""
    for node, counters in counted_loops(rewriter):
        found = _sums(rewriter, node, counters)
        if not found:
            continue
        loop = LoopRewriter(rewriter, node, counters, [s.position for s in found])
        kept: dict[tuple[Value, Value], Value] = {}
        try:
            results = [_sink(loop, s, kept) for s in found]
        except RefusedError as e:
            rewriter.decline(node, str(e))
        else:
            loop.finish()
            for s, result in zip(found, results, strict=True):
                rewriter.replace(node.outputs[s.position], result)


def _sums(rewriter: ClusterRewriter, node: KernelNode, counters: LoopCounters) -> list[_Sum]:
    loop = LoopRewriter(rewriter, node, counters)
    versions = {u.new for u in rewriter.cluster.updates}  # which a node of their own must make
    candidates = (_sum(loop, i) for i, x in enumerate(node.outputs) if x not in versions)
    return [s for s in candidates if s is not None]


def _sum(loop: LoopRewriter, position: int) -> _Sum | None:
    """Returns the sum that a loop variable is, if it is one."""
    cond, body = loop.loop.inner
    before, after = body.inputs[position], body.outputs[position]
    node = loop.only_reader(before)
    if node is None or node.op not in _SUMS or len(node.inputs) != 2 or node.outputs[0] is not after:
        return None
    product = loop.maker(node.inputs[1] if node.inputs[0] is before else node.inputs[0])
    if product is None or product.op != "MatMul" or not product.attrs["transpose_a"] or product.attrs["transpose_b"]:
        return None
    if _is_read(loop, after, position) or loop.only_reader(product.outputs[0]) is not node:
        return None
    if product.outputs[0].dtype.name not in EXACT_ENOUGH or any(cond.inputs[position] in n.inputs for n in cond.nodes):
        return None
    for operand, x in enumerate(product.inputs):
        row = loop.row(x)
        if row is not None and _pays(product):
            return _Sum(position, node, product, operand, row)
    return None


def _is_read(loop: LoopRewriter, after: Value, position: int) -> bool:
    """Returns whether anything but the loop variable has the sum of an iteration."""
    outputs = loop.loop.inner[1].outputs
    return bool(loop.body.readers(after)) or any(v is after for i, v in enumerate(outputs) if i != position)


def _pays(product: KernelNode) -> bool:
    """Returns whether an iteration keeps less for later than it would add to the sum."""
    return max(x.size for x in product.inputs) <= product.outputs[0].size


def _sink(loop: LoopRewriter, found: _Sum, kept: dict[tuple[Value, Value], Value]) -> Value:
    """Returns the sum of all products after a loop whose iterations keep the other operand.

    kept: what they keep already, by the value and the index of the row.
    """
    product, row, name = found.product, found.row, found.product.name
    other = product.inputs[1 - found.operand]
    if (other, row.index) not in kept:
        kept[other, row.index] = _keep(loop, found, other)
    pair = row.source, kept[other, row.index]
    operands = [loop.reshaped(x, (x.shape[0] * x.shape[1], x.shape[2]), name) for x in pair]
    if found.operand == 1:
        operands.reverse()
    made = loop.beside("MatMul", operands, product.attrs, name)
    loop.body.erase(found.sum)
    loop.body.erase(product)
    loop.erase_unread(product.inputs[found.operand])
    start = _start(loop, found.position)
    return made if start is None else loop.beside("AddV2", [start, made], {"T": as_dtype(made.dtype)}, found.sum.name)


def _start(loop: LoopRewriter, position: int) -> Value | None:
    """Returns what a loop variable begins with; None for zeros."""
    value = loop.outer.inputs(loop.loop)[position]
    return None if value.kind == "const" and not value.constant.any() else value


def _keep(loop: LoopRewriter, found: _Sum, x: Value) -> Value:
    """Returns what a value of the body is in each iteration, by the index of the row that it reads; after the loop."""
    dtype, name = as_dtype(x.dtype), found.product.name
    shape = (found.row.source.shape[0], *x.shape)
    given = [loop.outer.constant(v) for v in (np.array(shape, np.int32), np.zeros((), x.dtype))]
    start = loop.beside("Fill", given, {"T": dtype, "index_type": int32}, name)
    index = as_dtype(found.row.index.dtype)
    attrs = {"T": dtype, "Tindices": index, "bad_indices_policy": ""}
    row = [_reshaped(loop, found.row.index, (1, 1), found), _reshaped(loop, x, (1, *x.shape), found)]
    state = loop.start_variable(found.position, start)
    result = loop.insert("TensorScatterUpdate", [state, *row], attrs, found.product)
    return loop.end_variable(found.position, result)


def _reshaped(loop: LoopRewriter, x: Value, shape: tuple[int, ...], found: _Sum) -> Value:
    """Returns a value of the body in another shape."""
    sizes = loop.body.constant(np.array(shape, np.int32))
    return loop.insert("Reshape", [x, sizes], {"T": as_dtype(x.dtype), "Tshape": int32}, found.product)


SINK = Pass(
    "sink",
    "cluster",
    run,
    "multiplies what the iterations of a loop add up as products after it",
    after=("hoist",),
    before=("cover", "fuse"),
)

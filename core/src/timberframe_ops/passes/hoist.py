"""Pass `hoist`: products of what the iterations of a loop read are one product before the loop.

A cell of a recurrent network multiplies the input of each step, or the input beside its state, by weights. That of the
state has to wait for the step before. Of the inputs all steps are there, so they are multiplied by the weights at
once: few rows are multiplied as fast as the weights can be read, and one product reads them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.dtypes import as_dtype
from timberframe_core.plugin.contracts import KernelNode, Value
from timberframe_core.plugin.passes import Pass
from timberframe_ops.passes.loop_rewriter import EXACT_ENOUGH, LoopRewriter, Row, rewrite_products
from timberframe_ops.passes.weights import weight_rows

_MOST_ROWS = 4
"""Rows of an iteration's product: from 8 on reading the weights takes less than multiplying."""
_MOST_ROWS_BESIDE = 2
"""The same where the product goes on with the state: what is left of it is then another addition."""
_FEWEST_ITERATIONS = 4
_ITERATIONS_FOR_COPY = 32
"""Iterations that have to save reading a matrix of weights before it pays to copy its rows, as those of variables."""
_LARGEST_PRODUCT = 64 << 20
"""Bytes of the product of all rows, which the loop by itself does not keep."""


@dataclass(frozen=True)
class _Product:
    """A product in a loop's body by weights that stay the same. bias: the node that alone reads it, to add one."""

    node: KernelNode
    weights: Value
    bias: KernelNode | None

    @property
    def last(self) -> KernelNode:
        return self.node if self.bias is None else self.bias


def run(rewriter: ClusterRewriter) -> None:
    """Rewrites products in the bodies of loops whose iterations read each row of a tensor once."""
    rewrite_products(rewriter, _hoist, _FEWEST_ITERATIONS)


def _hoist(loop: LoopRewriter, node: KernelNode) -> bool:
    """Takes a product out of a loop, or its part that does not wait for other iterations; whether it did."""
    product = _product(loop, node)
    if product is None or node.outputs[0].nbytes * loop.iterations > _LARGEST_PRODUCT:
        return False
    rows = node.inputs[0].shape[0]
    row = loop.row(node.inputs[0])
    if row is not None and rows <= _MOST_ROWS:
        _replace(loop, product, _read(loop, product, row, product.weights))
        return True
    concat = loop.maker(node.inputs[0])
    if concat is None or concat.op != "ConcatV2" or rows > _MOST_ROWS_BESIDE or node.attrs["transpose_b"]:
        return False
    return _hoist_part(loop, product, concat)


def _product(loop: LoopRewriter, node: KernelNode) -> _Product | None:
    """Returns the product that a MatMul is, if its second operand stays the same."""
    weights = loop.outside(node.inputs[1])
    if weights is None or node.attrs["transpose_a"] or node.inputs[0].dtype.name not in EXACT_ENOUGH:
        return None
    return _Product(node, weights, _bias(loop, node))


def _bias(loop: LoopRewriter, product: KernelNode) -> KernelNode | None:
    """Returns the BiasAdd that alone reads a product, if its bias stays the same."""
    node = loop.only_reader(product.outputs[0])
    if node is None or node.op != "BiasAdd" or node.inputs[0] is not product.outputs[0]:
        return None
    return None if loop.outside(node.inputs[1]) is None else node


def _hoist_part(loop: LoopRewriter, product: _Product, concat: KernelNode) -> bool:
    """Takes the part of a product out whose operand is the first or last of those that a ConcatV2 puts side by side."""
    *parts, axis = concat.inputs
    if axis.kind != "const" or int(axis.constant) not in (1, -1):
        return False
    for part, rest, first in ((parts[0], parts[1:], True), (parts[-1], parts[:-1], False)):
        row = loop.row(part)
        if row is not None and _pays(loop, product, part.shape[1]):
            width, depth = part.shape[1], concat.outputs[0].shape[1]
            own, others = ((0, width), (width, depth)) if first else ((depth - width, depth), (0, depth - width))
            read = _read(loop, product, row, weight_rows(loop, product.weights, *own))
            left = _beside(loop, product, concat, rest, loop.inside(weight_rows(loop, product.weights, *others)))
            dtype = as_dtype(read.dtype)
            _replace(loop, product, loop.insert("AddV2", [read, left], {"T": dtype}, product.last))
            return True
    return False


def _pays(loop: LoopRewriter, product: _Product, width: int) -> bool:
    """Returns whether iterations save more than it takes to copy rows of the weights, which
    those of constants do without.
    """
    if product.weights.kind == "const":
        return True
    return width * loop.iterations >= _ITERATIONS_FOR_COPY * product.weights.shape[0]


def _beside(loop: LoopRewriter, product: _Product, concat: KernelNode, rest: Sequence[Value], weights: Value) -> Value:
    """Returns the product of the other operands of a ConcatV2, in the body."""
    node, operand = product.node, rest[0]
    if len(rest) > 1:
        attrs = {**concat.attrs, "N": len(rest)}
        operand = loop.insert("ConcatV2", [*rest, concat.inputs[-1]], attrs, node, concat.name)
    return loop.insert("MatMul", [operand, weights], node.attrs, node)


def _read(loop: LoopRewriter, product: _Product, row: Row, weights: Value) -> Value:
    """Returns an iteration's row of the product of all rows, with the bias added."""
    node, last = product.node, product.last
    count, rows, depth = row.source.shape
    columns = node.outputs[0].shape[1]
    operand = loop.reshaped(row.source, (count * rows, depth), node.name)
    made = loop.beside("MatMul", [operand, weights], node.attrs, node.name)
    if product.bias is not None:
        bias = loop.outside(product.bias.inputs[1])
        assert bias is not None
        made = loop.beside("BiasAdd", [made, bias], product.bias.attrs, product.bias.name)
    made = loop.inside(loop.reshaped(made, (count, rows, columns), node.name))
    return loop.insert("GatherV2", [made, row.index, row.read.inputs[2]], row.read.attrs, last, row.read.name)


def _replace(loop: LoopRewriter, product: _Product, made: Value) -> None:
    """Puts a value in the place of a product with its bias, and leaves out what nothing else reads."""
    loop.body.replace(product.last.outputs[0], made)
    if product.bias is not None:
        loop.body.erase(product.bias)
    loop.body.erase(product.node)
    loop.erase_unread(product.node.inputs[0])


HOIST = Pass(
    "hoist",
    "cluster",
    run,
    "multiplies what the iterations of a loop read by weights before it",
    before=("cover", "fuse"),
)

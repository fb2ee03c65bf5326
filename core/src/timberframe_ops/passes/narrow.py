"""Pass `narrow`: products in loops have no columns that nothing reads.

The gradient of what a cell puts beside its state is one product, of which a network that needs no gradient of its
inputs reads the part of the state.
"""

from __future__ import annotations

from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.plugin.contracts import KernelNode, Value
from timberframe_core.plugin.passes import Pass
from timberframe_ops.passes.loop_rewriter import EXACT_ENOUGH, LoopRewriter, rewrite_products
from timberframe_ops.passes.weights import weight_rows

_ROWS_READ_FOR_COPY = 16
"""Rows of weights that take as long to multiply one row by as one takes to copy."""
_MOST_ROWS = 8
"""Rows of the other operand, of which each makes the product longer; further ones need no counting."""


def run(rewriter: ClusterRewriter) -> None:
    """Rewrites products, by transposed weights that stay the same, of which one Slice reads some columns."""
    rewrite_products(rewriter, _narrow)


def _narrow(loop: LoopRewriter, node: KernelNode) -> bool:
    """Leaves out the columns that nothing reads; whether there are any."""
    reader, weights = loop.only_reader(node.outputs[0]), loop.outside(node.inputs[1])
    if reader is None or weights is None or node.attrs["transpose_a"] or not node.attrs["transpose_b"]:
        return False
    columns = _columns(reader, node.outputs[0])
    if columns is None or node.inputs[0].dtype.name not in EXACT_ENOUGH or not _pays(loop, node, weights, len(columns)):
        return False
    rows = loop.inside(weight_rows(loop, weights, columns.start, columns.stop))
    loop.body.replace(reader.outputs[0], loop.insert("MatMul", [node.inputs[0], rows], node.attrs, node))
    loop.body.erase(reader)
    loop.body.erase(node)
    return True


def _columns(reader: KernelNode, x: Value) -> range | None:
    """Returns the columns of a matrix that its reader takes, if it is a Slice of all rows."""
    begin = reader.inputs[1] if reader.op == "Slice" else None
    if begin is None or begin.kind != "const" or reader.outputs[0].shape[0] != x.shape[0]:
        return None
    first = int(begin.constant[1])
    return range(first, first + reader.outputs[0].shape[1])


def _pays(loop: LoopRewriter, node: KernelNode, weights: Value, count: int) -> bool:
    """Returns whether iterations save more than it takes to copy so many rows of weights, as
    those of variables have to be.
    """
    left_out = weights.shape[0] - count
    saved = left_out * min(node.inputs[0].shape[0], _MOST_ROWS) * loop.iterations
    return left_out > 0 and (weights.kind == "const" or saved >= _ROWS_READ_FOR_COPY * count)


NARROW = Pass(
    "narrow",
    "cluster",
    run,
    "leaves out columns of products in loops that nothing reads",
    after=("sink",),
    before=("cover", "fuse"),
)

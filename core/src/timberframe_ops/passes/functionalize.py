"""Pass `functionalize`: TensorFlow 1's control flow and reference variables become loops, branches and variables."""

from __future__ import annotations

from timberframe_core.compiler.ir import RAISED
from timberframe_core.compiler.passes.graph_rewriter import GraphRewriter
from timberframe_core.plugin.passes import Pass


def run(rewriter: GraphRewriter) -> None:
    """Raises the graph, if there is anything to raise. UnimplementedError names a node that cannot be expressed."""
    old = [op for op in rewriter.operations if op.op_def.role in RAISED]
    if not old:
        return
    from timberframe_ops.passes.raising.graphs import raise_graph  # here, since many programs have none of these

    wanted = [f for group in rewriter.fetches for f in group]
    raised = raise_graph(rewriter.graph, rewriter.operations, wanted, rewriter.feeds)
    made = iter(raised.fetches)
    fetches = [[f for _ in group for f in next(made)] for group in rewriter.fetches]
    rewriter.substitute(raised.graph, fetches, raised.feeds, old)


FUNCTIONALIZE = Pass(
    "functionalize", "graph", run, "makes loops, branches and variables of TensorFlow 1's control flow and references"
)

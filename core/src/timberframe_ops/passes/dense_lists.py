"""Pass `dense_lists`: makes dense tensors of the lists and arrays that loops work on."""

from __future__ import annotations

from collections.abc import Iterable

from timberframe_core.compiler.passes.graph_rewriter import GraphRewriter
from timberframe_core.errors import OpError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation
from timberframe_core.graph.signatures import called_functions
from timberframe_core.plugin.passes import Pass


def run(rewriter: GraphRewriter) -> None:
    """Copies the graph, if it has loops over lists; where one of these must stay a list, all do."""
    loops = _loops_over_lists(rewriter.operations, {})
    if not loops:
        return
    from timberframe_ops.passes.dense.graph import dense_graph  # here, since few programs have such loops
    from timberframe_ops.passes.dense.lists import NotDenseError

    assert rewriter.shapes is not None
    try:
        graph, fetches, feeds = dense_graph(rewriter.subgraph, rewriter.shapes)
    except (NotDenseError, OpError) as e:  # an error of the user's graph comes again, and in its own words
        for name in loops:
            rewriter.decline(name, str(e))
    else:
        rewriter.substitute(graph, fetches, feeds, loops)


def _loops_over_lists(operations: Iterable[Operation], known: dict[FuncGraph, list[str]]) -> list[str]:
    """Returns the names of the loops among operations whose bodies work on lists, in functions
    after those of the calls.

    known: those in functions that were seen before.
    """
    found = []
    for op in operations:
        if op.op_def.role == "loop":
            from timberframe_ops.passes.dense.graph import uses_lists  # here, since many programs have no loop

            if any(uses_lists(f) for f in called_functions(op, op.graph)):
                found.append(op.name)
        elif op.op_def.role == "call":
            for function in called_functions(op, op.graph):
                if function not in known:
                    known[function] = []  # a recursion
                    known[function] = _loops_over_lists(function.get_operations(), known)
                found += [f"{op.name}/{name}" for name in known[function]]
    return found


DENSE_LISTS = Pass("dense_lists", "fed_graph", run, "makes dense tensors of the lists and arrays that loops work on")

"""Pass `simplify`: leaves out nodes that only pass their inputs through."""

from __future__ import annotations

from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.plugin.passes import Pass


def run(rewriter: ProgramRewriter) -> None:
    """Lets what reads such a node read what it passes through; one with control inputs stays, for their order."""
    for node in rewriter.nodes:
        if node.op.passes_through and not node.control:
            for x, y in zip(node.outputs, rewriter.inputs(node), strict=True):
                rewriter.replace(x, y)
            rewriter.erase(node)


SIMPLIFY = Pass("simplify", "program", run, "leaves out nodes that only pass their inputs through")

"""Pass `powers`: powers by small whole numbers are products."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.compiler.support import has_kernel
from timberframe_core.plugin.passes import Pass

_CHAINS: dict[float, tuple[str, ...]] = {
    -1: ("Reciprocal",),
    2: ("Square",),
    3: ("Square", "Mul"),
    4: ("Square", "Square"),
}
"""The nodes that compute a power: each takes the one before, the first one x, and Mul x besides.

What overflows or vanishes on the way does so in the result. Roots are left out: they differ for -0 and -infinity.
"""
_DTYPES = ("float32", "float64")
"""Narrower ones would be rounded after each product, and integers wrap in their own ways."""


def run(rewriter: ProgramRewriter) -> None:
    """Puts products in place of each Pow with such an exponent, a constant scalar, where its device has them."""
    for node in rewriter.nodes:
        if node.op.name != "Pow" or not rewriter.may_erase(node):
            continue
        x, exponent = rewriter.inputs(node)
        ops = _CHAINS.get(_scalar(exponent), ()) if x.dtype.name in _DTYPES else ()
        made = _chain(rewriter, node, x, ops)
        if made and all(map(has_kernel, made)):
            for n in made:
                rewriter.insert(n, node)
            rewriter.replace(node.outputs[0], made[-1].outputs[0])
            rewriter.erase(node)


def _scalar(x: Output) -> float:
    """Returns the value of a constant of no dimensions, else NaN, which is no power."""
    value = x.node.attrs["value"] if x.node.op.role == "constant" else None
    return float(value) if value is not None and value.shape == () else float("nan")


def _chain(rewriter: ProgramRewriter, node: Node, x: Output, ops: Sequence[str]) -> list[Node]:
    made: list[Node] = []
    for op in ops:
        before = made[-1].outputs[0] if made else x
        made.append(rewriter.create(op, [before, x] if op == "Mul" else [before], {"T": x.dtype}, like=node))
    return made


POWERS = Pass("powers", "placed", run, "computes powers by small whole numbers as products", after=("fold",))

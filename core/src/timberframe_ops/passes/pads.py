"""Pass `pads`: zeros around the input of a convolution are its padding."""

from __future__ import annotations

import numpy as np

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.compiler.support import has_kernel
from timberframe_core.plugin.passes import Pass

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
"""Sums of products that can pad by themselves. A pooling op has such padding, too, of which it takes no maximum."""


def run(rewriter: ProgramRewriter) -> None:
    """Gives the amounts of a Pad to the convolutions that read it, where these do so and nothing else does."""
    for pad in rewriter.nodes:
        if pad.op.name != "Pad" or not rewriter.may_erase(pad) or rewriter.is_result(pad.outputs[0]):
            continue
        readers = rewriter.readers(pad.outputs[0])
        made = [_padding(rewriter, pad, reader) for reader in readers]
        if not made or None in made:
            continue
        for reader, node in zip(readers, made, strict=True):
            assert node is not None
            rewriter.insert(node, reader)
            rewriter.replace(reader.outputs[0], node.outputs[0])
            rewriter.erase(reader)
        rewriter.erase(pad)


def _padding(rewriter: ProgramRewriter, pad: Node, node: Node) -> Node | None:
    """Returns the convolution `node` of what `pad` pads; None where it has to stay."""
    amounts = _amounts(rewriter.inputs(pad)[1])
    if node.op.name not in _CONVOLUTIONS or node.device is not pad.device or not rewriter.may_erase(node):
        return None
    x, filters = rewriter.inputs(node)
    if amounts is None or x is not pad.outputs[0] or filters is x or node.attrs["padding"] not in ("VALID", "EXPLICIT"):
        return None
    if node.attrs["padding"] == "EXPLICIT":
        amounts = amounts + np.reshape(node.attrs["explicit_paddings"], amounts.shape)
    channels = node.attrs["data_format"].index("C")
    if amounts.shape != (4, 2) or amounts[0].any() or amounts[channels].any():
        return None
    attrs = {**node.attrs, "padding": "EXPLICIT", "explicit_paddings": tuple(int(n) for n in amounts.ravel())}
    made = rewriter.create(node.op.name, [rewriter.inputs(pad)[0], filters], attrs, like=node)
    return made if has_kernel(made) else None


def _amounts(x: Output) -> np.ndarray | None:
    """Returns the value of a constant."""
    value: np.ndarray | None = x.node.attrs["value"] if x.node.op.role == "constant" else None
    return value


PADS = Pass("pads", "placed", run, "has convolutions pad their inputs with zeros themselves", after=("fold",))

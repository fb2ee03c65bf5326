"""Parameters of MirrorPadGrad's kernels."""

from __future__ import annotations

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves.views import host_integers


def mirrored_dimensions(node: KernelNode) -> tuple[bool, int, list[tuple[int, int, int]]]:
    """Returns whether the edge itself is not mirrored, elements that stay together, and (size,
    before, after) of dimensions.

    Sizes are the output's. Dimensions without paddings become one with the one before them.
    """
    pairs = host_integers(node, 1)
    merged: list[tuple[int, int, int]] = []
    unit = 1
    for size, before, after in zip(node.outputs[0].shape[::-1], pairs[-2::-2], pairs[::-2], strict=True):
        if not merged and not before and not after:
            unit *= size
        elif merged and not before and not after and merged[-1][1:] == (0, 0):
            merged[-1] = (merged[-1][0] * size, 0, 0)
        else:
            merged.append((size, before, after))
    return node.attrs["mode"] == "REFLECT", unit, merged[::-1] or [(1, 0, 0)]

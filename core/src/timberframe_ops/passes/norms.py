"""Pass `norms`: batch normalization by constant statistics goes into the constant filters of the convolution before it.

y = (x * w - mean) factor + offset with factor = scale / sqrt(variance + epsilon) is x * (w factor) + (offset - mean
factor): a convolution and a BiasAdd, which many devices have one kernel for. Done where that is so, and where the
device has no kernel that covers convolution and normalization as they are.
"""

from __future__ import annotations

import math

import numpy as np

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.passes.rewriter import ProgramRewriter
from timberframe_core.compiler.support import has_kernel
from timberframe_core.plugin.contracts import Device
from timberframe_core.plugin.passes import Pass

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
"""Of the second, the last two dimensions of the filters are the channels of the output."""
_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_BIAS = "BiasAdd"


def run(rewriter: ProgramRewriter) -> None:
    """Puts normalizations whose statistics are constants into the filters before them."""
    for norm in rewriter.nodes:
        if norm.op.name in _NORMS and not norm.attrs["is_training"] and rewriter.may_erase(norm):
            _fold(rewriter, norm)


def _fold(rewriter: ProgramRewriter, norm: Node) -> None:
    x, *statistics = rewriter.inputs(norm)
    conv = x.node
    if not _only_feeds(rewriter, conv, norm) or not _gains(conv, norm):
        return
    image, filters = rewriter.inputs(conv)
    values = [_constant(s) for s in (filters, *statistics)]
    if any(v is None for v in values):
        return
    weights, scale, offset, mean, variance = (np.asarray(v, np.float64) for v in values)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + norm.attrs["epsilon"])
        bias = offset - mean * factor
    if not (np.isfinite(factor).all() and np.isfinite(bias).all()):
        return  # infinite filters would make NaN of zeros
    per_channel = factor.reshape(weights.shape[-2:]) if conv.op.name != "Conv2D" else factor
    scaled = rewriter.constant((weights * per_channel).astype(filters.dtype.numpy), filters)
    shift = rewriter.constant(bias.astype(x.dtype.numpy), statistics[1])
    made = rewriter.create(conv.op.name, [image, scaled.outputs[0]], conv.attrs, like=conv)
    attrs = {"T": norm.attrs["T"], "data_format": norm.attrs["data_format"]}
    added = rewriter.create(_BIAS, [made.outputs[0], shift.outputs[0]], attrs, like=norm)
    if has_kernel(added):
        for node in (scaled, shift, made, added):
            rewriter.insert(node, norm)
        rewriter.replace(norm.outputs[0], added.outputs[0])
        rewriter.erase(norm)
        rewriter.erase(conv)


def _only_feeds(rewriter: ProgramRewriter, conv: Node, norm: Node) -> bool:
    """Returns whether `norm` alone reads a convolution of its layout, and nobody the
    statistics that `norm` hands on.
    """
    if conv.op.name not in _CONVOLUTIONS or conv.device is not norm.device or not rewriter.may_erase(conv):
        return False
    y = conv.outputs[0]
    if rewriter.is_result(y) or list(rewriter.readers(y)) != [norm] or y.dtype.name != "float32":
        return False
    if conv.attrs["data_format"] != norm.attrs["data_format"]:
        return False
    return not any(rewriter.is_result(s) or rewriter.readers(s) for s in norm.outputs[1:])


def _gains(conv: Node, norm: Node) -> bool:
    """Returns whether the device has a kernel for the convolution with a bias, and none for
    it with the normalization.
    """
    device: Device | None = norm.device
    assert device is not None
    covered = [
        {p.op for p in kernel.covers} for found in device.kernels.covering(device.type).values() for kernel in found
    ]
    with_conv = [ops for ops in covered if conv.op.name in ops]
    return any(_BIAS in ops for ops in with_conv) and not any(norm.op.name in ops for ops in with_conv)


def _constant(x: Output) -> np.ndarray | None:
    """Returns the value of a constant of known elements."""
    value: np.ndarray | None = x.node.attrs["value"] if x.node.op.role == "constant" else None
    return value if value is not None and math.prod(value.shape) else None


NORMS = Pass(
    "norms",
    "placed",
    run,
    "has constant filters do the normalization that follows, where a kernel adds biases to them",
    after=("fold", "pads"),
)

"""Convolutions with what follows them in a layer: bias, batch normalisation by given statistics, activation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from timberframe_cpu.kernels.convolution import WIDEST_LANES, CPUConvolution, prepares_filter, prepares_pairs
from timberframe_cpu.packing import panel
from timberframe_sdk import DEPENDS, KernelDef, KernelNode, Part, Support
from timberframe_sdk.native import Native

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
_ACTIVATIONS = ((), ("Relu",), ("Relu6",), ("Sigmoid", "Mul"))
"""Their ops, in the order in which csrc/conv/finish.h numbers them; Swish is x * sigmoid(x)."""
_NORMS = ("", "FusedBatchNorm", "FusedBatchNormV3")
_STATISTICS = ("scale", "offset", "mean", "variance")


def _patterns() -> list[tuple[Part, ...]]:
    found = []
    for op, bias, norm, activation in itertools.product(_CONVOLUTIONS, ("", "BiasAdd"), _NORMS, _ACTIVATIONS):
        parts = [Part("conv", op, ("x", "filter"))]
        for after, more in ((bias, ("bias",)), (norm, _STATISTICS)):
            if after:
                parts.append(Part(after, after, (parts[-1].name, *more)))
        made = parts[-1].name
        for after in activation:
            parts.append(Part(after, after, tuple(dict.fromkeys((made, parts[-1].name)))))
        if len(parts) > 1 if op == "Conv2D" else norm and not bias:  # what layers have
            found.append(tuple(parts))
    return found


def _declines(node: KernelNode) -> Support:
    """Channels that come first, statistics of the batch, and no pixels at all are left to the kernels of each node."""
    for part in node.inner[0].nodes:
        if part.attrs.get("data_format", "NHWC") != "NHWC":
            return f"data_format of {part.op} is {part.attrs['data_format']}; NHWC is required"
        if part.attrs.get("is_training"):
            return f"is_training of {part.op} is true; given statistics are required"
    first = node.inner[0].nodes[0]
    x, filter = (v.shape for v in first.inputs)
    sizes = *x, *filter, *node.outputs[0].shape
    if min(sizes, default=0) < 0:
        return DEPENDS
    if first.op != "Conv2D" and filter[3] != 1:
        return f"{filter[3]} filters for each channel; one is required"
    return "the images have no pixels" if 0 in sizes else None


def _finished(node: KernelNode) -> Native:
    """Parameters: struct finished_shape of csrc/conv/finish.h."""
    parts = {part.op: part for part in node.inner[0].nodes}
    first, bias = node.inner[0].nodes[0], "BiasAdd" in parts
    inner = replace(node, op=first.op, attrs=first.attrs, inputs=node.inputs[:2], outputs=first.outputs, inner=())
    norm = next((op for op in _NORMS[1:] if op in parts), None)
    activation = max(number for number, ops in enumerate(_ACTIVATIONS) if parts.keys() >= set(ops))
    more = 2 * bias, (2 + bias) * bool(norm), activation, len(node.outputs)
    epsilon = float(parts[norm].attrs["epsilon"]) if norm else 0.0
    native = (_plain if first.op == "Conv2D" else _depthwise)(inner, more, epsilon)
    node.preparations, node.workspace_bytes = inner.preparations, inner.workspace_bytes
    return native


def _plain(node: KernelNode, more: Sequence[int], epsilon: float) -> Native:
    conv = CPUConvolution.forward(node)
    groups, depth, outside = conv.groups
    pairs = prepares_pairs(conv)
    packed = pairs or prepares_filter(conv)
    taps = conv.filter.shape[0] * conv.filter.shape[1]
    copy = 0 if packed else taps * depth * groups * (outside + WIDEST_LANES)
    lanes = panel()[0] // conv.x.dtype.itemsize
    padded = -(-outside // lanes) * lanes
    sizes = (pairs * conv.paired_size, 0, 0, copy, conv.filter.shape[1] * depth, 4 * groups * padded)
    return conv.native("conv2d_finished_pairs" if pairs else "conv2d_finished", sizes, packed, *more, padded, epsilon)


def _depthwise(node: KernelNode, more: Sequence[int], epsilon: float) -> Native:
    conv = CPUConvolution.forward(node, depthwise=True)
    channels = conv.groups[0]
    return conv.native("depthwise_finished", (0, 0, 0, 0, channels, 4 * channels), False, *more, 1, epsilon)


KERNELS = [
    KernelDef(
        f"CPU>{''.join(part.op for part in parts)}",
        "CPU",
        _finished,
        {"T": ("float32",)},
        suits=_declines,
        covers=parts,
    )
    for parts in _patterns()
]

"""Kernels for the CPU that run Conv2D, BiasAdd and Relu at once: an example of patterns (`KernelDef.covers`).

A row of a matrix holds a pixel's window of all channels; the matrix times the filter is the convolution. The kernels
take even numbers of images and output channels only, as a kernel would that computes two at a time.
"""

import numpy as np

from timberframe_sdk import DEPENDS, Part, hookimpl, kernel
from timberframe_sdk.plans.convolution import Convolution

timberframe_contract = (2, 0)  # the version of timberframe_sdk.CONTRACT that this is written for

KERNELS = []
FLOAT = {"T": ("float32",)}
CONV = Part("conv", "Conv2D", ("x", "filter"))
SUM = Part("sum", "BiasAdd", ("conv", "bias"))
RELU = Part("out", "Relu", ("sum",))


def parts_of(node):
    """Returns the nodes that a kernel runs: those that it covers, or the node itself."""
    return node.inner[0].nodes if node.inner else [node]


def even(node):
    """Declines odd numbers of images and output channels, channels in groups, and channels that do not come last."""
    for part in parts_of(node):
        if part.attrs.get("data_format", "NHWC") != "NHWC":
            return f"data_format of {part.op} is {part.attrs['data_format']}; NHWC is required"
    x, filter = node.inputs[0].shape, node.inputs[1].shape
    for count, what in ((x[0], "images"), (filter[3], "output channels")):
        if count > 0 and count % 2:
            return f"{count} {what}; an even number is required"
    if min(x[0], x[3], filter[2], filter[3]) < 0:
        return DEPENDS
    return None if x[3] == filter[2] else f"{x[3]} channels and filters of {filter[2]}; one group is required"


def product(node):
    """Returns what writes the convolution of x by filter into out, for the shapes of a node."""
    conv = Convolution.forward(parts_of(node)[0])
    windows = conv.windows
    pixels, terms, channels = conv.y.size // conv.y.shape[3], conv.filter.size // conv.y.shape[3], conv.y.shape[3]
    spans = [(w.kernel - 1) * w.dilation + 1 for w in windows]
    starts = [slice(0, (w.out_size - 1) * w.stride + 1, w.stride) for w in windows]
    taps = [slice(None, None, w.dilation) for w in windows]
    after = [max(w.span - w.before - w.size, 0) for w in windows]
    edges = ((0, 0), *((w.before, n) for w, n in zip(windows, after, strict=True)), (0, 0))

    def multiply(x, filter, out):
        if not out.size:
            return
        padded = np.pad(x, edges) if any(map(any, edges)) else x
        seen = np.lib.stride_tricks.sliding_window_view(padded, spans, (1, 2))[:, *starts, :, *taps]
        rows = seen.transpose(0, 1, 2, 4, 5, 3).reshape(pixels, terms)
        np.matmul(rows, filter.reshape(terms, channels), out=out.reshape(pixels, channels))

    return multiply


@kernel(KERNELS, "Conv2D", "CPU", types=FLOAT, priority=1, suits=even)
def conv(node):
    return product(node)


@kernel(KERNELS, "ConvPack>ConvBias", "CPU", types=FLOAT, priority=1, suits=even, covers=(CONV, SUM))
def conv_bias(node):
    multiply = product(node)

    def launch(x, filter, bias, out):
        multiply(x, filter, out)
        np.add(out, bias, out=out)

    return launch


@kernel(KERNELS, "ConvPack>ConvBiasRelu", "CPU", types=FLOAT, priority=1, suits=even, covers=(CONV, SUM, RELU))
def conv_bias_relu(node):
    multiply = product(node)

    def launch(x, filter, bias, out):
        multiply(x, filter, out)
        np.add(out, bias, out=out)
        np.maximum(out, 0, out=out)

    return launch


@hookimpl
def timberframe_kernels():
    return KERNELS

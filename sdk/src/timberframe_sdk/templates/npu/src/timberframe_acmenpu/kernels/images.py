"""Ops on images, as [batch, height, width, channels]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import timberframe_sdk as sdk
from timberframe_acmenpu.hardware import accumulator
from timberframe_acmenpu.kernels.declare import kernel
from timberframe_acmenpu.kernels.lanes import Weights, pack, padded, workspace
from timberframe_sdk.plans.convolution import Convolution, Window, window

KERNELS: list[sdk.KernelDef] = []
Finish = Callable[..., np.ndarray]


def channels_last(node: sdk.KernelNode) -> sdk.Support:
    """Declines what the kernels below cannot do."""
    data_format = node.attrs["data_format"]
    return None if data_format == "NHWC" else f"data_format is {data_format}; NHWC is required"


@kernel(KERNELS, "BiasAdd", suits=channels_last, inplace=((0, 0),))
def bias_add(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, bias, out: np.add(x, bias, out=out)


# Convolutions


def plain_convolution(node: sdk.KernelNode) -> sdk.Support:
    if any(d != 1 for d in node.attrs["dilations"]):
        return f"dilations are {node.attrs['dilations']}; 1 is required"
    given, taken = node.inputs[0].shape[3:], node.inputs[1].shape[2:3]
    if given != taken and -1 not in given + taken:
        return f"filters take {taken[0]} of {given[0]} channels; groups are not supported"
    return channels_last(node) or (sdk.DEPENDS if -1 in given + taken else None)


def convolution(node: sdk.KernelNode, windows: tuple[Window, ...], finish: Finish) -> Callable[..., Any]:
    """A launcher that convolves and hands the sums to `finish`, with what inputs come after the filters.

    The matrix unit takes, for each tap of the filters, all positions of the images that it meets.
    """
    rows, columns = windows
    x, filters, y = node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape
    height, width = (min(w.size, w.span - w.before) for w in windows)  # the last rows may be in no window
    images = (x[0], rows.span, columns.span, padded(x[3]))
    sums = (*y[:3], padded(y[3]))
    weights = Weights(node, 1, filters, pack)
    arrays = workspace(node, [images, sums, *([] if weights.prepared else [weights.shape])])

    def compute(x: np.ndarray, filters: np.ndarray, *rest: np.ndarray) -> None:
        *more, out, memory = rest
        lanes, total, *unprepared = arrays(memory)
        for taps in unprepared:
            pack(filters, taps)
        taps = unprepared[0] if unprepared else filters
        if not out.size:
            return
        lanes[...] = 0
        lanes[:, rows.before :, columns.before :, : x.shape[3]][:, :height, :width] = x[:, :height, :width]
        total[...] = 0
        for i in range(rows.kernel):
            for j in range(columns.kernel):
                met = lanes[:, i :: rows.stride, j :: columns.stride][:, : rows.out_size, : columns.out_size]
                total += met @ taps[i, j]
        out[...] = finish(total[..., : out.shape[3]], *more)

    return compute


@kernel(KERNELS, "Conv2D", suits=plain_convolution)
def conv2d(node: sdk.KernelNode) -> Callable[..., Any]:
    return convolution(node, Convolution.forward(node).windows, lambda sums: sums)


CONVOLUTION_BIAS_RELU6 = (
    sdk.Part("product", "Conv2D", ("x", "filters")),
    sdk.Part("sum", "BiasAdd", ("product", "bias")),
    sdk.Part("out", "Relu6", ("sum",)),
)


def plain_layer(node: sdk.KernelNode) -> sdk.Support:
    product, sum = node.inner[0].nodes[:2]
    return plain_convolution(product) or channels_last(sum)


@kernel(KERNELS, "Acmenpu>ConvolutionBiasRelu6", covers=CONVOLUTION_BIAS_RELU6, suits=plain_layer)
def convolution_bias_relu6(node: sdk.KernelNode) -> Callable[..., Any]:
    """Three nodes as one: the sums never leave the unit."""
    wide = accumulator(node.outputs[0].dtype).type

    def finish(sums: np.ndarray, bias: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.minimum(np.maximum(sums + bias.astype(wide), wide(0)), wide(6))
        return found

    return convolution(node, Convolution.forward(node.inner[0].nodes[0]).windows, finish)


# Pools


def pools_space(node: sdk.KernelNode) -> sdk.Support:
    ksize = node.attrs["ksize"]
    return channels_last(node) or (None if ksize[0] == ksize[3] == 1 else f"ksize is {ksize}; 1, n, m, 1 is required")


@kernel(KERNELS, "MaxPool", suits=pools_space)
def max_pool(node: sdk.KernelNode) -> Callable[..., Any]:
    x, y, ksize = node.inputs[0].shape, node.outputs[0].shape, node.attrs["ksize"]
    rows, columns = (window(node, axis, x[axis], y[axis], ksize[axis]) for axis in (1, 2))
    lowest = sdk.as_dtype(node.outputs[0].dtype).min  # what a window without numbers gives

    def compute(x: np.ndarray, out: np.ndarray) -> None:
        if not out.size:
            return
        images = np.full((len(x), rows.span, columns.span, x.shape[3]), lowest, x.dtype)
        height, width = (min(w.size, w.span - w.before) for w in (rows, columns))
        images[:, rows.before :, columns.before :][:, :height, :width] = x[:, :height, :width]
        windows = sliding_window_view(images, (rows.kernel, columns.kernel), axis=(1, 2))
        windows = windows[:, :: rows.stride, :: columns.stride]
        out[...] = np.fmax.reduce(windows, (4, 5), initial=lowest)

    return compute

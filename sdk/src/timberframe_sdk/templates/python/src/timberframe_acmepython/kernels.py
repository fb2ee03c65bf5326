"""The kernels of ACMEPYTHON, enough for an MLP and for LeNet.

A builder is called once for each combination of shapes, and returns a function of the inputs' and outputs' elements,
which the device's queue calls in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import timberframe_sdk as sdk
from timberframe_sdk.plans.convolution import Convolution, Window, window

KERNELS: list[sdk.KernelDef] = []
Builder = Callable[[sdk.KernelNode], Callable[..., Any]]
LOWEST = float(np.finfo(np.float32).min)  # what MaxPool gives for a window without numbers


def kernel(op: str, **rest: Any) -> Callable[[Builder], Builder]:
    """Declares a builder as the kernel of an op; rest: other fields of `sdk.KernelDef`."""

    def declare(build: Builder) -> Builder:
        @sdk.kernel(KERNELS, op, "ACMEPYTHON", types={"T": ("float32",)}, **rest)
        @functools.wraps(build)
        def queued(node: sdk.KernelNode) -> sdk.Launcher:
            launch, function = node.device.queue.launch, build(node)  # type: ignore[attr-defined]  # our device's
            return lambda *tensors: launch(function, tensors)

        return build

    return declare


# Elementwise ops


@kernel("AddV2")
def add(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.add(x, y, out=out)


@kernel("Sub")
def subtract(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.subtract(x, y, out=out)


@kernel("Mul")
def multiply(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, y, out: np.multiply(x, y, out=out)


@kernel("Relu", inplace=((0, 0),))
def relu(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, out: np.maximum(x, 0, out=out)


@kernel("Reshape")
def reshape(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, out: np.copyto(out, x.reshape(out.shape))


# Rows and matrices


@kernel("MatMul")
def matmul(node: sdk.KernelNode) -> Callable[..., Any]:
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    return lambda a, b, out: np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)


@kernel("Softmax")
def softmax(node: sdk.KernelNode) -> Callable[..., Any]:
    def compute(x: np.ndarray, out: np.ndarray) -> None:
        powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf), dtype=np.float64)
        out[...] = powers / powers.sum(-1, keepdims=True)

    return compute


# Images, as [batch, height, width, channels]


def channels_last(node: sdk.KernelNode) -> sdk.Support:
    """Declines what the kernels below cannot do."""
    data_format = node.attrs["data_format"]
    return None if data_format == "NHWC" else f"data_format is {data_format}; NHWC is required"


@kernel("BiasAdd", suits=channels_last, inplace=((0, 0),))
def bias_add(node: sdk.KernelNode) -> Callable[..., Any]:
    return lambda x, bias, out: np.add(x, bias, out=out)


def windows_of(x: np.ndarray, rows: Window, columns: Window, fill: float) -> np.ndarray:
    """Every window of images: [batch, out height, out width, channels, window height, window width]."""
    padded = np.full((len(x), rows.span, columns.span, x.shape[3]), fill, x.dtype)
    height, width = (min(w.size, w.span - w.before) for w in (rows, columns))  # the last rows may be in no window
    padded[:, rows.before :, columns.before :][:, :height, :width] = x[:, :height, :width]
    found = sliding_window_view(padded, (rows.kernel, columns.kernel), axis=(1, 2))
    return found[:, :: rows.stride, :: columns.stride]


def plain_convolution(node: sdk.KernelNode) -> sdk.Support:
    if any(d != 1 for d in node.attrs["dilations"]):
        return f"dilations are {node.attrs['dilations']}; 1 is required"
    given, taken = node.inputs[0].shape[3:], node.inputs[1].shape[2:3]
    if given != taken and -1 not in given + taken:
        return f"filters take {taken[0]} of {given[0]} channels; groups are not supported"
    return channels_last(node) or (sdk.DEPENDS if -1 in given + taken else None)


@kernel("Conv2D", suits=plain_convolution)
def conv2d(node: sdk.KernelNode) -> Callable[..., Any]:
    rows, columns = Convolution.forward(node).windows

    def compute(x: np.ndarray, filters: np.ndarray, out: np.ndarray) -> None:
        if out.size:
            out[...] = np.tensordot(windows_of(x, rows, columns, 0), filters, axes=((4, 5, 3), (0, 1, 2)))

    return compute


def pools_space(node: sdk.KernelNode) -> sdk.Support:
    ksize = node.attrs["ksize"]
    return channels_last(node) or (None if ksize[0] == ksize[3] == 1 else f"ksize is {ksize}; 1, n, m, 1 is required")


@kernel("MaxPool", suits=pools_space)
def max_pool(node: sdk.KernelNode) -> Callable[..., Any]:
    x, y, ksize = node.inputs[0].shape, node.outputs[0].shape, node.attrs["ksize"]
    rows, columns = (window(node, axis, x[axis], y[axis], ksize[axis]) for axis in (1, 2))

    def compute(x: np.ndarray, out: np.ndarray) -> None:
        if out.size:
            np.fmax.reduce(windows_of(x, rows, columns, LOWEST), (4, 5), out=out, initial=LOWEST)

    return compute

"""The kernels of ACMEC, enough for an MLP and for LeNet: each calls a function of csrc/native.c.

A builder is called once for each combination of shapes, and returns the launcher, which gets the inputs and outputs in
every run. C functions run with the interpreter's lock released.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmec._native import ffi, lib
from timberframe_sdk.plans.convolution import Convolution, Window, window

KERNELS: list[sdk.KernelDef] = []
FLOAT = {"T": ("float32",)}


def at(x: np.ndarray) -> Any:
    """The address of a tensor, for C."""
    return ffi.from_buffer("float[]", x)


# Elementwise ops


def equal_shapes(node: sdk.KernelNode) -> sdk.Support:
    x, y = (v.shape for v in node.inputs)
    if -1 in x + y:
        return sdk.DEPENDS
    return None if x == y else f"shapes are {x} and {y}; equal ones are required"


def binary(function: Any) -> Any:
    def build(node: sdk.KernelNode) -> sdk.Launcher:
        count = node.outputs[0].size
        return lambda x, y, out: function(at(x), at(y), at(out), count)

    return build


for _op, _function in {"AddV2": lib.acmec_add, "Sub": lib.acmec_subtract, "Mul": lib.acmec_multiply}.items():
    sdk.kernel(KERNELS, _op, "ACMEC", types=FLOAT, suits=equal_shapes, inplace=((0, 0), (0, 1)))(binary(_function))


@sdk.kernel(KERNELS, "Relu", "ACMEC", types=FLOAT, inplace=((0, 0),))
def relu(node: sdk.KernelNode) -> sdk.Launcher:
    count = node.outputs[0].size
    return lambda x, out: lib.acmec_relu(at(x), at(out), count)


@sdk.kernel(KERNELS, "Reshape", "ACMEC", types=FLOAT)
def reshape(node: sdk.KernelNode) -> sdk.Launcher:
    return lambda x, out: np.copyto(out, x.reshape(out.shape))


# Rows and matrices


@sdk.kernel(KERNELS, "MatMul", "ACMEC", types=FLOAT)
def matmul(node: sdk.KernelNode) -> sdk.Launcher:
    (a, b), (rows, columns) = (v.shape for v in node.inputs), node.outputs[0].shape
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    inner = a[0] if transpose_a else a[1]
    strides = ((1, a[1]) if transpose_a else (a[1], 1)) + ((1, b[1]) if transpose_b else (b[1], 1))
    return lambda a, b, out: lib.acmec_matmul(at(a), at(b), at(out), rows, columns, inner, *strides)


@sdk.kernel(KERNELS, "Softmax", "ACMEC", types=FLOAT)
def softmax(node: sdk.KernelNode) -> sdk.Launcher:
    *rows, width = node.outputs[0].shape
    count = math.prod(rows)
    return lambda x, out: lib.acmec_softmax(at(x), at(out), count, width)


# Images, as [batch, height, width, channels]


def channels_last(node: sdk.KernelNode) -> sdk.Support:
    """Declines what the kernels below cannot do."""
    data_format = node.attrs["data_format"]
    return None if data_format == "NHWC" else f"data_format is {data_format}; NHWC is required"


@sdk.kernel(KERNELS, "BiasAdd", "ACMEC", types=FLOAT, suits=channels_last, inplace=((0, 0),))
def bias_add(node: sdk.KernelNode) -> sdk.Launcher:
    *rows, width = node.outputs[0].shape
    count = math.prod(rows)
    return lambda x, bias, out: lib.acmec_bias_add(at(x), at(bias), at(out), count, width)


def c_window(w: Window) -> Any:
    return ffi.new("acmec_window *", (w.size, w.out_size, w.kernel, w.stride, w.before))


def plain_convolution(node: sdk.KernelNode) -> sdk.Support:
    if any(d != 1 for d in node.attrs["dilations"]):
        return f"dilations are {node.attrs['dilations']}; 1 is required"
    given, taken = node.inputs[0].shape[3:], node.inputs[1].shape[2:3]
    if given != taken and -1 not in given + taken:
        return f"filters take {taken[0]} of {given[0]} channels; groups are not supported"
    return channels_last(node) or (sdk.DEPENDS if -1 in given + taken else None)


@sdk.kernel(KERNELS, "Conv2D", "ACMEC", types=FLOAT, suits=plain_convolution)
def conv2d(node: sdk.KernelNode) -> sdk.Launcher:
    rows, columns = map(c_window, Convolution.forward(node).windows)
    batch, channels, filters = node.inputs[0].shape[0], *node.inputs[1].shape[2:]
    return lambda x, f, out: lib.acmec_conv2d(at(x), at(f), at(out), batch, channels, filters, rows, columns)


def pools_space(node: sdk.KernelNode) -> sdk.Support:
    ksize = node.attrs["ksize"]
    return channels_last(node) or (None if ksize[0] == ksize[3] == 1 else f"ksize is {ksize}; 1, n, m, 1 is required")


@sdk.kernel(KERNELS, "MaxPool", "ACMEC", types=FLOAT, suits=pools_space)
def max_pool(node: sdk.KernelNode) -> sdk.Launcher:
    x, y, ksize = node.inputs[0].shape, node.outputs[0].shape, node.attrs["ksize"]
    rows, columns = (c_window(window(node, axis, x[axis], y[axis], ksize[axis])) for axis in (1, 2))
    return lambda x, out: lib.acmec_max_pool(at(x), at(out), y[0], y[3], rows, columns)

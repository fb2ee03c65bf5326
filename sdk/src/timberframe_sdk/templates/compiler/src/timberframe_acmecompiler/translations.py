"""What each op is in the toolchain's language, enough for an MLP and for LeNet.

A translation gets a node and the names of its inputs, and returns an expression. `DECLINES` says which nodes have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import timberframe_sdk as sdk
from timberframe_acmecompiler.library import Dimension
from timberframe_sdk.plans.convolution import Convolution, Window, window


def matmul(node: sdk.KernelNode, a: str, b: str) -> str:
    return f"{a}{'.T' * node.attrs['transpose_a']} @ {b}{'.T' * node.attrs['transpose_b']}"


def dimension(w: Window) -> Dimension:
    return w.size, w.out_size, w.kernel, w.stride, w.before


def conv2d(node: sdk.KernelNode, x: str, filters: str) -> str:
    rows, columns = map(dimension, Convolution.forward(node).windows)
    return f"library.conv2d({x}, {filters}, {rows}, {columns})"


def max_pool(node: sdk.KernelNode, x: str) -> str:
    before, after, ksize = node.inputs[0].shape, node.outputs[0].shape, node.attrs["ksize"]
    rows, columns = (dimension(window(node, axis, before[axis], after[axis], ksize[axis])) for axis in (1, 2))
    return f"library.max_pool({x}, {rows}, {columns})"


TRANSLATIONS: Mapping[str, Callable[..., str]] = {
    "AddV2": lambda node, x, y: f"{x} + {y}",
    "BiasAdd": lambda node, x, bias: f"{x} + {bias}",
    "Conv2D": conv2d,
    "Identity": lambda node, x: x,
    "MatMul": matmul,
    "MaxPool": max_pool,
    "Mul": lambda node, x, y: f"{x} * {y}",
    "Relu": lambda node, x: f"np.maximum({x}, 0)",
    "Reshape": lambda node, x, shape: f"{x}.reshape({tuple(node.outputs[0].shape)})",
    "Softmax": lambda node, x: f"library.softmax({x})",
    "Sub": lambda node, x, y: f"{x} - {y}",
}


def other_layout(node: sdk.KernelNode) -> str | None:
    data_format = node.attrs["data_format"]
    return None if data_format == "NHWC" else f"data_format is {data_format}; NHWC is required"


def other_convolution(node: sdk.KernelNode) -> sdk.Support:
    if any(d != 1 for d in node.attrs["dilations"]):
        return f"dilations are {node.attrs['dilations']}; 1 is required"
    if len(node.inputs[0].shape) != 4 or len(node.inputs[1].shape) != 4:
        return other_layout(node) or sdk.DEPENDS  # the rank is not known yet
    given, taken = node.inputs[0].shape[3], node.inputs[1].shape[2]
    if given != taken and -1 not in (given, taken):
        return f"filters take {taken} of {given} channels; groups are not supported"
    return other_layout(node) or (sdk.DEPENDS if -1 in (given, taken) else None)


def other_windows(node: sdk.KernelNode) -> str | None:
    ksize = node.attrs["ksize"]
    return other_layout(node) or (None if ksize[0] == ksize[3] == 1 else f"ksize is {ksize}; 1, n, m, 1 is required")


DECLINES: Mapping[str, Callable[[sdk.KernelNode], sdk.Support]] = {
    "BiasAdd": other_layout,
    "Conv2D": other_convolution,
    "MaxPool": other_windows,
}


def supports(node: sdk.KernelNode, dtypes: tuple[str, ...]) -> sdk.Support:
    """None if the node has a translation, else why not."""
    if node.op not in TRANSLATIONS:
        return "the op has no translation"
    found = next((v.dtype.name for v in node.outputs if v.dtype.name not in dtypes), None)
    if found is not None:
        return f"{found} is not one of {', '.join(dtypes)}"
    return DECLINES[node.op](node) if node.op in DECLINES else None

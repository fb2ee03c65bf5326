"""The kernels of NPU: its own, which are of higher priority, and all others by references in its queue."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import timberframe_sdk as sdk
from timberframe_core.ops.definition import registry
from timberframe_sdk import reference
from timberframe_sdk.plans.convolution import Convolution

KERNELS: list[sdk.KernelDef] = []
Builder = Callable[[sdk.KernelNode], Any]
LANES = 16
"""Channels that the device computes at once; others are padded with zeros."""
NARROW = ("float16", "bfloat16")


def queued(build: Builder) -> Builder:
    """Returns a builder whose launcher runs in the device's queue, on elements of its memory."""

    @functools.wraps(build)
    def build_queued(node: sdk.KernelNode) -> sdk.Launcher:
        queue, function = node.device.queue, build(node)  # type: ignore[attr-defined]  # our device's
        run = queue.call if any(v.dynamic for v in node.outputs) else queue.launch
        return lambda *tensors: run(function, *tensors)

    return build_queued


def reference_kernels(device: str) -> list[sdk.KernelDef]:
    """Kernels by reference of all ops that have one, as the device's own."""
    ops = [op.name for op in registry.all_ops() if reference.has_reference(op.name) and not op.role]
    made = reference.reference_kernels(device, ops)
    return [dataclasses.replace(k, build=queued(k.build), fallback=False, priority=-1) for k in made]


def packed(node: sdk.KernelNode, input: int, key: str, pack: Callable[..., None], shape: tuple[int, ...]) -> bool:
    """Makes the launcher get a packed form of an input: pack(array, out) runs in the device's queue."""
    device: Any = node.device

    def make(a: Any) -> Any:
        out = device.empty(a.dtype, shape)
        device.queue.launch(pack, a, out)
        return out

    return node.prepared(input, key, make, shape)


# Products


def transpose(w: np.ndarray, out: np.ndarray) -> None:
    out[...] = w.T


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b, added up in a wider dtype: NumPy adds float32 in an order that depends on where the arrays lie."""
    wide = np.float32 if a.dtype.name in NARROW else np.float64
    product: np.ndarray = (a.astype(wide) @ b.astype(wide)).astype(np.float32)
    return product


def multiply_in_parts(a: np.ndarray, b: np.ndarray, out: np.ndarray, cores: int) -> None:
    """a @ b, in parts of rows, one for each core."""
    for rows in np.array_split(np.arange(len(a)), cores):
        out[rows] = multiply(a[rows], b)


@sdk.kernel(KERNELS, "MatMul", "NPU", types={"T": ("float32", *NARROW)})
@queued
def matmul(node: sdk.KernelNode) -> Callable[..., Any]:
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    cores = node.device.cores  # type: ignore[attr-defined]  # our device's
    if len(node.inputs[1].shape) == 2 and packed(node, 1, "transposed", transpose, node.inputs[1].shape[::-1]):
        transpose_b = not transpose_b

    def compute(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        multiply_in_parts(a.T if transpose_a else a, b.T if transpose_b else b, out, cores)

    return compute


# Convolutions


def padded_channels(channels: int) -> int:
    """Returns the next multiple of LANES."""
    return -(-channels // LANES) * LANES


def pack_filters(w: np.ndarray, out: np.ndarray) -> None:
    """Filters for padded channels."""
    out[...] = 0
    out[:, :, : w.shape[2]] = w


def clear(lanes: np.ndarray) -> None:
    """Writes zeros to padding and to the lanes after the last channel."""
    lanes[...] = 0


def plain(node: sdk.KernelNode) -> sdk.Support:
    """Declines convolutions that the device computes by references."""
    if node.attrs["data_format"] != "NHWC" or any(d != 1 for d in node.attrs["dilations"]):
        return "NHWC without dilations is required"
    given, taken = node.inputs[0].shape[3:], node.inputs[1].shape[2:3]
    if -1 in given + taken:
        return sdk.DEPENDS
    return None if given == taken else "groups are not supported"


class Lanes:
    """A convolution as the device computes it: over an input with padding and padded channels, in its workspace."""

    def __init__(self, node: sdk.KernelNode, convolution: Convolution) -> None:
        self.rows, self.columns = convolution.windows
        self.channels = convolution.x.shape[3]
        self.dtype = convolution.x.dtype
        self.shape = (convolution.x.shape[0], self.rows.span, self.columns.span, padded_channels(self.channels))
        node.workspace(max(1, int(np.prod(self.shape)) * self.dtype.itemsize))

    def compute(self, x: np.ndarray, filters: np.ndarray, workspace: np.ndarray) -> np.ndarray:
        """Returns the convolution's result; filters: packed."""
        lanes = workspace.reshape(-1).view(np.uint8)[: int(np.prod(self.shape)) * self.dtype.itemsize]
        lanes = lanes.view(self.dtype).reshape(self.shape)
        clear(lanes)
        rows, columns = self.rows, self.columns
        height, width = (min(w.size, w.span - w.before) for w in (rows, columns))
        lanes[:, rows.before :, columns.before :, : self.channels][:, :height, :width] = x[:, :height, :width]
        windows = sliding_window_view(lanes, (rows.kernel, columns.kernel), axis=(1, 2))
        taken = windows[:, :: rows.stride, :: columns.stride]
        found: np.ndarray = np.tensordot(taken, filters, axes=((4, 5, 3), (0, 1, 2)))
        return found


def lane_filters(node: sdk.KernelNode) -> Callable[[np.ndarray], np.ndarray]:
    """Gives filters for padded channels: the prepared ones, where input 1 can be prepared, else packed in each run."""
    *taps, channels, filters = node.inputs[1].shape
    shape = (*taps, padded_channels(channels), filters)
    if packed(node, 1, "lanes", pack_filters, shape):
        return lambda w: w

    def pack(w: np.ndarray) -> np.ndarray:
        out = np.empty(shape, w.dtype)
        pack_filters(w, out)
        return out

    return pack


@sdk.kernel(KERNELS, "Conv2D", "NPU", types={"T": ("float32",)}, suits=plain)
@queued
def conv2d(node: sdk.KernelNode) -> Callable[..., Any]:
    lanes, filters = Lanes(node, Convolution.forward(node)), lane_filters(node)

    def compute(x: np.ndarray, w: np.ndarray, out: np.ndarray, workspace: np.ndarray) -> None:
        if out.size:
            out[...] = lanes.compute(x, filters(w), workspace)

    return compute


def epilogue(y: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Returns the ops after a convolution in the kernel for several nodes."""
    found: np.ndarray = np.minimum(np.maximum(y + bias, 0), 6)
    return found


CONVOLUTION = (
    sdk.Part("convolution", "Conv2D", ("x", "filters")),
    sdk.Part("sum", "BiasAdd", ("convolution", "bias")),
    sdk.Part("out", "Relu6", ("sum",)),
)


def covers(node: sdk.KernelNode) -> str | None:
    """Declines chains whose convolution the device computes by references."""
    product, bias_add, _ = node.inner[0].nodes
    declined = plain(product)
    return "NHWC is required" if bias_add.attrs["data_format"] != "NHWC" else declined and str(declined)


@sdk.kernel(KERNELS, "Npu>Convolution", "NPU", types={"T": ("float32",)}, covers=CONVOLUTION, suits=covers)
@queued
def convolution(node: sdk.KernelNode) -> Callable[..., Any]:
    lanes, filters = Lanes(node, Convolution.forward(node.inner[0].nodes[0])), lane_filters(node)

    def compute(x: np.ndarray, w: np.ndarray, bias: np.ndarray, out: np.ndarray, workspace: np.ndarray) -> None:
        if out.size:
            out[...] = epilogue(lanes.compute(x, filters(w), workspace), bias)

    return compute

"""Batch normalisation, local response normalisation and cross entropies."""

from __future__ import annotations

import math

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native

_BLOCKS = 64  # partial sums of a channel: MAXIMUM_BLOCKS of csrc/norm/sums.h


def _sums_bytes(channels: int) -> int:
    """Of the workspace: sums of two values for each block, then one float64 and three float32 for each channel."""
    return (2 * _BLOCKS + 1) * channels * 8 + 3 * channels * 4


def _batch_norm(node: KernelNode) -> Native:
    """Parameters: struct norm_shape of csrc/norm/batch_norm.c."""
    shape, attrs = node.inputs[0].shape, node.attrs
    axis = len(shape) - 1 if attrs["data_format"] in ("NHWC", "NDHWC") else 1
    channels = shape[axis]
    node.workspace((2 * _BLOCKS + 1) * channels * 8 + 3 * channels * 4)
    return native(
        f"batch_norm_{attrs['T'].name}",
        math.prod(shape[:axis]), channels, math.prod(shape[axis + 1 :]), attrs["is_training"],
        float(attrs["epsilon"]), float(attrs["exponential_avg_factor"]), len(node.outputs),
    )  # fmt: skip


def _batch_norm_grad(node: KernelNode) -> Native:
    """Parameters: struct grad_shape of csrc/norm/batch_norm_grad.c."""
    shape, attrs = node.inputs[1].shape, node.attrs
    axis = len(shape) - 1 if attrs["data_format"] in ("NHWC", "NDHWC") else 1
    channels = shape[axis]
    node.workspace(_sums_bytes(channels))
    return native(
        f"batch_norm_grad_{attrs['T'].name}",
        math.prod(shape[:axis]), channels, math.prod(shape[axis + 1 :]), attrs["is_training"], float(attrs["epsilon"]),
    )  # fmt: skip


def _lrn(node: KernelNode) -> Native:
    return native(f"lrn_{node.attrs['T'].name}", *_lrn_parameters(node))


def _lrn_grad(node: KernelNode) -> Native:
    node.workspace(2 * node.inputs[0].size * 4)
    return native(f"lrn_grad_{node.attrs['T'].name}", *_lrn_parameters(node))


def _lrn_parameters(node: KernelNode) -> tuple[int, float, float, float]:
    a = node.attrs
    return a["depth_radius"], float(a["bias"]), float(a["alpha"]), float(a["beta"])


def _cross_entropy(node: KernelNode) -> Native:
    """Parameters: strides by row and class of features and labels, 0 where a dimension is broadcast."""
    strides: list[int] = []
    for value in node.inputs:
        rows, classes = value.shape
        strides += [classes if rows > 1 else 0, 1 if classes > 1 else 0]
    return native(f"cross_entropy_{node.attrs['T'].name}", *strides)


def _sparse_cross_entropy(node: KernelNode) -> Native:
    from timberframe_ops.nn.cross_entropy import LABEL_OUTSIDE

    return native(f"sparse_cross_entropy_{node.attrs['T'].name}", reasons=(LABEL_OUTSIDE,))


_REALS = ("float16", "bfloat16", "float32", "float64")
_NORM_TYPES = {"T": _REALS[:3], "U": ("float32",)}

KERNELS = [
    KernelDef("FusedBatchNorm", "CPU", _batch_norm, {"T": ("float32",)}),
    KernelDef("FusedBatchNormV2", "CPU", _batch_norm, _NORM_TYPES),
    KernelDef("FusedBatchNormV3", "CPU", _batch_norm, _NORM_TYPES),
    KernelDef("FusedBatchNormGrad", "CPU", _batch_norm_grad, {"T": ("float32",)}),
    KernelDef("FusedBatchNormGradV2", "CPU", _batch_norm_grad, _NORM_TYPES),
    KernelDef("FusedBatchNormGradV3", "CPU", _batch_norm_grad, _NORM_TYPES),
    KernelDef("LRN", "CPU", _lrn, {"T": _REALS[:3]}),
    KernelDef("LRNGrad", "CPU", _lrn_grad, {"T": _REALS[:3]}),
    KernelDef("SoftmaxCrossEntropyWithLogits", "CPU", _cross_entropy, {"T": _REALS}),
    KernelDef("SparseSoftmaxCrossEntropyWithLogits", "CPU", _sparse_cross_entropy, {"T": _REALS}),
]

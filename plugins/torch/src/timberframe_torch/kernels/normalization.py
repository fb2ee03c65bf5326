"""Normalisation, softmax, and losses made of it."""

from __future__ import annotations

import math
from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_ops.nn.cross_entropy import LABEL_OUTSIDE
from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.kernels.geometry import as_before, channels_first
from timberframe_torch.kernels.indexing import refusing
from timberframe_torch.launches import FLOATS, Function, torch_kernel

KERNELS: list[KernelDef] = []
_NO_LABEL = -(1 << 40)
"""A label that cross_entropy is to leave out: none that a network has."""
_BATCH_NORM = {"T": ("float16", "bfloat16", "float32"), "U": ("float32",)}


@torch_kernel(KERNELS, ("FusedBatchNormV2", "FusedBatchNormV3"), _BATCH_NORM)
def batch_norm(node: KernelNode) -> Function:
    """Each channel normalised, by the batch's own moments in training."""
    attrs, first = node.attrs, node.attrs["data_format"].startswith("NC")
    epsilon, training, blend = attrs["epsilon"], attrs["is_training"], attrs["exponential_avg_factor"]
    shape, channels = node.inputs[0].shape, node.inputs[1].shape[0]
    count = math.prod(shape) // max(channels, 1)

    def run(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> list[Any]:
        if not x.numel():
            nan, zero = torch.full_like(scale, math.nan), torch.zeros_like(scale)
            return [x, nan, nan, zero, zero, scale.new_empty(0)][: len(node.outputs)]
        images = channels_first(x, first)
        if not training:
            y = torch.nn.functional.batch_norm(images, mean, variance, scale, offset, False, 0.0, epsilon)
            return _outputs(node, as_before(y, first), mean, variance, mean, variance)
        y = torch.native_batch_norm(images, scale, offset, None, None, True, 0.0, epsilon)[0]
        axes = [0, *range(2, x.dim())]
        spread, center = torch.var_mean(images.to(scale.dtype), axes, correction=0)
        unbiased = spread * (count / max(count - 1, 1))
        blended = center, unbiased
        if blend != 1.0:
            blended = (1 - blend) * mean + blend * center, (1 - blend) * variance + blend * unbiased
        return _outputs(node, as_before(y, first), *blended, center, spread)

    return run


def _outputs(node: KernelNode, *made: Any) -> list[Any]:
    """Returns the outputs of a normalisation, the reserve space that holds nothing included."""
    return [*made, made[1].new_empty(0)][: len(node.outputs)]


@torch_kernel(KERNELS, ("FusedBatchNormGradV2", "FusedBatchNormGradV3"), _BATCH_NORM)
def batch_norm_grad(node: KernelNode) -> Function:
    """The gradients of a normalisation by its input, scale and offset."""
    attrs, first = node.attrs, node.attrs["data_format"].startswith("NC")

    def run(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> list[Any]:
        if not x.numel():
            return [x, torch.zeros_like(scale), torch.zeros_like(scale), scale.new_empty(0), scale.new_empty(0)]
        inverse = torch.rsqrt(variance + attrs["epsilon"])
        made = torch.ops.aten.native_batch_norm_backward(
            channels_first(dy, first), channels_first(x, first), scale, mean, variance, mean, inverse,
            attrs["is_training"], attrs["epsilon"], [True, True, True],
        )  # fmt: skip
        return [as_before(made[0], first), made[1], made[2], scale.new_empty(0), scale.new_empty(0)]

    return run


@torch_kernel(KERNELS, "Softmax", {"T": FLOATS})
def softmax(node: KernelNode) -> Function:
    """exp(x) over its sum, along the last axis."""
    return lambda x: torch.softmax(x, -1)


@torch_kernel(KERNELS, "LogSoftmax", {"T": FLOATS})
def log_softmax(node: KernelNode) -> Function:
    """The logarithm of softmax."""
    return lambda x: torch.log_softmax(x, -1)


@torch_kernel(KERNELS, "LRN", {"T": FLOATS})
def local_response(node: KernelNode) -> Function:
    """Each value over a power of the sum of squares around its channel."""
    attrs = node.attrs
    width = 2 * attrs["depth_radius"] + 1

    def run(x: Any) -> Any:
        y = torch.nn.functional.local_response_norm(
            channels_first(x, False), width, attrs["alpha"] * width, attrs["beta"], attrs["bias"]
        )
        return as_before(y, False)

    return run


@torch_kernel(KERNELS, "SparseSoftmaxCrossEntropyWithLogits", {"T": FLOATS, "Tlabels": ("int32", "int64")})
def sparse_cross_entropy(node: KernelNode) -> Function:
    """The loss of each row, and its gradient by the logits."""
    classes = node.inputs[0].shape[1]

    def run(logits: Any, labels: Any) -> list[Any]:
        targets = labels.to(torch.int64)
        loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=_NO_LABEL, reduction="none")
        wanted = torch.nn.functional.one_hot(targets, classes).to(logits.dtype)
        return [loss, torch.softmax(logits, -1) - wanted]

    return refusing(node, run, 1, classes, LABEL_OUTSIDE, InvalidArgumentError)

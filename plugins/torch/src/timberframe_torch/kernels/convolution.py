"""Convolutions over images, and their gradients."""

from __future__ import annotations

from typing import Any

from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.plans.convolution import Convolution
from timberframe_torch import lazy as torch
from timberframe_torch.kernels.geometry import as_before, channels_first, frame_of, is_empty, trimmed
from timberframe_torch.launches import FLOATS, Function, torch_kernel

KERNELS: list[KernelDef] = []


class _Plan:
    """A convolution in torch's terms: padding, strides, dilations, groups, and the order of its filter."""

    def __init__(self, c: Convolution) -> None:
        windows = c.windows
        self.frame = frame_of(windows)
        self.stride = [w.stride for w in windows]
        self.dilation = [w.dilation for w in windows]
        self.out = [w.out_size for w in windows]
        self.groups, self.first, self.depthwise = c.groups[0], c.channels_first, c.depthwise
        self.filter = c.filter.shape
        self.is_empty = is_empty(c.x.shape, c.filter.shape, c.y.shape)
        self.padding = list(self.frame.before) if self.frame.is_even else [0] * len(windows)

    def images(self, x: Any) -> Any:
        """Returns the input as torch wants it, padded where the two sides differ."""
        x = channels_first(x, self.first)
        return x if self.frame.is_even else self.frame.pad(x)

    def weights(self, w: Any) -> Any:
        """Returns the filter as (outputs, inputs of a group, ...): a view, of a depthwise one a copy."""
        if self.depthwise:
            return w.permute(2, 3, 0, 1).reshape(-1, 1, *w.shape[:2])
        return w.permute(w.dim() - 1, w.dim() - 2, *range(w.dim() - 2))

    def filter_back(self, w: Any) -> Any:
        """Returns weights in the order of the node's filter."""
        if self.depthwise:
            return w.reshape(*self.filter[2:], *self.filter[:2]).permute(2, 3, 0, 1)
        return w.permute(*range(2, w.dim()), 1, 0)


def _forward(node: KernelNode, depthwise: bool) -> Function:
    plan = _Plan(Convolution.forward(node, depthwise))
    shape = node.outputs[0].shape

    def run(x: Any, w: Any) -> Any:
        if plan.is_empty:
            return torch.zeros(shape, dtype=x.dtype, device=x.device)
        y = torch.nn.functional.conv2d(
            plan.images(x), plan.weights(w), None, plan.stride, plan.padding, plan.dilation, plan.groups
        )
        return as_before(trimmed(y, plan.out), plan.first)

    return run


def _by_input(node: KernelNode, depthwise: bool) -> Function:
    plan = _Plan(Convolution.by_input(node, depthwise))
    shape = node.outputs[0].shape

    def run(w: Any, gradient: Any) -> Any:
        if plan.is_empty:
            return torch.zeros(shape, dtype=w.dtype, device=w.device)
        full = torch.nn.functional.conv_transpose2d(
            channels_first(gradient, plan.first), plan.weights(w), None, plan.stride, 0, 0, plan.groups, plan.dilation
        )
        return as_before(plan.frame.cut(full), plan.first)

    return run


def _by_filter(node: KernelNode, depthwise: bool) -> Function:
    plan = _Plan(Convolution.by_filter(node, depthwise))
    shape = node.outputs[0].shape

    def run(x: Any, gradient: Any) -> Any:
        if plan.is_empty:
            return torch.zeros(shape, dtype=x.dtype, device=x.device)
        weights = plan.weights(x.new_empty(shape))
        made = torch.ops.aten.convolution_backward(
            channels_first(gradient, plan.first), plan.images(x), weights, None, plan.stride, plan.padding,
            plan.dilation, False, [0, 0], plan.groups, [False, True, False],
        )  # fmt: skip
        return plan.filter_back(made[1])

    return run


@torch_kernel(KERNELS, "Conv2D", {"T": FLOATS})
def conv_2d(node: KernelNode) -> Function:
    """A convolution, in groups where the filter has fewer channels."""
    return _forward(node, depthwise=False)


@torch_kernel(KERNELS, "DepthwiseConv2dNative", {"T": FLOATS})
def depthwise_conv_2d(node: KernelNode) -> Function:
    """A convolution of each channel by itself."""
    return _forward(node, depthwise=True)


@torch_kernel(KERNELS, "Conv2DBackpropInput", {"T": FLOATS})
def conv_2d_by_input(node: KernelNode) -> Function:
    """The gradient by the input: a transposed convolution."""
    return _by_input(node, depthwise=False)


@torch_kernel(KERNELS, "DepthwiseConv2dNativeBackpropInput", {"T": FLOATS})
def depthwise_conv_2d_by_input(node: KernelNode) -> Function:
    """The gradient of a depthwise convolution by its input."""
    return _by_input(node, depthwise=True)


@torch_kernel(KERNELS, "Conv2DBackpropFilter", {"T": FLOATS})
def conv_2d_by_filter(node: KernelNode) -> Function:
    """The gradient by the filter."""
    return _by_filter(node, depthwise=False)


@torch_kernel(KERNELS, "DepthwiseConv2dNativeBackpropFilter", {"T": FLOATS})
def depthwise_conv_2d_by_filter(node: KernelNode) -> Function:
    """The gradient of a depthwise convolution by its filter."""
    return _by_filter(node, depthwise=True)

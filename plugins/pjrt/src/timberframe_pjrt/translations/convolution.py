"""Convolutions over images, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from timberframe_pjrt.translations.table import FLOATS, translation
from timberframe_sdk import KernelNode
from timberframe_sdk.plans.convolution import Convolution

_T = {"T": FLOATS}


class _Plan:
    """A convolution in terms of XLA. spans: sizes of the image with all that windows cover; pads: before and after."""

    def __init__(self, c: Convolution) -> None:
        self.windows = c.windows
        self.strides = [w.stride for w in c.windows]
        self.dilations = [w.dilation for w in c.windows]
        self.pads = [(w.before, w.span - w.size - w.before) for w in c.windows]
        self.layout = "NCHW" if c.channels_first else "NHWC"
        self.groups, self.inside, self.outside = c.groups
        self.depthwise, self.filter = c.depthwise, c.filter.shape
        self.is_empty = any(not math.prod(v.shape) for v in (c.x, c.filter, c.y))

    def weights(self, w: Any) -> Any:
        """Returns the filter with the inputs of a group and all outputs as its last axes."""
        return jnp.reshape(w, (*w.shape[:2], 1, -1)) if self.depthwise else jnp.asarray(w)


def _forward(node: KernelNode, plan: _Plan, x: Any, w: Any) -> Any:
    if plan.is_empty:
        return jnp.zeros(node.outputs[0].shape, x.dtype)
    return lax.conv_general_dilated(
        jnp.asarray(x), plan.weights(w), plan.strides, plan.pads, rhs_dilation=plan.dilations,
        dimension_numbers=(plan.layout, "HWIO", plan.layout), feature_group_count=plan.groups,
    )  # fmt: skip


def _by_input(node: KernelNode, plan: _Plan, w: Any, gradient: Any) -> Any:
    """Returns the gradient dilated by the strides, convolved with the filter turned around."""
    if plan.is_empty:
        return jnp.zeros(node.outputs[0].shape, gradient.dtype)
    taps = [(n.kernel - 1) * n.dilation for n in plan.windows]
    pads = []
    for n, reach in zip(plan.windows, taps, strict=True):
        before = reach - n.before
        pads.append((before, n.size + reach - before - ((n.out_size - 1) * n.stride + 1)))
    weights = lax.rev(plan.weights(w), (0, 1))
    height, width, inside, outside = weights.shape
    grouped = weights.reshape(height, width, inside, plan.groups, outside // plan.groups)
    turned = jnp.transpose(grouped, (0, 1, 4, 3, 2)).reshape(height, width, outside // plan.groups, -1)
    return lax.conv_general_dilated(
        jnp.asarray(gradient), turned, (1, 1), pads, lhs_dilation=plan.strides, rhs_dilation=plan.dilations,
        dimension_numbers=(plan.layout, "HWIO", plan.layout), feature_group_count=plan.groups,
    )  # fmt: skip


def _by_filter(node: KernelNode, plan: _Plan, x: Any, gradient: Any) -> Any:
    """Returns the input convolved with the gradient, images in the place of channels."""
    if plan.is_empty:
        return jnp.zeros(plan.filter, x.dtype)
    swapped, taps = ("CNHW", "IOHW") if plan.layout == "NCHW" else ("CHWN", "IHWO")
    made = lax.conv_general_dilated(
        jnp.asarray(x), jnp.asarray(gradient), plan.dilations, plan.pads, rhs_dilation=plan.strides,
        dimension_numbers=(swapped, taps, "HWNC"), batch_group_count=plan.groups,
    )  # fmt: skip
    return jnp.reshape(made, plan.filter)


@translation("Conv2D", _T)
def conv_2d(node: KernelNode, x: Any, w: Any) -> Any:
    """Returns a convolution, in groups where the filter has fewer channels."""
    return _forward(node, _Plan(Convolution.forward(node)), x, w)


@translation("DepthwiseConv2dNative", _T)
def depthwise_conv_2d(node: KernelNode, x: Any, w: Any) -> Any:
    """Returns a convolution of each channel by itself."""
    return _forward(node, _Plan(Convolution.forward(node, depthwise=True)), x, w)


@translation("Conv2DBackpropInput", _T)
def conv_2d_by_input(node: KernelNode, sizes: Any, w: Any, gradient: Any) -> Any:
    """Returns the gradient by the input: a transposed convolution."""
    return _by_input(node, _Plan(Convolution.by_input(node)), w, gradient)


@translation("DepthwiseConv2dNativeBackpropInput", _T)
def depthwise_conv_2d_by_input(node: KernelNode, sizes: Any, w: Any, gradient: Any) -> Any:
    """Returns the gradient of a depthwise convolution by its input."""
    return _by_input(node, _Plan(Convolution.by_input(node, depthwise=True)), w, gradient)


@translation("Conv2DBackpropFilter", _T)
def conv_2d_by_filter(node: KernelNode, x: Any, sizes: Any, gradient: Any) -> Any:
    """Returns the gradient by the filter."""
    return _by_filter(node, _Plan(Convolution.by_filter(node)), x, gradient)


@translation("DepthwiseConv2dNativeBackpropFilter", _T)
def depthwise_conv_2d_by_filter(node: KernelNode, x: Any, sizes: Any, gradient: Any) -> Any:
    """Returns the gradient of a depthwise convolution by its filter."""
    return _by_filter(node, _Plan(Convolution.by_filter(node, depthwise=True)), x, gradient)

"""The geometry of convolutions over images and volumes, and of their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from timberframe_core.plugin.contracts import KernelNode, Value

Self = TypeVar("Self", bound="Convolution")


@dataclass(frozen=True)
class Window:
    """One spatial dimension: its size, the output's, and how the window moves."""

    size: int
    out_size: int
    kernel: int
    stride: int
    dilation: int
    before: int  # padding in front

    @property
    def span(self) -> int:
        """Positions of a padded input from the first window's first to the last one's last tap."""
        return (self.out_size - 1) * self.stride + (self.kernel - 1) * self.dilation + 1


def window(node: KernelNode, axis: int, size: int, out_size: int, kernel: int) -> Window:
    """Returns the window of a node's dimension `axis`; strides, dilations (rates) and padding are the node's attrs."""
    attrs = node.attrs
    stride, dilation = attrs["strides"][axis], attrs.get("dilations", attrs.get("rates", (1,) * 5))[axis]
    before = 0
    if attrs["padding"] == "SAME":
        before = max((out_size - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2
    elif attrs["padding"] == "EXPLICIT":
        before = attrs["explicit_paddings"][2 * axis]
    return Window(size, out_size, kernel, stride, dilation, before)


def channels_first(node: KernelNode) -> bool:
    """Returns whether channels come before the spatial dimensions."""
    return node.attrs.get("data_format") in ("NCHW", "NCDHW")


def dilation_windows(node: KernelNode, out: tuple[int, ...]) -> list[Window]:
    """Returns the windows of a grayscale dilation, or of a gradient of one, whose result has the shape `out`."""
    x, filter = node.inputs[0].shape, node.inputs[1].shape
    return [window(node, axis, x[axis], out[axis], filter[axis - 1]) for axis in (1, 2)]


@dataclass(frozen=True)
class Convolution:
    """A convolution of x by filter into y, whichever of them the node computes.

    The filter is [taps of each spatial dimension, input channels / groups, output channels], of a depthwise one
    [height, width, channels, multiplier].
    """

    node: KernelNode
    x: Value
    filter: Value
    y: Value
    depthwise: bool = False

    @classmethod
    def forward(cls: type[Self], node: KernelNode, depthwise: bool = False) -> Self:
        """Returns the convolution that a node of two inputs computes."""
        return cls(node, node.inputs[0], node.inputs[1], node.outputs[0], depthwise)

    @classmethod
    def by_input(cls: type[Self], node: KernelNode, depthwise: bool = False) -> Self:
        """Returns the convolution of whose input a node computes the gradient."""
        return cls(node, node.outputs[0], node.inputs[1], node.inputs[2], depthwise)

    @classmethod
    def by_filter(cls: type[Self], node: KernelNode, depthwise: bool = False) -> Self:
        """Returns the convolution of whose filter a node computes the gradient."""
        return cls(node, node.inputs[0], node.outputs[0], node.inputs[2], depthwise)

    @property
    def channels_first(self) -> bool:
        return channels_first(self.node)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Groups, and input and output channels of each; the channels of a depthwise convolution are its groups."""
        depth, outside = self.filter.shape[-2:]
        if self.depthwise:
            return depth, 1, outside
        groups = self.x.shape[1 if self.channels_first else -1] // depth
        return groups, depth, outside // max(groups, 1)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window of each spatial dimension, in the order of the filter's."""
        first = 2 if self.channels_first else 1
        return tuple(
            window(self.node, first + i, self.x.shape[first + i], self.y.shape[first + i], taps)
            for i, taps in enumerate(self.filter.shape[:-2])
        )

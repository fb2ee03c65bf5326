"""Separable convolutions: each channel by itself, then a mix of the channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import expand_dims, squeeze
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import separable_conv2d as nn_separable_conv2d
from timberframe.layers.convolutional import Convolution
from timberframe.layers.functions import layer_function
from timberframe_core.graph.operation import Tensor


class SeparableConvolution(Convolution):
    """Base of separable convolutions.

    depth_multiplier: how many filters each input channel has, before a 1 x 1 convolution mixes them into `filters`.
    The kernels are depthwise_kernel [*kernel_size, channels, depth_multiplier] and pointwise_kernel
    [..., channels * depth_multiplier, filters]. The other arguments are those of a convolution.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Callable[[Any], Any] | None = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = zeros_initializer,
        depthwise_regularizer: Callable[[Any], Any] | None = None,
        pointwise_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        depthwise_constraint: Callable[[Any], Any] | None = None,
        pointwise_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, None,
            bias_initializer, None, bias_regularizer, activity_regularizer, None, bias_constraint, trainable, name,
            **kwargs,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer
        self.depthwise_regularizer, self.pointwise_regularizer = depthwise_regularizer, pointwise_regularizer
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint

    def build(self, input_shape: Any) -> None:
        channels, ones = self.input_channels(input_shape), [1] * self.rank
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier], None, self.depthwise_initializer,
            self.depthwise_regularizer, constraint=self.depthwise_constraint,
        )  # fmt: skip
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", [*ones, channels * self.depth_multiplier, self.filters], None,
            self.pointwise_initializer, self.pointwise_regularizer, constraint=self.pointwise_constraint,
        )  # fmt: skip
        self.build_bias(self.filters)
        self.built = True

    def convolve(self, inputs: Tensor) -> Tensor:
        kernels = [self.depthwise_kernel, self.pointwise_kernel]
        if self.rank == 2:
            return self._convolve(inputs, kernels, self.strides, self.dilation_rate)
        axis = 2 if self.channels_first else 1
        flat = [expand_dims(k, 0) for k in kernels]
        step, spread = self.strides * 2, self.dilation_rate * 2  # height is 1: any stride does, both must be equal
        return squeeze(self._convolve(expand_dims(inputs, axis), flat, step, spread), [axis])

    def _convolve(self, images: Any, kernels: list[Any], strides: tuple[int, ...], rate: tuple[int, ...]) -> Tensor:
        layout = "NCHW" if self.channels_first else "NHWC"
        steps = (1, 1, *strides) if self.channels_first else (1, *strides, 1)
        return nn_separable_conv2d(images, kernels[0], kernels[1], steps, self.padding, rate, data_format=layout)


class SeparableConv1D(SeparableConvolution):
    """Separable convolution along one axis; the arguments are those of `SeparableConv2D`."""

    rank = 1


class SeparableConv2D(SeparableConvolution):
    """Separable convolution of images: each channel with `depth_multiplier` filters, then a mix into `filters`.

    The variables are depthwise_kernel, pointwise_kernel and bias. The other arguments are those of `Conv2D`.
    """

    rank = 2


separable_conv1d = layer_function(SeparableConv1D, "separable_conv1d")
separable_conv2d = layer_function(SeparableConv2D, "separable_conv2d")

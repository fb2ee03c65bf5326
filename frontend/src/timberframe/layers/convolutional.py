"""Convolutions of one to three spatial axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import conv2d as nn_conv2d
from timberframe.api.nn_backward import conv1d as nn_conv1d
from timberframe.api.nn_windows import conv3d as nn_conv3d
from timberframe.layers.base import InputSpec, known_size
from timberframe.layers.functions import layer_function
from timberframe.layers.geometry import LAYOUTS, channels_first, padding_of, sizes_of, window_length
from timberframe.layers.kernel_layer import KernelLayer
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class Convolution(KernelLayer):
    """Base of convolutions: activation(conv(inputs, kernel) + bias), kernel [*kernel_size, input channels, filters].

    kernel_size, strides, dilation_rate: an integer, or one for each spatial axis. data_format: "channels_last" or
    "channels_first". The other arguments are those of `Dense`.
    """

    rank: int
    """Number of spatial axes."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Callable[[Any], Any] | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer,
        kernel_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        kernel_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip
        self.filters = filters
        self.kernel_size = sizes_of(kernel_size, self.rank, "kernel_size")
        self.strides = sizes_of(strides, self.rank, "strides")
        self.dilation_rate = sizes_of(dilation_rate, self.rank, "dilation_rate")
        self.padding = padding_of(padding)
        self.channels_first = channels_first(data_format)
        self.data_format = data_format
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def layout(self) -> str:
        """The order of axes as ops name it, such as NHWC."""
        return LAYOUTS[self.rank][self.channels_first]

    def input_channels(self, input_shape: Any) -> int:
        """Returns the number of channels, which every later input must have, too."""
        axis = 1 if self.channels_first else -1
        channels = known_size(self.name, input_shape, axis)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def kernel_shape(self, channels: int) -> list[int]:
        """Returns the shape of the kernel for inputs of so many channels."""
        return [*self.kernel_size, channels, self.filters]

    def build(self, input_shape: Any) -> None:
        self.build_kernel(self.kernel_shape(self.input_channels(input_shape)))
        self.build_bias(self.filters)
        self.built = True

    def call(self, inputs: Tensor) -> Any:
        return self.finish(self.convolve(inputs), "NCHW" if self.channels_first else "NHWC")

    def convolve(self, inputs: Tensor) -> Tensor:
        """Returns the convolution without bias and activation."""
        if self.rank == 1:
            return nn_conv1d(
                inputs, self.kernel, self.strides[0], self.padding, data_format=self.layout,
                dilations=self.dilation_rate[0],
            )  # fmt: skip
        convolution = nn_conv2d if self.rank == 2 else nn_conv3d
        return convolution(
            inputs, self.kernel, self.strides, self.padding, data_format=self.layout, dilations=self.dilation_rate
        )

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        spatial = sizes[2:] if self.channels_first else sizes[1:-1]
        out = [
            window_length(n, w, self.padding, s, d)
            for n, w, s, d in zip(spatial, self.kernel_size, self.strides, self.dilation_rate, strict=True)
        ]
        return TensorShape([sizes[0], self.filters, *out] if self.channels_first else [sizes[0], *out, self.filters])


class Conv1D(Convolution):
    """Convolution along one axis: inputs [batch, length, channels], or with channels_first [batch, channels, length].

    kernel: [kernel_size, channels, filters]. The arguments are those of `Conv2D`.
    """

    rank = 1


class Conv2D(Convolution):
    """Convolution of images: inputs [batch, height, width, channels], or [batch, channels, height, width].

    filters: number of output channels. kernel_size, strides, dilation_rate: an integer, or one for each of height and
    width. padding: "valid" or "same". data_format: "channels_last" or "channels_first". The others are as in `Dense`.
    """

    rank = 2


class Conv3D(Convolution):
    """Convolution of volumes: inputs [batch, depth, height, width, channels], or [batch, channels, depth, ...].

    The arguments are those of `Conv2D`.
    """

    rank = 3


conv1d = layer_function(Conv1D, "conv1d")
conv2d = layer_function(Conv2D, "conv2d")
conv3d = layer_function(Conv3D, "conv3d")

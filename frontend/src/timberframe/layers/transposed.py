"""Transposed convolutions, which make images and volumes larger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import shape
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn_backward import conv2d_transpose as nn_conv2d_transpose
from timberframe.api.nn_windows import conv3d_transpose as nn_conv3d_transpose
from timberframe.layers.convolutional import Convolution
from timberframe.layers.functions import layer_function
from timberframe.layers.geometry import transposed_length
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class TransposedConvolution(Convolution):
    """Base of transposed convolutions: the gradient of a convolution by its input; kernel [*sizes, filters, channels].

    The arguments are those of a convolution, without dilation_rate.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
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
            filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, kernel_initializer,
            bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def convolve(self, inputs: Tensor) -> Tensor:
        known, sizes = inputs.shape.as_list(), shape(inputs)
        first = 2 if self.channels_first else 1
        lengths = [
            transposed_length(sizes[i] if known[i] is None else known[i], window, self.padding, stride)
            for i, (window, stride) in enumerate(zip(self.kernel_size, self.strides, strict=True), first)
        ]
        batch = sizes[0] if known[0] is None else known[0]
        out = [batch, self.filters, *lengths] if self.channels_first else [batch, *lengths, self.filters]
        transpose = nn_conv2d_transpose if self.rank == 2 else nn_conv3d_transpose
        result = transpose(inputs, self.kernel, out, self.strides, self.padding, self.layout)
        result.set_shape(self.compute_output_shape(inputs.shape).as_tuple())
        return result

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        spatial = sizes[2:] if self.channels_first else sizes[1:-1]
        out = [
            None if n is None else transposed_length(n, w, self.padding, s)
            for n, w, s in zip(spatial, self.kernel_size, self.strides, strict=True)
        ]
        return TensorShape([sizes[0], self.filters, *out] if self.channels_first else [sizes[0], *out, self.filters])


class Conv2DTranspose(TransposedConvolution):
    """Transposed convolution of images, which makes them larger by the strides; kernel [*sizes, filters, channels].

    The arguments are those of `Conv2D`, without dilation_rate.
    """

    rank = 2


class Conv3DTranspose(TransposedConvolution):
    """Transposed convolution of volumes; the arguments are those of `Conv3D`, without dilation_rate."""

    rank = 3


conv2d_transpose = layer_function(Conv2DTranspose, "conv2d_transpose")
conv3d_transpose = layer_function(Conv3DTranspose, "conv3d_transpose")

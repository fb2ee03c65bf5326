"""Layers of the largest value or the mean of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import expand_dims, squeeze
from timberframe.api.nn import avg_pool, max_pool
from timberframe.api.nn_windows import avg_pool3d, max_pool3d
from timberframe.layers.base import InputSpec, Layer
from timberframe.layers.functions import layer_function
from timberframe.layers.geometry import LAYOUTS, channels_first, padding_of, sizes_of, window_length
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class Pooling(Layer):
    """Base of pooling layers.

    pool_size, strides: an integer, or one for each spatial axis. padding: "valid" or "same". data_format:
    "channels_last" or "channels_first".
    """

    rank: int
    """Number of spatial axes."""

    pool: Callable[..., Tensor]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = sizes_of(pool_size, self.rank, "pool_size")
        self.strides = sizes_of(strides, self.rank, "strides")
        self.padding = padding_of(padding)
        self.channels_first = channels_first(data_format)
        self.data_format = data_format
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Any:
        if self.rank > 1:
            layout = LAYOUTS[self.rank][self.channels_first]
            return type(self).pool(inputs, self.pool_size, self.strides, self.padding, layout)
        axis = 2 if self.channels_first else 1
        sizes, steps = (1, *self.pool_size), (1, *self.strides)
        layout = LAYOUTS[2][self.channels_first]
        return squeeze(type(self).pool(expand_dims(inputs, axis), sizes, steps, self.padding, layout), [axis])

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        sizes = TensorShape(input_shape).as_list()
        first = 2 if self.channels_first else 1
        for i, (window, stride) in enumerate(zip(self.pool_size, self.strides, strict=True), first):
            sizes[i] = window_length(sizes[i], window, self.padding, stride)
        return TensorShape(sizes)


class MaxPooling1D(Pooling):
    """The largest value in windows along one axis; the arguments are those of `MaxPooling2D`."""

    rank, pool = 1, staticmethod(max_pool)


class MaxPooling2D(Pooling):
    """The largest value in windows of images [batch, height, width, channels], or with channels_first.

    pool_size, strides: an integer, or one for each of height and width. padding: "valid" or "same".
    """

    rank, pool = 2, staticmethod(max_pool)


class MaxPooling3D(Pooling):
    """The largest value in windows of volumes; the arguments are those of `MaxPooling2D`."""

    rank, pool = 3, staticmethod(max_pool3d)


class AveragePooling1D(Pooling):
    """The mean of windows along one axis, padding not counted; the arguments are those of `MaxPooling2D`."""

    rank, pool = 1, staticmethod(avg_pool)


class AveragePooling2D(Pooling):
    """The mean of windows of images, padding not counted; the arguments are those of `MaxPooling2D`."""

    rank, pool = 2, staticmethod(avg_pool)


class AveragePooling3D(Pooling):
    """The mean of windows of volumes, padding not counted; the arguments are those of `MaxPooling2D`."""

    rank, pool = 3, staticmethod(avg_pool3d)


max_pooling1d = layer_function(MaxPooling1D, "max_pooling1d")
max_pooling2d = layer_function(MaxPooling2D, "max_pooling2d")
max_pooling3d = layer_function(MaxPooling3D, "max_pooling3d")
average_pooling1d = layer_function(AveragePooling1D, "average_pooling1d")
average_pooling2d = layer_function(AveragePooling2D, "average_pooling2d")
average_pooling3d = layer_function(AveragePooling3D, "average_pooling3d")

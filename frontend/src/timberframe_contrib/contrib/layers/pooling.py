"""Pooling of images and volumes."""

from __future__ import annotations

from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.framework import name_scope
from timberframe_contrib.contrib.framework import add_arg_scope
from timberframe_contrib.contrib.layers.base import layout
from timberframe_contrib.contrib.layers.utils import collect_named_outputs
from timberframe_core.graph.apply import convert_to_tensor


def _pooled(
    kind: Any,
    name: str,
    inputs: Any,
    kernel_size: Any,
    stride: Any,
    padding: str,
    data_format: str,
    collections: Any,
    scope: str | None,
) -> Any:
    with name_scope(scope, name, [inputs]) as opened:
        layer = kind(kernel_size, stride, padding, layout(data_format))
        return collect_named_outputs(collections, opened, layer(convert_to_tensor(inputs)))


@add_arg_scope
def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The largest value in windows of images."""
    kind = tf_layers.MaxPooling2D
    return _pooled(kind, "MaxPool2D", inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)


@add_arg_scope
def avg_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The mean of windows of images."""
    kind = tf_layers.AveragePooling2D
    return _pooled(kind, "AvgPool2D", inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)


@add_arg_scope
def max_pool3d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The largest value in windows of volumes."""
    kind = tf_layers.MaxPooling3D
    return _pooled(kind, "MaxPool3D", inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)


@add_arg_scope
def avg_pool3d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The mean of windows of volumes."""
    kind = tf_layers.AveragePooling3D
    return _pooled(kind, "AvgPool3D", inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)

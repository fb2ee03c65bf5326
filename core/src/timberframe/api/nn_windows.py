"""`tf.nn.*` functions of windows over volumes, and of morphology."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.nn_arguments import either
from timberframe.errors import InvalidArgumentError
from timberframe.graph.apply import apply_op
from timberframe.graph.operation import Tensor

NAMESPACES = {"nn": ("avg_pool3d", "dilation2d", "erosion2d", "max_pool3d")}


def _volume_values(values: Any, data_format: str, what: str) -> tuple[int, ...]:
    """One value, the three spatial ones, or all five, as the five values of a layout."""
    given = tuple(values) if isinstance(values, list | tuple) else (values,)
    if len(given) == 5:
        return given
    if len(given) not in (1, 3):
        raise InvalidArgumentError(f"tf.nn: {what} is {list(given)}; it must have 1, 3 or 5 values")
    spatial = given * 3 if len(given) == 1 else given
    return (1, 1, *spatial) if data_format == "NCDHW" else (1, *spatial, 1)


def _pool3d(op: str, input: Any, ksize: Any, strides: Any, padding: str, data_format: str, name: str | None) -> Tensor:
    attrs = {
        "ksize": _volume_values(ksize, data_format, "ksize"),
        "strides": _volume_values(strides, data_format, "strides"),
        "padding": padding,
        "data_format": data_format,
    }
    result: Tensor = apply_op(op, [input], attrs, name)
    return result


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest value in each window of a volume; ksize and strides are one value, three or five."""
    return _pool3d("MaxPool3D", input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window of a volume, padding not counted; ksize and strides are one value, three or five."""
    return _pool3d("AvgPool3D", input, ksize, strides, padding, data_format, name)


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest sum of an NHWC pixel and the filter's value for it; strides and rates have four values."""
    weights = either("dilation2d", "filter", filter, "filters", filters)
    spread = either("dilation2d", "rates", rates, "dilations", dilations)
    attrs = {"strides": tuple(strides), "rates": tuple(spread), "padding": padding}
    result: Tensor = apply_op("Dilation2D", [input, weights], attrs, name)
    return result


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """The smallest difference of an NHWC pixel and the kernel's value for it; strides and rates have four values."""
    with name_scope(name, "erosion2d") as scope:
        mirrored = apply_op("ReverseV2", [kernel, [0, 1]])
        attrs = {"strides": tuple(strides), "rates": tuple(rates), "padding": padding}
        result: Tensor = apply_op(
            "Neg", [apply_op("Dilation2D", [apply_op("Neg", [value]), mirrored], attrs)], None, scope
        )
        return result

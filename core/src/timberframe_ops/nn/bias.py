"""Biases: a vector added along the channels, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC, int32
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, constant, dense, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.nn.windows import channel_axis

_NUMBERS = "{" + ", ".join(t.name for t in NUMERIC) + ", qint8, quint8, qint16, quint16, qint32}"


def _bias_shape(c: InferenceContext) -> Sequence[Shape]:
    value, (count,) = c.shapes[0], c.require_rank(1, 1)
    if value is None:
        return [None]
    data_format = c.attrs.get("data_format", "NHWC")
    least = 3 if data_format == "NCHW" else 2
    if len(value) < least:
        raise c.error(f"value has shape {format_shape(value)}; with {data_format} it must have rank {least} or more")
    axis = channel_axis(data_format, len(value))
    if count is not None and value[axis] is not None and value[axis] != count:
        raise c.error(f"value has {value[axis]} channels and bias {count} elements; they must agree")
    return [value[:axis] + (value[axis] if count is None else count,) + value[axis + 1 :]]


def _bias_reference(attrs: Attrs, value: np.ndarray, bias: np.ndarray) -> np.ndarray:
    axis = channel_axis(attrs.get("data_format", "NHWC"), value.ndim)
    result: np.ndarray = value + bias.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    return result


def _bias_samples(with_format: bool) -> Iterator[Sample]:
    layouts: list[dict[str, str]] = [{"data_format": f} for f in ("NHWC", "NCHW")] if with_format else [{}]
    for attrs in layouts:
        first = attrs.get("data_format") == "NCHW"
        for shape in ((2, 3), (1, 1), (4, 5, 7), (2, 3, 5, 17), (0, 3, 2), (2, 3, 0, 2), (1, 2, 3, 4, 5), (3, 70000)):
            channels = shape[1] if first else shape[-1]
            if channels and not (first and len(shape) == 2):
                yield Sample((Arg(shape), Arg((channels,))), attrs)


def _bias_errors(with_format: bool) -> Iterator[ErrorSample]:
    yield ErrorSample((Arg((3,)), Arg((3,))), "rank 2 or more")
    if with_format:
        yield ErrorSample((Arg((2, 3)), Arg((3,))), "rank 3 or more", {"data_format": "NCHW"})
    yield ErrorSample((Arg((2, 3)), Arg((4,))), "3 channels and bias 4")
    yield ErrorSample((Arg((2, 3)), Arg((1, 3))), "must have rank 1")


def _bias_gradient(op: Any, grad: Any) -> list[Any]:
    data_format = op.attrs.get("data_format", "NHWC")
    return [grad, apply_op("BiasAddGrad", [dense(grad)], {"data_format": data_format})]


define_op(
    "BiasAdd",
    inputs=("value: T", "bias: T"),
    outputs=("output: T",),
    attrs=(f"T: {_NUMBERS}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'"),
    doc="Adds a vector along the channels: the last dimension, or with NCHW the second.",
    shape=_bias_shape,
    reference=_bias_reference,
    gradient=_bias_gradient,
    gradient_takes_slices=True,
    samples=lambda: _bias_samples(True),
    errors=lambda: _bias_errors(True),
)

define_op(
    "BiasAddV1",
    inputs=("value: T", "bias: T"),
    outputs=("output: T",),
    attrs=(f"T: {_NUMBERS}",),
    doc="BiasAdd along the last dimension.",
    shape=_bias_shape,
    reference=_bias_reference,
    gradient=_bias_gradient,
    gradient_takes_slices=True,
    samples=lambda: _bias_samples(False),
    errors=lambda: _bias_errors(False),
)


def _summed_axes(data_format: str, rank: int) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i != channel_axis(data_format, rank))


def _bias_grad_shape(c: InferenceContext) -> Sequence[Shape]:
    shape, data_format = c.shapes[0], c.attrs["data_format"]
    if shape is None:
        return [(None,)]
    least = 3 if data_format == "NCHW" else 2
    if len(shape) < least:
        raise c.error(
            f"out_backprop has shape {format_shape(shape)}; with {data_format} it must have rank {least} or more"
        )
    return [(shape[channel_axis(data_format, len(shape))],)]


def _bias_grad_reference(attrs: Attrs, out_backprop: np.ndarray) -> np.ndarray:
    result: np.ndarray = out_backprop.sum(
        axis=_summed_axes(attrs["data_format"], out_backprop.ndim), dtype=out_backprop.dtype
    )
    return result


def _bias_grad_terms(attrs: Attrs, out_backprop: np.ndarray) -> int:
    channels = out_backprop.shape[channel_axis(attrs["data_format"], out_backprop.ndim)]
    return int(out_backprop.size // max(channels, 1))


def _bias_grad_samples() -> Iterator[Sample]:
    for data_format in ("NHWC", "NCHW"):
        for shape in ((2, 3), (1, 1), (4, 5, 7), (2, 3, 5, 17), (0, 3, 2), (2, 0, 2), (1, 2, 3, 4, 5), (3, 70000)):
            if data_format == "NHWC" or len(shape) > 2:
                yield Sample((Arg(shape, special=False),), {"data_format": data_format})


def _bias_grad_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient of each channel, repeated over all its elements."""
    (x,) = op.inputs
    shape = x.static_shape
    if shape is None:
        rank, last = apply_op("Rank", [x]), op.attrs["data_format"] == "NHWC"
        axis = apply_op("Sub", [rank, 1]) if last else constant(1, int32)
        column = apply_op("OneHot", [axis, rank, constant(-1, int32), constant(1, int32)])
    else:
        axis = channel_axis(op.attrs["data_format"], len(shape))
        column = constant([-1 if i == axis else 1 for i in range(len(shape))], int32)
    return [apply_op("BroadcastTo", [apply_op("Reshape", [grad, column]), shape_of(x)])]


define_op(
    "BiasAddGrad",
    inputs=("out_backprop: T",),
    outputs=("output: T",),
    attrs=(f"T: {_NUMBERS}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'"),
    doc="The sum over all dimensions but that of the channels: the gradient of BiasAdd by its bias.",
    shape=_bias_grad_shape,
    reference=_bias_grad_reference,
    gradient=_bias_grad_gradient,
    accuracy=Accumulation(_bias_grad_terms),
    samples=_bias_grad_samples,
    errors=lambda: [
        ErrorSample((Arg((3,)),), "rank 2 or more"),
        ErrorSample((Arg((2, 3)),), "rank 3 or more", {"data_format": "NCHW"}),
    ],
)

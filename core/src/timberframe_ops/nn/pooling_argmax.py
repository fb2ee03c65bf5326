"""Maxima of windows together with their indices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import Accumulation, Exact
from timberframe_core.ops.definition.gradients import apply_op, constant, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, merge_shapes
from timberframe_core.shapes import Shape, StaticShape
from timberframe_ops.nn.pooling import WINDOW_ATTRS, max_pool_samples, pooled
from timberframe_ops.nn.pooling_gradients import REAL_NUMBERS, first_maxima
from timberframe_ops.nn.windows import unimplemented, widen


def _check_space(c: InferenceContext) -> None:
    ksize, strides = c.attrs["ksize"], c.attrs["strides"]
    if len(ksize) == len(strides) == 4 and (ksize[3], strides[3]) != (1, 1):
        raise unimplemented(
            c, f"ksize {list(ksize)} and strides {list(strides)} pool over channels; both must be 1 there"
        )


def _argmax_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_space(c)
    shape = pooled(c, c.require_rank(0, 4), c.attrs["ksize"], c.attrs["strides"], maximum=True)
    return [shape, shape]


@late_errors
def _grad_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_space(c)
    x = c.require_rank(0, 4)
    shape: Shape = pooled(c, x, c.attrs["ksize"], c.attrs["strides"], maximum=True)
    for i, name in ((1, "grad"), (2, "argmax")):
        shape = merge_shapes(c, shape, c.require_rank(i, 4), f"the pooled input and {name}")
    return [x]


def _argmax_reference(attrs: Attrs, input: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    indices = first_maxima({**attrs, "data_format": "NHWC"}, input)
    values = input.ravel()[indices] if input.size else np.zeros(indices.shape, input.dtype)
    if not attrs["include_batch_in_index"]:
        indices = indices % max(math.prod(input.shape[1:]), 1)
    return values, indices.astype(attrs["Targmax"].numpy)


ARGMAX_OUTSIDE = "argmax has {0} in image {1}; it must lie in [0, {2})"


def _grad_reference(attrs: Attrs, input: np.ndarray, grad: np.ndarray, argmax: np.ndarray) -> np.ndarray:
    indices = argmax.astype(np.int64)
    _check_argmax(attrs, indices, input.shape)
    if not attrs["include_batch_in_index"]:
        indices = indices + (np.arange(input.shape[0]) * math.prod(input.shape[1:])).reshape(-1, 1, 1, 1)
    wide = widen(grad)
    result = np.zeros(input.size, wide.dtype)
    np.add.at(result, indices.ravel(), wide.ravel())
    return result.reshape(input.shape).astype(grad.dtype)


def _check_argmax(attrs: Attrs, indices: np.ndarray, shape: StaticShape) -> None:
    """Raises InvalidArgumentError for the first index outside the image, or the batch, of an input of this shape."""
    size = math.prod(shape if attrs["include_batch_in_index"] else shape[1:])
    wrong = np.argwhere((indices < 0) | (indices >= size))
    if len(wrong):
        raise InvalidArgumentError(ARGMAX_OUTSIDE.format(indices[tuple(wrong[0])], wrong[0][0], size))


def _argmax_samples() -> Iterator[Sample]:
    for number, sample in enumerate(_space_samples()):
        yield Sample(sample.inputs, {**sample.attrs, "include_batch_in_index": bool(number % 2)})


def _space_samples() -> Iterator[Sample]:
    """Samples of MaxPool that the ops of this family take: NHWC, windows in space, no explicit padding."""
    for sample in max_pool_samples():
        attrs = dict(sample.attrs)
        if attrs.pop("data_format", "NHWC") == "NHWC" and attrs["padding"] != "EXPLICIT" and attrs["ksize"][3] == 1:
            (x,) = sample.inputs
            assert isinstance(x, Arg)
            yield Sample((Arg(x.shape, special=False),), attrs)


def _grad_samples() -> Iterator[Sample]:
    for number, sample in enumerate(_space_samples()):
        (x,) = sample.inputs
        assert isinstance(x, Arg)
        attrs: dict[str, Any] = {**sample.attrs, "include_batch_in_index": bool(number % 2)}
        image = (np.arange(math.prod(x.shape)) * 37 % 101).reshape(x.shape)
        _, argmax = _argmax_reference({**attrs, "Targmax": int64}, image)
        yield Sample((Arg(x.shape), Arg(argmax.shape, special=False), Arg(values=argmax)), attrs)
    anywhere = Arg((2, 4, 3, 3), low=0, high=8 * 6 * 3 - 1, distinct=True, special=False)  # within one image
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID", "include_batch_in_index": False}
    yield Sample((Arg((2, 8, 6, 3)), Arg(anywhere.shape, special=False), anywhere), attrs)


def _grad_errors() -> Iterator[ErrorSample]:
    base = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x, grad = Arg((1, 2, 4, 1)), Arg((1, 1, 2, 1))
    yield ErrorSample((x, grad, Arg(values=[[[[0], [8]]]])), r"8 in image 0; it must lie in \[0, 8\)", base)
    yield ErrorSample((x, grad, Arg(values=[[[[-1], [7]]]])), r"-1 in image 0; it must lie in \[0, 8\)", base)
    two = Arg((2, 2, 4, 1)), Arg((2, 1, 2, 1)), Arg(values=[[[[0], [1]]], [[[2], [9]]]])
    yield ErrorSample(two, r"9 in image 1; it must lie in \[0, 8\)", base)
    yield ErrorSample((x, Arg((1, 1, 3, 1)), Arg(values=[[[[0], [1]]]])), "the pooled input and grad have shapes", base)
    yield ErrorSample((x, grad, Arg(values=[[[[0]]]])), "the pooled input and argmax have shapes", base)


def _argmax_gradient(op: Any, grad: Any, _: Any) -> list[Any]:
    names = ("ksize", "strides", "padding", "include_batch_in_index")
    attrs = {name: op.attrs[name] for name in names}
    return [apply_op("MaxPoolGradWithArgmax", [op.inputs[0], grad, op.outputs[1]], attrs)]


def _grad_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient: each window takes the gradient at its index; the input itself moves nothing."""
    x, _, argmax = op.inputs
    indices = apply_op("Cast", [argmax], {"DstT": int64})
    if not op.attrs["include_batch_in_index"]:
        shape = shape_of(x, int64)
        batch, image = apply_op("Gather", [shape, constant(0, int64)]), apply_op("Prod", [shape[1:], 0])
        first = apply_op("Range", [constant(0, int64), batch, constant(1, int64)]) * image
        indices = indices + apply_op("Reshape", [first, [-1, 1, 1, 1]])
    taken = apply_op("GatherV2", [apply_op("Reshape", [grad, [-1]]), indices, 0])
    return [apply_op("ZerosLike", [x]), taken, None]


_ATTRS = (
    *WINDOW_ATTRS,
    "padding: {'SAME', 'VALID'}",
    "include_batch_in_index: bool = false",
    f"T: {REAL_NUMBERS}",
)

define_op(
    "MaxPoolWithArgmax",
    inputs=("input: T",),
    outputs=("output: T", "argmax: Targmax"),
    attrs=(*_ATTRS, "Targmax: {int32, int64} = DT_INT64"),
    doc="The largest value in each NHWC window, and its element's number in the image or in the whole batch.",
    shape=_argmax_shape,
    reference=_argmax_reference,
    gradient=_argmax_gradient,
    accuracy=Exact(signed_zero=False),
    samples=_argmax_samples,
    errors=lambda: [
        ErrorSample(
            (Arg((1, 4, 4, 2)),),
            "pool over channels",
            {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "VALID"},
            error="UnimplementedError",
        ),
        ErrorSample(
            (Arg((4, 4, 2)),),
            "must have rank 4",
            {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"},
        ),
    ],
)

define_op(
    "MaxPoolGradWithArgmax",
    inputs=("input: T", "grad: T", "argmax: Targmax"),
    outputs=("output: T",),
    attrs=(*_ATTRS, "Targmax: {int32, int64}"),
    doc="The gradient of MaxPoolWithArgmax by its input: each grad is added to the element that argmax names.",
    shape=_grad_shape,
    reference=_grad_reference,
    gradient=_grad_gradient,
    accuracy=Accumulation(
        lambda attrs, *inputs: math.prod(-(-k // s) for k, s in zip(attrs["ksize"], attrs["strides"], strict=True))
    ),
    samples=_grad_samples,
    errors=_grad_errors,
)

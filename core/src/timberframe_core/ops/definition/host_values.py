"""Host values: what the ops of shape arithmetic know about their outputs without running.

A host value is an ndarray of the output's dtype, or one of dtype object in which UNKNOWN stands for elements that
nobody knows yet. A `value` function turns those of the inputs into those of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.ops.definition.opdef import UNKNOWN, InferenceContext, is_known
from timberframe_core.shapes import MAX_SHAPE_RANK, Shape, StaticShape, check_size, format_shape

HostValue = np.ndarray | None
MAX_ELEMENTS = 1 << 20  # what is larger is data and not shape arithmetic


def host_array(elements: Iterable[Any], dtype: DType) -> np.ndarray:
    """Returns a vector of these elements; None and UNKNOWN count as unknown."""
    items = [UNKNOWN if x is None else x for x in elements]
    if any(x is UNKNOWN for x in items):
        out = np.empty(len(items), object)
        out[:] = items
        return out
    return np.array(items, dtype.numpy)


def infer_values(c: InferenceContext, dtypes: Sequence[DType]) -> list[HostValue]:
    """Returns what the op's value function knows of its outputs, which have these dtypes."""
    assert c.op.value is not None
    values = zip(c.op.value(c), dtypes, strict=True)
    return [None if value is None else to_dtype(np.asarray(value), dtype) for value, dtype in values]


def to_dtype(value: np.ndarray, dtype: DType) -> np.ndarray:
    """Returns the value in its dtype, or an array of objects while elements are unknown; integers
    wrap around as in kernels.
    """
    kind = dtype.numpy
    if value.dtype == kind:
        return value
    if not value.dtype.hasobject:
        return value.astype(kind)
    if kind.kind in "iu":
        lowest, size = np.iinfo(kind).min, 1 << 8 * kind.itemsize
        wrap = np.frompyfunc(lambda x: x if x is UNKNOWN else (int(x) - lowest) % size + lowest, 1, 1)
        value = np.asarray(wrap(value), object)
    return value.astype(kind) if is_known(value) else value


def first_value(c: InferenceContext) -> list[HostValue]:
    """Returns the values: the output has the first input's value."""
    return [c.values[0]]


def reshaped_value(c: InferenceContext) -> list[HostValue]:
    """Returns the values: the output has the first input's elements in the shape that the shape function finds."""
    value, shape = c.values[0], static_output(c)
    if value is None or shape is None or int(np.prod(shape)) != value.size:
        return [None]
    return [value.reshape(shape)]


def static_output(c: InferenceContext) -> StaticShape | None:
    """Returns the first output's shape if it is fully known and no larger than a host value may be."""
    shape = c.op.shape(c)[0]
    if shape is None:
        return None
    sizes = tuple(d for d in shape if d is not None)
    if len(sizes) != len(shape) or int(np.prod(sizes, dtype=object)) > MAX_ELEMENTS:
        return None
    return sizes


def reference_value(c: InferenceContext) -> list[HostValue]:
    """Returns the reference applied to the inputs' values, where all are there and the one output is small.

    For references that only move elements, so that unknown ones move along. Inputs that steer it must be known.
    """
    data = {a.name for a in c.op.inputs} - {*c.op.shape_inputs, *c.op.launch_inputs}
    if len(c.op.inputs) == len(c.values):
        parameters = [i for i, a in enumerate(c.op.inputs) if a.name not in data]
        if any(c.value(i) is None for i in parameters):
            return [None] * len(c.op.outputs)
    if any(v is None for v in c.values) or static_output(c) is None:
        return [None] * len(c.op.outputs)
    assert c.op.reference is not None
    return [to_dtype(np.asarray(c.op.reference(c.attrs, *c.values)), c.dtypes[0])]


def checked(c: InferenceContext, shape: Shape) -> Shape:
    """Returns the shape, after a check that its known sizes are not negative and their product fits 63 bits."""
    if shape is not None:
        try:
            check_size([1 if d is None else d for d in shape])
        except ValueError as e:
            raise c.error(str(e)) from None
    return shape


def scalar_value(c: InferenceContext, i: int, what: str) -> int | None:
    """Input i as one integer, None while it is not known; it may have rank 0, or one element."""
    shape = c.shapes[i]
    if shape is not None and None not in shape and int(np.prod([d or 0 for d in shape], dtype=object)) != 1:
        raise c.error(f"{what} has shape {format_shape(shape)}; it must hold a single value")
    value = c.value(i)
    return None if value is None else int(value.reshape(-1)[0])


def vector_length(c: InferenceContext, i: int, what: str) -> int | None:
    """Returns the length of input i, which must be a vector; None while it is not known."""
    shape = c.shapes[i]
    if shape is None:
        return None
    if len(shape) != 1:
        raise c.error(f"{what} has shape {format_shape(shape)}; it must be a vector")
    return shape[0]


def elements(c: InferenceContext, i: int, length: int) -> list[int | None]:
    """Returns the elements of vector input i as integers, None for those that are not known."""
    value = c.values[i]
    if value is None:
        if length > 2 * MAX_SHAPE_RANK:
            raise c.late_error(f"input {i} has {length} elements; a shape has at most {MAX_SHAPE_RANK} dimensions")
        return [None] * length
    return [None if x is UNKNOWN else int(x) for x in value.reshape(-1)]

"""What the ops of quantization share: the checks of ranges, and how ranges broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.shapes import Shape, compatible, format_shape

QUANTIZED = "{qint8, quint8, qint32, qint16, quint16}"


def check_axis(c: InferenceContext, shape: Shape) -> int:
    """Returns the attr `axis`, -1 where there is one range for all elements; it must be below the rank of `shape`."""
    axis = int(c.attrs["axis"])
    if axis < -1:
        raise c.error(f"axis is {axis}; -1 (one range for all) or an axis of the input is required")
    if shape is not None and axis >= len(shape):
        raise c.error(f"axis is {axis} for an input of rank {len(shape)}; it must be below the rank")
    return axis


def check_ends(c: InferenceContext, first: int, names: Sequence[str], wanted: Shape) -> None:
    """Checks that the inputs from `first` on, which are the ends of ranges, have the shape `wanted`."""
    for i, name in enumerate(names, first):
        if not compatible(c.shapes[i], wanted):
            raise c.error(f"{name} has shape {format_shape(c.shapes[i])}; it must be {format_shape(wanted)}")


def ends_shape(axis: int, shape: Shape) -> Shape:
    """Returns the shape that both ends of the ranges have: a scalar, or one number for each slice along the axis."""
    if axis < 0:
        return ()
    return (None,) if shape is None else (shape[axis],)


def along(axis: int, x: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Returns numbers of the slices along an axis so that they broadcast with x; those of one range as a scalar."""
    return ends.reshape(()) if axis < 0 else ends.reshape((-1,) + (1,) * (x.ndim - 1 - axis))

"""ExtractImagePatches: what sliding windows see. TensorFlow's array_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32, int64
from timberframe_core.ops.definition.gradients import apply_op, constant
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.nn.windows import extent, output_size, padding_amounts

_WINDOWS = ("ksizes", "strides", "rates")


def _shape(c: InferenceContext) -> Sequence[Shape]:
    for name in _WINDOWS:
        given = c.attrs[name]
        if len(given) != 4 or given[0] != 1 or given[3] != 1 or min(given) < 1:
            raise c.error(f"{name} is {list(given)}; [1, rows, columns, 1] of positive numbers is required")
    batch, rows, columns, depth = c.require_rank(0, 4)
    sizes, strides, rates = (c.attrs[name] for name in _WINDOWS)
    places = [
        output_size(c, size, sizes[i], strides[i], rates[i], c.attrs["padding"])
        for i, size in ((1, rows), (2, columns))
    ]
    return [(batch, *places, None if depth is None else depth * sizes[1] * sizes[2])]


def _patches(attrs: Attrs, images: np.ndarray) -> np.ndarray:
    sizes, strides, rates = (attrs[name] for name in _WINDOWS)
    pads = [padding_amounts(images.shape[i], sizes[i], strides[i], rates[i], attrs["padding"]) for i in (1, 2)]
    padded = np.pad(images, [(0, 0), *pads, (0, 0)])
    counts = [max(0, (padded.shape[i] - extent(sizes[i], rates[i])) // strides[i] + 1) for i in (1, 2)]
    taps = []
    for y in range(sizes[1]):
        for x in range(sizes[2]):
            rows, columns = (
                slice(at * rates[i], at * rates[i] + (counts[i - 1] - 1) * strides[i] + 1, strides[i])
                for i, at in ((1, y), (2, x))
            )
            taps.append(padded[:, rows, columns])
    made = np.concatenate(taps, -1) if 0 not in counts else padded[:, :0, :0]
    return made.reshape(images.shape[0], *counts, sizes[1] * sizes[2] * images.shape[3])


def _gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient: each element of the gradient goes back to where it came from: patches of
    numbered pixels say where.
    """
    images = op.inputs[0]
    sizes = apply_op("Shape", [images], {"out_type": int64})
    batch, rows, columns, depth = (apply_op("GatherV2", [sizes, i, 0]) for i in range(4))
    one = constant(1, int64)
    pixels = apply_op("Mul", [rows, columns])
    after = apply_op("Add", [pixels, one])
    whole = apply_op("Pack", [[one, rows, columns, one]])
    numbers = apply_op("Reshape", [apply_op("Range", [one, after, one]), whole])  # 0 is the padding
    attrs = {name: op.attrs[name] for name in (*_WINDOWS, "padding")}
    places = apply_op("Reshape", [apply_op("ExtractImagePatches", [numbers], attrs), constant([-1], int32)])
    flat = apply_op("Reshape", [grad, apply_op("Pack", [[batch, constant(-1, int64), depth]])])
    turned = apply_op("Transpose", [flat, constant([1, 0, 2], int32)])
    total = apply_op("UnsortedSegmentSum", [turned, places, apply_op("Cast", [after], {"DstT": int32})])
    inside = apply_op("Slice", [total, constant([1, 0, 0], int32), constant([-1, -1, -1], int32)])
    back = apply_op("Transpose", [inside, constant([1, 0, 2], int32)])
    return [apply_op("Reshape", [back, sizes])]


define_op(
    "ExtractImagePatches",
    inputs=["images: T"],
    outputs=["patches: T"],
    attrs=[
        "ksizes: list(int) >= 4", "strides: list(int) >= 4", "rates: list(int) >= 4",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
        "complex128, bool}",
        "padding: {'SAME', 'VALID'}",
    ],
    doc="For each position of a window in images [batch, rows, columns, channels] what it sees, row by row, as the "
    "last dimension; rates: how far apart the pixels of a window are.",
    shape=_shape,
    reference=_patches,
    gradient=_gradient,
    on_host=True,
)  # fmt: skip

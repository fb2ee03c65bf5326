"""Ops that move blocks of space into the batch, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.host_values import checked, elements
from timberframe_core.ops.definition.opdef import InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.array.blocks import Sizes, divided


def _block_shape(c: InferenceContext) -> list[int | None] | None:
    """Returns the block's sizes: input 1, or the attr block_size in both dimensions of space."""
    if "block_size" in c.attrs:
        return [c.attrs["block_size"]] * 2
    shape = c.shapes[1]
    if shape is None or shape == (None,):
        return None
    if len(shape) != 1:
        raise c.error(f"block_shape has shape {format_shape(shape)}; it must be a vector")
    block = elements(c, 1, shape[0] or 0)
    if any(b is not None and b < 1 for b in block):
        raise c.error(f"block_shape is {format_shape(tuple(block))}; each size must be at least 1")
    return block


def _margins(c: InferenceContext, count: int) -> list[tuple[int | None, int | None]]:
    """Returns the paddings or crops, the last input, as pairs."""
    at = len(c.shapes) - 1
    name, shape = c.op.inputs[at].name, c.shapes[at]
    if shape is not None and (len(shape) != 2 or shape[0] not in (None, count) or shape[1] not in (None, 2)):
        raise c.error(f"{name} has shape {format_shape(shape)}; it must be ({count}, 2)")
    flat = elements(c, at, 2 * count)
    if any(m is not None and m < 0 for m in flat):
        raise c.error(f"{name} are {format_shape(tuple(flat))}; each must be zero or more")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _space(c: InferenceContext) -> tuple[Sizes, list[int | None], list[tuple[int | None, int | None]]] | None:
    """Input shape, block and margins; None where the rank or the number of blocked dimensions is unknown."""
    block = _block_shape(c)
    if "block_size" in c.attrs:
        c.require_rank(0, 4)
    shape = c.shapes[0]
    if block is None or shape is None:
        return None
    if len(shape) < len(block) + 1:
        raise c.error(
            f"input has shape {format_shape(shape)}; "
            f"with {len(block)} block sizes its rank must be at least {len(block) + 1}"
        )
    return shape, block, _margins(c, len(block))


def _to_batch_shape(c: InferenceContext) -> list[Shape]:
    found = _space(c)
    if found is None:
        return [c.shapes[0] and (None,) * len(c.shapes[0])]
    shape, block, margins = found
    sizes: list[int | None] = []
    for i, (b, (before, after)) in enumerate(zip(block, margins, strict=True)):
        size = shape[i + 1]
        padded = None if size is None or before is None or after is None else size + before + after
        if padded is not None and b is not None and padded % b:
            raise c.error(
                f"dimension {i + 1} with its paddings is {padded}; it must be a multiple of the block size {b}"
            )
        sizes.append(None if padded is None or b is None else padded // b)
    batch = None if shape[0] is None or None in block else shape[0] * math.prod(b for b in block if b is not None)
    return [checked(c, (batch, *sizes, *shape[len(block) + 1 :]))]


def _from_batch_shape(c: InferenceContext) -> list[Shape]:
    found = _space(c)
    if found is None:
        return [c.shapes[0] and (None,) * len(c.shapes[0])]
    shape, block, margins = found
    batch = None
    if shape[0] is not None and None not in block:
        batch = divided(c, shape[0], math.prod(b for b in block if b is not None), "batch")
    sizes: list[int | None] = []
    for i, (b, (before, after)) in enumerate(zip(block, margins, strict=True)):
        size = shape[i + 1]
        cropped = None if None in (size, b, before, after) else (size or 0) * (b or 0) - (before or 0) - (after or 0)
        if cropped is not None and cropped < 0:
            raise c.error(
                f"crops of dimension {i + 1} are {before} and {after}; "
                f"their sum must be at most {(size or 0) * (b or 0)}"
            )
        sizes.append(cropped)
    return [checked(c, (batch, *sizes, *shape[len(block) + 1 :]))]


def _to_batch(x: np.ndarray, block: list[int], paddings: np.ndarray) -> np.ndarray:
    m = len(block)
    pads = [(0, 0), *((int(a), int(b)) for a, b in paddings), *[(0, 0)] * (x.ndim - m - 1)]
    x = np.pad(x, pads, constant_values=b"" if x.dtype == object else 0)
    rest = x.shape[m + 1 :]
    split = [x.shape[0]]
    for size, b in zip(x.shape[1:], block, strict=False):
        split += [size // b, b]
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + len(rest))]
    sizes = [size // b for size, b in zip(x.shape[1:], block, strict=False)]
    return x.reshape(*split, *rest).transpose(order).reshape(x.shape[0] * math.prod(block), *sizes, *rest)


def _from_batch(x: np.ndarray, block: list[int], crops: np.ndarray) -> np.ndarray:
    m, batch = len(block), x.shape[0] // math.prod(block)
    space, rest = x.shape[1 : m + 1], x.shape[m + 1 :]
    order = [m]
    for i in range(m):
        order += [m + 1 + i, i]
    order += range(2 * m + 1, 2 * m + 1 + len(rest))
    sizes = [size * b for size, b in zip(space, block, strict=True)]
    merged = x.reshape(*block, batch, *space, *rest).transpose(order).reshape(batch, *sizes, *rest)
    return merged[(slice(None), *(slice(int(a), size - int(b)) for size, (a, b) in zip(sizes, crops, strict=True)))]


def _integers(x: np.ndarray) -> list[int]:
    return [int(v) for v in x]


_TO_BATCH: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]], ...] = (
    ((1, 2, 2, 1), (2, 2), ((0, 0), (0, 0))),
    ((2, 4, 6, 3), (2, 3), ((0, 0), (0, 0))),
    ((2, 3, 5, 3), (2, 2), ((1, 0), (2, 1))),
    ((0, 2, 2, 1), (2, 2), ((0, 0), (0, 0))),
    ((1, 33, 32, 5), (2, 2), ((0, 1), (1, 1))),
)


def _to_batch_samples() -> Iterator[Sample]:
    for shape, block, pads in (*_TO_BATCH, ((3, 5), (2,), ((1, 0),)), ((3, 4, 2), (1,), ((0, 0),)), ((2, 3), (), ())):
        yield Sample(
            [Arg(shape), Arg(values=np.array(block, np.int64)), Arg(values=np.array(pads, np.int64).reshape(-1, 2))]
        )


def _to_batch_errors() -> Iterator[ErrorSample]:
    def wrong(shape: tuple[int, ...], block: Any, pads: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg(shape), Arg(values=block), Arg(values=pads)], match)

    none = [[0, 0], [0, 0]]
    yield wrong(
        (1, 3, 4, 1), (2, 2), none, "dimension 1 with its paddings is 3; it must be a multiple of the block size 2"
    )
    yield wrong((1, 4, 4, 1), (0, 2), none, r"block_shape is \(0, 2\); each size must be at least 1")
    yield wrong((1, 4, 4, 1), (2, 2), [[0, -2], [0, 0]], r"each must be zero or more")
    yield wrong((1, 4), (2, 2), none, "with 2 block sizes its rank must be at least 3")
    yield wrong((1, 4, 4, 1), (2, 2), [[0, 0]], r"paddings has shape \(1, 2\); it must be \(2, 2\)")


_INVERSES = {
    "SpaceToBatchND": "BatchToSpaceND",
    "SpaceToBatch": "BatchToSpace",
    "BatchToSpaceND": "SpaceToBatchND",
    "BatchToSpace": "SpaceToBatch",
}


def _undone_gradient(op: Any, grad: Any) -> list[Any]:
    attrs = {k: op.attrs[k] for k in ("block_size",) if k in op.attrs}
    parameters = op.inputs[1:]
    return [apply_op(_INVERSES[op.type], [grad, *parameters], attrs), *[None] * len(parameters)]


define_op(
    "SpaceToBatchND",
    inputs=["input: T", "block_shape: Tblock_shape", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tblock_shape: {int32, int64} = DT_INT32", "Tpaddings: {int32, int64} = DT_INT32"],
    doc="Pads the dimensions after the first with zeros (empty strings), and moves the place in each block of them "
    "into the batch.",
    shape=_to_batch_shape,
    reference=lambda attrs, x, block, paddings: _to_batch(x, _integers(block), paddings),
    gradient=_undone_gradient,
    shape_inputs=("block_shape", "paddings"),
    samples=_to_batch_samples,
    errors=_to_batch_errors,
)


def _square_samples() -> Iterator[Sample]:
    for shape, block, pads in _TO_BATCH:
        if block[0] == block[1]:
            yield Sample([Arg(shape), Arg(values=np.array(pads, np.int64))], {"block_size": block[0]})


_UNEVEN = ErrorSample(
    [Arg((1, 3, 4, 1)), Arg(values=[[0, 0], [0, 0]])], "it must be a multiple of the block size 2", {"block_size": 2}
)

define_op(
    "SpaceToBatch",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32", "block_size: int >= 2"],
    doc="SpaceToBatchND of images, with square blocks.",
    shape=_to_batch_shape,
    reference=lambda attrs, x, paddings: _to_batch(x, [attrs["block_size"]] * 2, paddings),
    gradient=_undone_gradient,
    shape_inputs=("paddings",),
    samples=_square_samples,
    errors=lambda: [_UNEVEN],
)

_FROM_BATCH: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]], ...] = (
    ((4, 1, 1, 1), (2, 2), ((0, 0), (0, 0))),
    ((12, 2, 3, 3), (2, 3), ((0, 0), (0, 0))),
    ((8, 3, 5, 3), (2, 2), ((1, 0), (2, 1))),
    ((0, 2, 2, 1), (2, 2), ((0, 0), (1, 0))),
    ((4, 17, 16, 5), (2, 2), ((0, 1), (1, 1))),
    ((4, 2, 2, 1), (2, 2), ((2, 2), (0, 0))),
)


def _from_batch_samples() -> Iterator[Sample]:
    for shape, block, crops in (
        *_FROM_BATCH,
        ((6, 3), (2,), ((1, 0),)),
        ((3, 4, 2), (1,), ((0, 1),)),
        ((2, 3), (), ()),
    ):
        yield Sample(
            [Arg(shape), Arg(values=np.array(block, np.int64)), Arg(values=np.array(crops, np.int64).reshape(-1, 2))]
        )


def _from_batch_errors() -> Iterator[ErrorSample]:
    def wrong(shape: tuple[int, ...], block: Any, crops: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg(shape), Arg(values=block), Arg(values=crops)], match)

    none = [[0, 0], [0, 0]]
    yield wrong((3, 3, 4, 1), (2, 2), none, "batch is 3; it must be a multiple of 4")
    yield wrong((4, 2, 2, 1), (2, 2), [[3, 2], [0, 0]], "crops of dimension 1 are 3 and 2; their sum must be at most 4")
    yield wrong((4, 2, 2, 1), (2, 2), [[-1, 0], [0, 0]], "each must be zero or more")


define_op(
    "BatchToSpaceND",
    inputs=["input: T", "block_shape: Tblock_shape", "crops: Tcrops"],
    outputs=["output: T"],
    attrs=["T: type", "Tblock_shape: {int32, int64} = DT_INT32", "Tcrops: {int32, int64} = DT_INT32"],
    doc="Spreads the batch over blocks of the dimensions after the first, then crops them: SpaceToBatchND undone.",
    shape=_from_batch_shape,
    reference=lambda attrs, x, block, crops: _from_batch(x, _integers(block), crops),
    gradient=_undone_gradient,
    shape_inputs=("block_shape", "crops"),
    samples=_from_batch_samples,
    errors=_from_batch_errors,
)


def _square_from_samples() -> Iterator[Sample]:
    for shape, block, crops in _FROM_BATCH:
        if block[0] == block[1]:
            yield Sample([Arg(shape), Arg(values=np.array(crops, np.int64))], {"block_size": block[0]})


_ODD_BATCH = ErrorSample(
    [Arg((3, 2, 2, 1)), Arg(values=[[0, 0], [0, 0]])], "batch is 3; it must be a multiple of 4", {"block_size": 2}
)

define_op(
    "BatchToSpace",
    inputs=["input: T", "crops: Tidx"],
    outputs=["output: T"],
    attrs=["T: type", "block_size: int >= 2", "Tidx: {int32, int64} = DT_INT32"],
    doc="BatchToSpaceND of images, with square blocks.",
    shape=_from_batch_shape,
    reference=lambda attrs, x, crops: _from_batch(x, [attrs["block_size"]] * 2, crops),
    gradient=_undone_gradient,
    shape_inputs=("crops",),
    samples=_square_from_samples,
    errors=lambda: [_ODD_BATCH],
)

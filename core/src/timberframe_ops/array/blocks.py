"""Ops that move blocks of space into depth, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape

Sizes = tuple[int | None, ...]


def depth_layout(data_format: str) -> tuple[int, int, int, int | None]:
    """Places of height, width, depth and of the inner part of a split depth (NCHW_VECT_C) in the shape."""
    return {"NHWC": (1, 2, 3, None), "NCHW": (2, 3, 1, None), "NCHW_VECT_C": (2, 3, 1, 4)}[data_format]


def _image(c: InferenceContext) -> Sizes:
    rank = 5 if c.attrs["data_format"] == "NCHW_VECT_C" else 4
    shape = c.require_rank(0, rank)
    if rank == 5 and shape[4] not in (None, 4):
        raise c.error(f"input has shape {format_shape(shape)}; the last size must be 4 in data_format NCHW_VECT_C")
    return shape


def divided(c: InferenceContext, size: int | None, by: int, what: str) -> int | None:
    if size is not None and size % by:
        raise c.error(f"{what} is {size}; it must be a multiple of {by}")
    return None if size is None else size // by


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _space_to_depth_shape(c: InferenceContext) -> list[Shape]:
    shape, block = list(_image(c)), c.attrs["block_size"]
    height, width, depth, _ = depth_layout(c.attrs["data_format"])
    shape[height] = divided(c, shape[height], block, "height")
    shape[width] = divided(c, shape[width], block, "width")
    shape[depth] = _times(shape[depth], block * block)
    return [tuple(shape)]


def _depth_to_space_shape(c: InferenceContext) -> list[Shape]:
    shape, block = list(_image(c)), c.attrs["block_size"]
    height, width, depth, inner = depth_layout(c.attrs["data_format"])
    vector = 1 if inner is None else 4
    total = divided(c, _times(shape[depth], vector), block * block * vector, "depth")
    shape[depth] = total
    shape[height], shape[width] = _times(shape[height], block), _times(shape[width], block)
    return [tuple(shape)]


def space_to_depth_axes(
    shape: tuple[int, ...], block: int, data_format: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the input's shape with its blocks as dimensions, and the order that brings them into the depth."""
    if data_format == "NHWC":
        n, h, w, d = shape
        return (n, h // block, block, w // block, block, d), (0, 1, 3, 2, 4, 5)
    n, d, h, w = shape[:4]
    split = (n, d, h // block, block, w // block, block, *shape[4:])
    return (split, (0, 3, 5, 1, 2, 4)) if len(shape) == 4 else (split, (0, 3, 5, 1, 2, 4, 6))


def depth_to_space_axes(
    shape: tuple[int, ...], block: int, data_format: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the input's shape with the blocks of its depth as dimensions, and the order
    that brings them into space.
    """
    if data_format == "NHWC":
        n, h, w, d = shape
        return (n, h, w, block, block, d // (block * block)), (0, 1, 3, 2, 4, 5)
    n, d, h, w = shape[:4]
    split = (n, block, block, d // (block * block), h, w, *shape[4:])
    return (split, (0, 3, 4, 1, 5, 2)) if len(shape) == 4 else (split, (0, 3, 4, 1, 5, 2, 6))


def _space_to_depth(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    block, layout = attrs["block_size"], attrs["data_format"]
    split, order = space_to_depth_axes(x.shape, block, layout)
    height, width, depth, _ = depth_layout(layout)
    out = list(x.shape)
    out[height], out[width], out[depth] = (
        x.shape[height] // block,
        x.shape[width] // block,
        x.shape[depth] * block * block,
    )
    return x.reshape(split).transpose(order).reshape(out)


def _depth_to_space(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    block, layout = attrs["block_size"], attrs["data_format"]
    split, order = depth_to_space_axes(x.shape, block, layout)
    height, width, depth, _ = depth_layout(layout)
    out = list(x.shape)
    out[height], out[width], out[depth] = (
        x.shape[height] * block,
        x.shape[width] * block,
        x.shape[depth] // (block * block),
    )
    return x.reshape(split).transpose(order).reshape(out)


_BLOCK_ATTRS = ["T: type", "block_size: int >= 2", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"]


def _space_samples() -> Iterator[Sample]:
    for n, h, w, d, block in (
        (1, 2, 2, 1, 2),
        (2, 4, 6, 3, 2),
        (1, 6, 9, 5, 3),
        (0, 4, 4, 2, 2),
        (3, 5, 5, 1, 5),
        (2, 64, 66, 4, 2),
    ):
        yield Sample([Arg((n, h, w, d))], {"block_size": block})
        yield Sample([Arg((n, d, h, w))], {"block_size": block, "data_format": "NCHW"})


def _space_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((1, 3, 4, 1))], "height is 3; it must be a multiple of 2", {"block_size": 2})
    yield ErrorSample([Arg((1, 4, 5, 1))], "width is 5; it must be a multiple of 2", {"block_size": 2})
    yield ErrorSample([Arg((4, 4, 1))], r"input 0 has shape \(4, 4, 1\); it must have rank 4", {"block_size": 2})


def _undone_gradient(op: Any, grad: Any) -> list[Any]:
    inverse = "DepthToSpace" if op.type == "SpaceToDepth" else "SpaceToDepth"
    return [apply_op(inverse, [grad], {k: op.attrs[k] for k in ("block_size", "data_format")})]


define_op(
    "SpaceToDepth",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=_BLOCK_ATTRS,
    doc="Moves each block of block_size x block_size pixels into the depth of one pixel.",
    shape=_space_to_depth_shape,
    reference=_space_to_depth,
    gradient=_undone_gradient,
    samples=_space_samples,
    errors=_space_errors,
)


def _depth_samples() -> Iterator[Sample]:
    for n, h, w, d, block in (
        (1, 1, 1, 4, 2),
        (2, 3, 5, 12, 2),
        (1, 2, 3, 9, 3),
        (0, 4, 4, 4, 2),
        (3, 1, 1, 25, 5),
        (2, 32, 33, 16, 2),
    ):
        yield Sample([Arg((n, h, w, d))], {"block_size": block})
        yield Sample([Arg((n, d, h, w))], {"block_size": block, "data_format": "NCHW"})


def _depth_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((1, 2, 2, 6))], "depth is 6; it must be a multiple of 4", {"block_size": 2})
    yield ErrorSample([Arg((4, 4, 4))], r"input 0 has shape \(4, 4, 4\); it must have rank 4", {"block_size": 2})


define_op(
    "DepthToSpace",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=_BLOCK_ATTRS,
    doc="Spreads the depth of each pixel over a block of block_size x block_size pixels.",
    shape=_depth_to_space_shape,
    reference=_depth_to_space,
    gradient=_undone_gradient,
    samples=_depth_samples,
    errors=_depth_errors,
)

"""Parts of images: boxes drawn into them, and windows cut out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, compatible, format_shape

_DRAWN = NotDifferentiable("TensorFlow gives drawn boxes no gradient either")
_DRAWN_IN_COLORS = MissingGradient("TensorFlow has none of drawn boxes either")

PALETTE = np.array(
    [
        (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
        (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
    ],
    np.float32,
)  # fmt: skip
"""The colours of boxes, in rotation, as red, green, blue and alpha."""

NOISE = "a window leaves its image, and noise is '{0}'; outside of images only 'zero' is offered"
"""What is wrong about a glimpse, for all devices."""


@late_errors
def _drawn_shape(c: InferenceContext) -> list[Shape]:
    images, boxes = c.require_rank(0, 4), c.require_rank(1, 3)
    if images[3] not in (None, 1, 3, 4):
        raise c.late_error(f"images has {images[3]} channels; it must have 1, 3 or 4")
    if boxes[2] not in (None, 4):
        raise c.late_error(f"boxes has shape {format_shape(boxes)}; its last size must be 4")
    if None not in (images[0], boxes[0]) and images[0] != boxes[0]:
        raise c.late_error(f"there are {images[0]} images and boxes for {boxes[0]}; they must be equally many")
    if len(c.shapes) == 3:
        channels = c.require_rank(2, 2)[1]
        if channels is not None and images[3] is not None and channels < images[3]:
            raise c.error(f"colors has {channels} channels and images {images[3]}; it must have at least as many")
    return [images]


def _draw(image: np.ndarray, box: np.ndarray, color: np.ndarray) -> None:
    """Draws the outline of one box, as far as it lies within the image."""
    height, width = image.shape[:2]
    top, bottom = (int(np.float32(v) * np.float32(height - 1)) for v in (box[0], box[2]))
    left, right = (int(np.float32(v) * np.float32(width - 1)) for v in (box[1], box[3]))
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), min(bottom, height - 1) + 1), slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color


def _drawn(attrs: Attrs, images: np.ndarray, boxes: np.ndarray, *colors: np.ndarray) -> np.ndarray:
    result = np.array(images)
    depth = images.shape[3]
    palette = colors[0].copy() if colors and colors[0].size else PALETTE.copy()
    if depth == 1:
        palette[:, 0] = 1
    for image, own in zip(result, boxes, strict=True):
        for number, box in enumerate(own):
            _draw(image, box, palette[number % len(palette), :depth].astype(images.dtype))
    return result


def _drawn_samples(colors: bool) -> Iterator[Sample]:
    boxes = np.array([[[0.1, 0.2, 0.9, 0.8], [0, 0, 1, 1], [-0.5, 0.5, 0.5, 1.5], [0.6, 0.1, 0.2, 0.9]]], np.float32)
    more = [Arg(values=PALETTE[:2, ::-1].copy())] if colors else []
    for channels in (1, 3, 4):
        yield Sample([Arg((1, 7, 9, channels)), Arg(values=boxes), *more])
    yield Sample([Arg((2, 4, 4, 3)), Arg(values=np.zeros((2, 0, 4), np.float32)), *more])


def _drawn_errors(colors: bool) -> Iterator[ErrorSample]:
    more = [Arg(values=PALETTE)] if colors else []
    for images, boxes, match in (
        ((1, 4, 4, 2), (1, 1, 4), "images has 2 channels"),
        ((1, 4, 4, 3), (1, 1, 3), "its last size must be 4"),
        ((2, 4, 4, 3), (1, 1, 4), "there are 2 images and boxes for 1"),
    ):
        yield ErrorSample([Arg(images), Arg(values=np.zeros(boxes, np.float32)), *more], match)
    for shape, match in (
        (((4,), "it must have rank 2"), ((2, 2), "colors has 2 channels and images 3")) if colors else ()
    ):
        yield ErrorSample([Arg((1, 4, 4, 3)), Arg(values=np.zeros((1, 1, 4), np.float32)), Arg(shape)], match)


for _version, _colors in (("", False), ("V2", True)):
    define_op(
        f"DrawBoundingBoxes{_version}",
        inputs=["images: T", "boxes: float", *(["colors: float"] if _colors else [])],
        outputs=["output: T"],
        attrs=["T: {float, half} = DT_FLOAT"],
        doc="Images with the outlines of boxes, given as top, left, bottom and right in parts of the image's size.",
        shape=_drawn_shape,
        reference=_drawn,
        gradient=_DRAWN_IN_COLORS if _colors else _DRAWN,
        samples=lambda colors=_colors: _drawn_samples(colors),
        errors=lambda colors=_colors: _drawn_errors(colors),
    )


def _glimpse_shape(c: InferenceContext) -> list[Shape]:
    images, offsets = c.require_rank(0, 4), c.require_rank(2, 2)
    if offsets[1] not in (None, 2):
        raise c.late_error(f"offsets has shape {format_shape(offsets)}; its rows must have 2 elements")
    if not compatible(images[:1], offsets[:1]):
        raise c.late_error(f"there are {images[0]} images and {offsets[0]} offsets; they must be equally many")
    size = c.shape_value(1)
    found: Any = (None, None) if size is None else size
    if len(found) != 2 or any(d is not None and d <= 0 for d in found):
        raise c.late_error(f"size is {list(found)}; it must have two positive elements, height and width")
    return [(images[0], *found, images[3])]


def _window(offset: Any, size: int, wanted: int, attrs: Attrs) -> int:
    """Returns where a window begins, along one dimension."""
    at = np.float32(offset)
    if attrs["normalized"]:
        at = at * np.float32(size)
    if attrs["centered"]:
        at = at / np.float32(2) + np.float32(size) / np.float32(2) - np.float32(wanted) / np.float32(2)
    return int(at)


def _glimpse(attrs: Attrs, images: np.ndarray, size: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    height, width = (int(n) for n in size)
    result = np.zeros((images.shape[0], height, width, images.shape[3]), images.dtype)
    for target, image, offset in zip(result, images, offsets, strict=True):
        starts = [_window(offset[i], image.shape[i], n, attrs) for i, n in enumerate((height, width))]
        spans = [
            (max(start, 0), min(start + n, limit))
            for start, n, limit in zip(starts, (height, width), image.shape, strict=False)
        ]
        if attrs["noise"] != "zero" and any(
            high - low < n for (low, high), n in zip(spans, (height, width), strict=True)
        ):
            raise UnimplementedError(f"ExtractGlimpse: {NOISE.format(attrs['noise'])}")
        if all(low < high for low, high in spans):
            (top, bottom), (left, right) = spans
            target[top - starts[0] : bottom - starts[0], left - starts[1] : right - starts[1]] = image[
                top:bottom, left:right
            ]
    return result


def _glimpse_samples() -> Iterator[Sample]:
    offsets = np.array([[0.0, 0.0], [0.25, -0.5]], np.float32)
    size = Arg(values=np.array((2, 3), np.int32))
    for attrs in ({}, {"centered": False}, {"normalized": False}, {"centered": False, "normalized": False}):
        yield Sample([Arg((2, 6, 7, 2)), size, Arg(values=offsets)], {**attrs, "noise": "zero"})
    yield Sample([Arg((2, 3, 3, 1)), size, Arg(values=offsets + 0.75)], {"noise": "zero"})


for _version in ("", "V2"):
    define_op(
        f"ExtractGlimpse{_version}",
        inputs=["input: float", "size: int32", "offsets: float"],
        outputs=["glimpse: float"],
        attrs=[
            "centered: bool = true",
            "normalized: bool = true",
            "uniform_noise: bool = true",
            "noise: string = 'uniform'",
        ],
        doc="A window of each image at its offset (row, column): normalized to the image's size or in pixels, from the "
        "centre or the corner. What lies outside of the image is zero or noise, by `noise`.",
        shape=_glimpse_shape,
        reference=_glimpse,
        gradient=NotDifferentiable("TensorFlow gives windows of images no gradient either")
        if not _version
        else MissingGradient("TensorFlow has none of windows of images by this version either"),
        shape_inputs=("size",),
        samples=_glimpse_samples,
        errors=lambda: [
            ErrorSample([Arg((2, 3)), Arg(values=np.array((2, 3), np.int32)), Arg((2, 2))], "it must have rank 4"),
            ErrorSample(
                [Arg((1, 4, 4, 1)), Arg(values=np.array((2, 3), np.int32)), Arg((2, 2))],
                "there are 1 images and 2 offs",
            ),
        ],
    )

"""CropAndResize, boxes cut out of images and brought to one size, with its two gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe_core.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape

_IMAGES = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}"
_FLOATS = ("float16", "float32", "float64")

NOT_FINITE = "box {0} has an element that is not finite; elements of boxes must be finite"
OUTSIDE = "box_ind[{0}] is {1}; it must lie in [0, {2})"


class _Positions(NamedTuple):
    """Where the pixels of each crop lie along one dimension: [boxes, pixels].

    inside: whether they lie within the image. Each is `part` of the way from pixel `low` to pixel `high`.
    """

    inside: np.ndarray
    low: np.ndarray
    high: np.ndarray
    part: np.ndarray


def _positions(first: np.ndarray, last: np.ndarray, size: int, wanted: int, kind: Any) -> _Positions:
    """In float32 and in TensorFlow's order, so that the same pixels are chosen."""
    limit = np.float32(size - 1)
    if wanted > 1:
        step = (last - first) * limit / np.float32(wanted - 1)
        at = (first * limit)[:, None] + np.arange(wanted, dtype=np.float32) * step[:, None]
    else:
        at = (0.5 * (first + last).astype(np.float64) * limit).astype(np.float32)[:, None]
    inside = (at >= 0) & (at <= size - 1)
    at = np.where(inside, at, 0)
    low = np.floor(at)
    return _Positions(inside, low.astype(np.int64), np.ceil(at).astype(np.int64), (at - low).astype(kind))


def _checked(boxes: np.ndarray, box_ind: np.ndarray, batch: int) -> None:
    infinite = ~np.isfinite(boxes).all(axis=1)
    if infinite.any():
        raise InvalidArgumentError(NOT_FINITE.format(int(np.argmax(infinite))))
    outside = (box_ind < 0) | (box_ind >= batch)
    if outside.any():
        at = int(np.argmax(outside))
        raise OutOfRangeError(OUTSIDE.format(at, int(box_ind[at]), batch))


def _both(boxes: np.ndarray, image: Sequence[int], crop: Sequence[int], kind: Any) -> tuple[_Positions, _Positions]:
    """Returns positions of rows and of columns, their parts in the dtype `kind`. image, crop: height and width."""
    sides = boxes.astype(np.float32)
    y, x = (_positions(sides[:, i], sides[:, i + 2], image[i], crop[i], kind) for i in (0, 1))
    return y, x


def _nearest(p: _Positions) -> np.ndarray:
    """Returns the pixel that a position is nearest to, the upper one half-way."""
    return np.where(p.part >= 0.5, p.high, p.low)


def _corners(y: _Positions, x: _Positions) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Row, column and weight of the four pixels around each position: [boxes, height, width]."""
    for row, down in ((y.low, 1 - y.part), (y.high, y.part)):
        for column, across in ((x.low, 1 - x.part), (x.high, x.part)):
            yield row[:, :, None], column[:, None, :], down[:, :, None] * across[:, None, :]


def _crop(attrs: Attrs, image: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray, crop_size: Any) -> np.ndarray:
    _checked(boxes, box_ind, len(image))
    y, x = _both(boxes, image.shape[1:3], [int(n) for n in crop_size], boxes.dtype)
    which, wide = box_ind[:, None, None], image.astype(boxes.dtype)
    if attrs["method"] == "nearest":
        crops = wide[which, _nearest(y)[:, :, None], _nearest(x)[:, None, :]]
    else:
        a, b, c, d = (wide[which, row, column] for row, column, _ in _corners(y, x))
        across, down = x.part[:, None, :, None], y.part[:, :, None, None]
        top, bottom = a + (b - a) * across, c + (d - c) * across
        crops = top + (bottom - top) * down
    inside = y.inside[:, :, None] & x.inside[:, None, :]
    return np.where(inside[..., None], crops, np.asarray(attrs["extrapolation_value"], boxes.dtype))


def _image_gradient(
    attrs: Attrs, grads: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray, image_size: Any
) -> np.ndarray:
    size = [int(n) for n in image_size]
    _checked(boxes, box_ind, size[0])
    kind = np.result_type(grads.dtype, attrs["T"].numpy)
    result = np.zeros(size, kind)
    y, x = _both(boxes, size[1:3], grads.shape[1:3], kind)
    inside = (y.inside[:, :, None] & x.inside[:, None, :])[..., None]
    which = np.broadcast_to(box_ind[:, None, None], grads.shape[:3])
    if attrs["method"] == "nearest":
        np.add.at(result, (which, _nearest(y)[:, :, None], _nearest(x)[:, None, :]), np.where(inside, grads, 0))
        return result
    for row, column, weight in _corners(y, x):
        np.add.at(result, (which, row, column), np.where(inside, grads * weight[..., None], 0))
    return result


def _box_gradient(
    attrs: Attrs, grads: np.ndarray, image: np.ndarray, boxes: np.ndarray, box_ind: np.ndarray
) -> np.ndarray:
    _checked(boxes, box_ind, len(image))
    y, x = _both(boxes, image.shape[1:3], grads.shape[1:3], boxes.dtype)
    which, wide = box_ind[:, None, None], image.astype(boxes.dtype)
    a, b, c, d = (wide[which, row, column] for row, column, _ in _corners(y, x))
    across, down = x.part[:, None, :, None], y.part[:, :, None, None]
    inside = (y.inside[:, :, None] & x.inside[:, None, :])[..., None]
    weighted = np.where(inside, grads, 0)
    slopes = (
        ((1 - across) * (c - a) + across * (d - b)) * weighted,
        ((1 - down) * (b - a) + down * (d - c)) * weighted,
    )
    result = np.zeros_like(boxes)
    for i, slope in enumerate(slopes):
        limit, wanted = image.shape[1 + i] - 1, grads.shape[1 + i]
        by_pixel = slope.sum(axis=(2 - i, 3))  # [boxes, pixels of this dimension]
        if wanted > 1:
            share = np.arange(wanted, dtype=boxes.dtype) * (np.asarray(limit, boxes.dtype) / (wanted - 1))
            result[:, i], result[:, i + 2] = (by_pixel * (limit - share)).sum(1), (by_pixel * share).sum(1)
        else:
            result[:, i] = result[:, i + 2] = by_pixel[:, 0] * 0.5 * limit
    return result


# Shapes


def _boxes(c: InferenceContext, boxes: int, box_ind: int) -> int | None:
    """Returns the number of boxes."""
    count, sides = c.require_rank(boxes, 2)
    (indices,) = c.require_rank(box_ind, 1)
    if sides not in (None, 4):
        raise c.error(f"boxes has shape {format_shape((count, sides))}; its rows must have 4 elements")
    if None not in (count, indices) and count != indices:
        raise c.error(f"there are {count} boxes and box_ind has {indices} elements; they must be equally many")
    return indices if count is None else count


def _positive(c: InferenceContext, sizes: Sequence[int | None], what: str) -> None:
    if any(d is not None and d <= 0 for d in sizes):
        raise c.late_error(f"{what} is {format_shape(tuple(sizes))}; height and width must be positive")


def _crop_shape(c: InferenceContext) -> list[Shape]:
    image, count = c.require_rank(0, 4), _boxes(c, 1, 2)
    wanted = c.shape_value(3)
    size = (None, None) if wanted is None else wanted
    if len(size) != 2:
        raise c.error(f"crop_size has {len(size)} elements; it must have 2, height and width")
    _positive(c, size, "crop_size")
    _positive(c, image[1:3], "the images' size")
    return [(count, *size, image[3])]


def _agree(c: InferenceContext, grads: Sequence[int | None], count: int | None, depth: int | None) -> None:
    if None not in (grads[0], count) and grads[0] != count:
        raise c.late_error(
            f"grads has shape {format_shape(tuple(grads))} for {count} boxes; its first size must be that"
        )
    if None not in (grads[3], depth) and grads[3] != depth:
        raise c.late_error(f"grads has {grads[3]} channels and the image {depth}; they must be equally many")
    _positive(c, grads[1:3], "the size of grads")


def _image_gradient_shape(c: InferenceContext) -> list[Shape]:
    grads, count = c.require_rank(0, 4), _boxes(c, 1, 2)
    wanted = c.shape_value(3)
    size = (None,) * 4 if wanted is None else wanted
    if len(size) != 4:
        raise c.error(f"image_size has {len(size)} elements; it must have 4")
    _agree(c, grads, count, size[3])
    _positive(c, size[1:3], "the images' size")
    return [tuple(size)]


def _box_gradient_shape(c: InferenceContext) -> list[Shape]:
    grads, image, count = c.require_rank(0, 4), c.require_rank(1, 4), _boxes(c, 2, 3)
    _agree(c, grads, count, image[3])
    _positive(c, image[1:3], "the images' size")
    return [(count, 4)]


# Gradients


def _crop_gradient(op: Any, grad: Any) -> list[Any]:
    """With method nearest the boxes get the gradient of bilinear crops, as in TensorFlow."""
    image, boxes, box_ind, _ = op.inputs
    to_image = None
    if image.dtype.name in _FLOATS:
        attrs = {"T": image.dtype, "method": op.attrs["method"]}
        to_image = apply_op("CropAndResizeGradImage", [grad, boxes, box_ind, shape_of(image)], attrs)
    return [to_image, apply_op("CropAndResizeGradBoxes", [grad, image, boxes, box_ind]), None, None]


def _image_gradient_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient, which is linear in grads, the crops of `grad` being what it is the transpose of."""
    grads, boxes, box_ind, _ = op.inputs
    size = apply_op("StridedSlice", [shape_of(grads), [1], [3], [1]])
    to_grads = apply_op("CropAndResize", [grad, boxes, box_ind, size], {"method": op.attrs["method"]})
    return [to_grads, apply_op("CropAndResizeGradBoxes", [grads, grad, boxes, box_ind]), None, None]


def _no_second_gradient(op: Any, grad: Any) -> list[Any]:
    raise UnimplementedError(
        f"CropAndResizeGradBoxes '{op.name}': it has no gradient, as in TensorFlow; stop the gradient at the boxes",
        op.name,
    )


# Accuracy, samples and definitions

_SOURCE = (
    "a position is off by some roundings of the image's size, and a value by that part of two neighbours' difference"
)


def _crop_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    image = inputs[0]
    largest = float(np.abs(image).max(initial=0))
    return np.full(expected.shape, 8 * u * (sum(image.shape[1:3]) + 1) * largest)


def _image_gradient_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    total = float(np.abs(inputs[0]).sum())
    return np.full(expected.shape, 8 * u * (sum(expected.shape[1:3]) + inputs[0][..., 0].size) * total)


def _box_gradient_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    grads, image = inputs[:2]
    total, largest = float(np.abs(grads).sum()), float(np.abs(image).max(initial=0))
    return np.full(
        expected.shape, 8 * u * (sum(image.shape[1:3]) + grads.size) * max(image.shape[1:3]) * total * largest
    )


_BOXES = np.array(
    [[0.07, 0.11, 0.86, 0.79], [0.81, 0.9, 0.15, 0.12], [-0.33, 0.21, 0.71, 1.43], [1.2, 1.3, 1.9, 1.8]], np.float32
)
"""Within the image, reversed, partly and entirely outside. No position is near a pixel, where slopes jump."""
_WHICH = np.array([1, 0, 1, 0], np.int32)
_METHODS = ("bilinear", "nearest")


def _crop_samples() -> Iterator[Sample]:
    boxes, which = Arg(values=_BOXES, fixed=True), Arg(values=_WHICH)
    for method in _METHODS:
        for size, channels in (((3, 4), 3), ((1, 2), 1), ((7, 1), 2), ((1, 1), 17)):
            inputs = [Arg((2, 5, 4, channels), special=False), boxes, which, Arg(values=np.array(size, np.int32))]
            yield Sample(inputs, {"method": method, "extrapolation_value": 0.5})
    none = [Arg(values=np.zeros((0, 4), np.float32)), Arg(values=np.zeros(0, np.int32))]
    yield Sample([Arg((1, 1, 1, 2), special=False), *none, Arg(values=np.array((2, 2), np.int32))])


def _image_gradient_samples() -> Iterator[Sample]:
    boxes, which = Arg(values=_BOXES, fixed=True), Arg(values=_WHICH)
    for method in _METHODS:
        for size, channels in (((3, 4), 3), ((1, 2), 1), ((7, 1), 2)):
            image = Arg(values=np.array((2, 5, 4, channels), np.int32))
            yield Sample([Arg((4, *size, channels), special=False), boxes, which, image], {"method": method})


def _box_gradient_samples() -> Iterator[Sample]:
    boxes, which = Arg(values=_BOXES, fixed=True), Arg(values=_WHICH)
    for size, channels in (((3, 4), 3), ((1, 2), 1), ((7, 1), 2)):
        yield Sample([Arg((4, *size, channels), special=False), Arg((2, 5, 4, channels), special=False), boxes, which])


_ONE = np.array([[0.1, 0.1, 0.9, 0.9]], np.float32)
_TWO = np.repeat(_ONE, 2, 0)
_WRONG = (
    (
        np.array([[0.1, 0.1, 0.9, 0.9], [0.1, np.nan, 0.9, 0.9]], np.float32),
        (0, 0),
        "box 1 has an element that is not finite",
        "InvalidArgument",
    ),
    (
        np.array([[0.1, np.inf, 0.9, 0.9]], np.float32),
        (0,),
        "box 0 has an element that is not finite",
        "InvalidArgument",
    ),
    (_TWO, (0, 2), r"box_ind\[1\] is 2; it must lie in \[0, 2\)", "OutOfRange"),
    (_ONE, (-1,), r"box_ind\[0\] is -1; it must lie in \[0, 2\)", "OutOfRange"),
    (_ONE, (0, 1), "there are 1 boxes and box_ind has 2 elements", "InvalidArgument"),
    (_ONE[:, :3], (0,), r"boxes has shape \(1, 3\); its rows must have 4 elements", "InvalidArgument"),
)


def _wrong_boxes() -> Iterator[tuple[list[Arg], str, str]]:
    for boxes, which, match, error in _WRONG:
        yield [Arg(values=boxes), Arg(values=np.array(which, np.int32))], match, f"{error}Error"


def _crop_errors() -> Iterator[ErrorSample]:
    image, size = Arg((2, 3, 3, 1)), Arg(values=np.array((2, 2), np.int32))
    for boxes, match, error in _wrong_boxes():
        yield ErrorSample([image, *boxes, size], match, error=error)
    good = [Arg(values=_ONE), Arg(values=np.array([0], np.int32))]
    for sizes, match in (
        ((0, 2), r"crop_size is \(0, 2\); height and width must be"),
        ((1, 2, 3), "crop_size has 3 elem"),
    ):
        yield ErrorSample([image, *good, Arg(values=np.array(sizes, np.int32))], match)
    yield ErrorSample([Arg((2, 0, 3, 1)), *good, size], r"the images' size is \(0, 3\)")
    yield ErrorSample([Arg((3, 3, 1)), *good, size], "it must have rank 4")


def _image_gradient_errors() -> Iterator[ErrorSample]:
    grads, size = Arg((1, 2, 2, 1)), Arg(values=np.array((2, 3, 3, 1), np.int32))
    for boxes, match, error in _wrong_boxes():
        yield ErrorSample([Arg((len(boxes[0].values), 2, 2, 1)), *boxes, size], match, error=error)
    good = [Arg(values=_ONE), Arg(values=np.array([0], np.int32))]
    yield ErrorSample(
        [grads, *good, Arg(values=np.array((2, 3, 3, 2), np.int32))], "grads has 1 channels and the image 2"
    )
    yield ErrorSample([Arg((2, 2, 2, 1)), *good, size], r"grads has shape \(2, 2, 2, 1\) for 1 boxes")
    yield ErrorSample([grads, *good, Arg(values=np.array((2, 3), np.int32))], "image_size has 2 elements")


def _box_gradient_errors() -> Iterator[ErrorSample]:
    image = Arg((2, 3, 3, 1))
    for boxes, match, error in _wrong_boxes():
        yield ErrorSample([Arg((len(boxes[0].values), 2, 2, 1)), image, *boxes], match, error=error)


_METHOD = "method: {'bilinear', 'nearest'} = 'bilinear'"

define_op(
    "CropAndResize",
    inputs=["image: T", "boxes: float", "box_ind: int32", "crop_size: int32"],
    outputs=["crops: float"],
    attrs=[_IMAGES, _METHOD, "extrapolation_value: float = 0.0"],
    doc="Boxes (top, left, bottom and right, in parts of the image's size; a reversed one flips) cut out of the images "
    "with the numbers box_ind and brought to crop_size. Outside of an image lies extrapolation_value.",
    shape=_crop_shape,
    reference=_crop,
    gradient=_crop_gradient,
    gradient_notes=("partly_refused",),
    constant_inputs=("boxes",),  # of method nearest the gradient is that of bilinear crops, as in TensorFlow
    accuracy=Bound(_crop_error, _SOURCE),
    shape_inputs=("crop_size",),
    samples=_crop_samples,
    errors=_crop_errors,
)

define_op(
    "CropAndResizeGradImage",
    inputs=["grads: float", "boxes: float", "box_ind: int32", "image_size: int32"],
    outputs=["output: T"],
    attrs=["T: {float, half, double}", _METHOD],
    doc="The gradient of CropAndResize for its images, which have the shape image_size.",
    shape=_image_gradient_shape,
    reference=_image_gradient,
    gradient=_image_gradient_gradient,
    gradient_notes=("partly_refused",),
    constant_inputs=("boxes",),
    accuracy=Bound(_image_gradient_error, _SOURCE),
    shape_inputs=("image_size",),
    samples=_image_gradient_samples,
    errors=_image_gradient_errors,
)

define_op(
    "CropAndResizeGradBoxes",
    inputs=["grads: float", "image: T", "boxes: float", "box_ind: int32"],
    outputs=["output: float"],
    attrs=[_IMAGES, "method: {'bilinear'} = 'bilinear'"],
    doc="The gradient of bilinear CropAndResize for its boxes.",
    shape=_box_gradient_shape,
    reference=_box_gradient,
    gradient=_no_second_gradient,
    gradient_notes=("partly_refused",),
    accuracy=Bound(_box_gradient_error, _SOURCE),
    samples=_box_gradient_samples,
    errors=_box_gradient_errors,
)

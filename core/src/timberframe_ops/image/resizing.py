"""Images brought to another size, and the gradients of that.

Output position i lies at i * scale of the input, scale being input size / output size; with align_corners at
i (input size - 1) / (output size - 1), so that the corner pixels fall on each other; with half_pixel_centers at
(i + 0.5) * scale - 0.5, since pixels are taken as squares. Positions are computed in float32, as TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import EXACT, Accumulation, Bound
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.nn.windows import widen

_FLAGS = ("align_corners: bool = false", "half_pixel_centers: bool = false")


def _check_flags(c: InferenceContext) -> None:
    if c.attrs["align_corners"] and c.attrs["half_pixel_centers"]:
        raise c.late_error("align_corners and half_pixel_centers are both true; at most one may be")


def _described_size(c: InferenceContext) -> tuple[int | None, int | None]:
    """Height and width that input 1 holds."""
    (length,) = c.require_rank(1, 1)
    if length not in (None, 2):
        raise c.error(f"size has {length} values; it must have 2")
    sizes = c.shape_value(1)
    height, width = (None, None) if sizes is None else sizes
    value = c.value(1)
    if value is not None and value.min(initial=1) <= 0:
        raise c.late_error(f"size is {value.tolist()}; its values must be positive")
    return height, width


def _check_image(c: InferenceContext, shape: Sequence[int | None]) -> None:
    if 0 in shape[1:3]:
        raise c.late_error(f"image has shape {format_shape(tuple(shape))}; height and width must be positive")


def _resized_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_flags(c)
    batch, height, width, channels = c.require_rank(0, 4)
    _check_image(c, (batch, height, width, channels))
    return [(batch, *_described_size(c), channels)]


@late_errors
def _bilinear_grad_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_flags(c)
    grads, image = c.require_rank(0, 4), c.require_rank(1, 4)
    _check_image(c, grads)
    _check_image(c, image)
    return [(grads[0], image[1], image[2], grads[3])]


def _scale(attrs: Attrs, size: int, resized: int) -> np.float32:
    if attrs["align_corners"] and resized > 1:
        return np.float32(size - 1) / np.float32(resized - 1)
    return np.float32(size) / np.float32(resized)


def neighbours(attrs: Attrs, size: int, resized: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each position the pixels before and after it, and its distance from the one before."""
    i, scale = np.arange(resized, dtype=np.float32), _scale(attrs, size, resized)
    half = np.float32(0.5)
    at = (i + half) * scale - half if attrs["half_pixel_centers"] else i * scale
    floor = np.floor(at)
    before = np.maximum(floor, 0).astype(np.int64)
    after = np.minimum(np.ceil(at).astype(np.int64), size - 1)
    return np.minimum(before, after), np.maximum(after, 0), (at - floor).astype(np.float64)


def nearest(attrs: Attrs, size: int, resized: int) -> np.ndarray:
    """For each position the pixel that it takes."""
    i, scale = np.arange(resized, dtype=np.float32), _scale(attrs, size, resized)
    at = (i + np.float32(0.5)) * scale if attrs["half_pixel_centers"] else i * scale
    chosen = np.trunc(at + np.copysign(np.float32(0.5), at)) if attrs["align_corners"] else np.floor(at)
    return np.asarray(np.clip(chosen.astype(np.int64), 0, size - 1))


def _corners(attrs: Attrs, images: np.ndarray, size: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Returns the four pixels around each position, from the top left one by rows, and the
    position's part of the way.
    """
    top, bottom, down = neighbours(attrs, images.shape[1], int(size[0]))
    left, right, across = neighbours(attrs, images.shape[2], int(size[1]))
    corners = [images[:, y][:, :, x] for y in (top, bottom) for x in (left, right)]
    return corners, down[:, None, None], across[:, None]


def _bilinear(attrs: Attrs, images: np.ndarray, size: np.ndarray) -> np.ndarray:
    (a, b, c, d), down, across = _corners(attrs, images.astype(np.float64), size)
    upper, lower = a + (b - a) * across, c + (d - c) * across
    return np.asarray(upper + (lower - upper) * down, images.dtype if images.dtype == np.float64 else np.float32)


def _bilinear_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    """Returns the bound: the four pixels are rounded once, and take part in at most seven roundings."""
    corners, _, _ = _corners(attrs, np.abs(inputs[0].astype(np.float64)), inputs[1])
    return np.asarray(8 * u * sum(corners))


def _add_pixels(images: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """Adds values [N, rows, columns, C] to the pixels of images that rows and columns name, each as often as named."""
    index: Any = (slice(None), rows[:, None], columns[None, :])
    np.add.at(images, index, values)


def _bilinear_grad(attrs: Attrs, grads: np.ndarray, original_image: np.ndarray) -> np.ndarray:
    _, height, width, _ = original_image.shape
    top, bottom, down = neighbours(attrs, height, grads.shape[1])
    left, right, across = neighbours(attrs, width, grads.shape[2])
    result = np.zeros((grads.shape[0], height, width, grads.shape[3]))
    for rows, share in ((top, 1 - down), (bottom, down)):
        for columns, part in ((left, 1 - across), (right, across)):
            weighted = grads * share[:, None, None] * part[:, None]
            _add_pixels(result, rows, columns, weighted)
    return result.astype(original_image.dtype)


def _nearest_reference(attrs: Attrs, images: np.ndarray, size: np.ndarray) -> np.ndarray:
    rows = nearest(attrs, images.shape[1], int(size[0]))
    columns = nearest(attrs, images.shape[2], int(size[1]))
    return np.ascontiguousarray(images[:, rows][:, :, columns])


def _nearest_grad(attrs: Attrs, grads: np.ndarray, size: np.ndarray) -> np.ndarray:
    rows = nearest(attrs, int(size[0]), grads.shape[1])
    columns = nearest(attrs, int(size[1]), grads.shape[2])
    wide = widen(grads)
    result = np.zeros((grads.shape[0], int(size[0]), int(size[1]), grads.shape[3]), wide.dtype)
    _add_pixels(result, rows, columns, wide)
    return result.astype(grads.dtype)


def _grad_terms(attrs: Attrs, grads: np.ndarray, size: Any) -> int:
    """Returns positions that may touch one pixel, and the roundings of their weights."""
    rows, columns = (3 * (-(-a // int(b)) + 1) for a, b in zip(grads.shape[1:3], size, strict=True))
    return int(rows) * int(columns) + 4


def _bilinear_grad_terms(attrs: Attrs, grads: np.ndarray, original_image: np.ndarray) -> int:
    return _grad_terms(attrs, grads, original_image.shape[1:3])


# (image, size): larger, smaller, one pixel, primes, the same, one dimension only
_RESIZES = (
    ((1, 3, 4, 2), (7, 9)),
    ((2, 9, 11, 3), (4, 5)),
    ((1, 1, 1, 5), (3, 2)),
    ((1, 5, 7, 1), (1, 1)),
    ((2, 4, 4, 17), (4, 4)),
    ((1, 2, 5, 3), (2, 13)),
    ((0, 3, 4, 2), (2, 2)),
    ((1, 1, 3, 1), (1, 70001)),
)


_HALVES = (((1, 3, 4, 2), (6, 8)), ((2, 4, 6, 5), (2, 3)), ((1, 2, 5, 17), (4, 5)))
_FLAGS_SET: tuple[dict[str, bool], ...] = ({}, {"align_corners": True}, {"half_pixel_centers": True})


def _cases() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], dict[str, bool]]]:
    """Yields images, sizes and attrs: each way to count positions with some of the sizes, with
    the first two all of them.
    """
    for number, (image, size) in enumerate(_RESIZES):
        for way, attrs in enumerate(_FLAGS_SET):
            if number < 2 or way == number % 3:
                yield image, size, attrs


def _bilinear_cases() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], dict[str, bool], dict[str, tuple[str, ...]]]]:
    """Yields images, sizes, attrs and types.

    The gradient's products are rounded to float32 even where they are added in float64. So float64 is tried at sizes
    where all parts are halves and products exact.
    """
    yield from ((image, size, {}, {}) for image, size in _HALVES)
    names = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64")
    narrow: dict[str, tuple[str, ...]] = {"T": names}
    yield from ((image, size, attrs, narrow) for image, size, attrs in _cases())


def _bilinear_samples() -> Iterator[Sample]:
    for image, size, attrs, types in _bilinear_cases():
        yield Sample((Arg(image, special=False), Arg(values=size, dtype="int32")), attrs, types)


def _bilinear_grad_samples() -> Iterator[Sample]:
    for image, size, attrs, types in _bilinear_cases():
        grads = (image[0], *size, image[3])
        yield Sample((Arg(grads, special=False), Arg(image, special=False)), attrs, types)


def _nearest_samples() -> Iterator[Sample]:
    for image, size, attrs in _cases():
        yield Sample((Arg(image, special=False), Arg(values=size, dtype="int32")), attrs)


def _nearest_grad_samples() -> Iterator[Sample]:
    for image, size, attrs in _cases():
        grads = (image[0], *size, image[3])
        yield Sample((Arg(grads, special=False), Arg(values=image[1:3], dtype="int32")), attrs)


_BOTH = {"align_corners": True, "half_pixel_centers": True}


def _errors() -> Iterator[ErrorSample]:
    x, size = Arg((1, 2, 2, 1)), Arg(values=(3, 3), dtype="int32")
    yield ErrorSample((Arg((2, 2, 1)), size), "must have rank 4")
    yield ErrorSample((x, Arg(values=(3, 3, 3), dtype="int32")), "size has 3 values; it must have 2")
    yield ErrorSample((x, Arg(values=(3, 0), dtype="int32")), "must be positive")
    yield ErrorSample((Arg((1, 0, 2, 1)), size), "height and width must be positive")
    yield ErrorSample((x, size), "both true", _BOTH)


def _bilinear_grad_errors() -> Iterator[ErrorSample]:
    x = Arg((1, 2, 2, 1))
    yield ErrorSample((Arg((2, 2, 1)), x), "must have rank 4")
    yield ErrorSample((x, Arg((1, 2, 0, 1))), "height and width must be positive")
    yield ErrorSample((x, x), "both true", _BOTH)


def _resize_attrs(op: Any) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("align_corners", "half_pixel_centers")}


def _image_size(x: Any) -> Any:
    return shape_of(x)[1:3]


def _bilinear_gradient(op: Any, grad: Any) -> list[Any]:
    image = op.inputs[0]
    if not (image.dtype.is_floating):
        return [None, None]
    return [apply_op("ResizeBilinearGrad", [grad, image], _resize_attrs(op)), None]


def _bilinear_grad_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("ResizeBilinear", [grad, _image_size(op.inputs[0])], _resize_attrs(op)), None]


def _nearest_gradient(other: str) -> Callable[..., list[Any]]:
    return lambda op, grad: [apply_op(other, [grad, _image_size(op.inputs[0])], _resize_attrs(op)), None]


_TYPES = "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"

define_op(
    "ResizeBilinear",
    inputs=("images: T", "size: int32"),
    outputs=("resized_images: float",),
    attrs=(f"T: {_TYPES}", *_FLAGS),
    doc="Brings NHWC images to a size; each pixel is a mean of the four around its position, the nearer the heavier.",
    shape=_resized_shape,
    reference=_bilinear,
    gradient=_bilinear_gradient,
    accuracy=Bound(_bilinear_error, "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1"),
    shape_inputs=("size",),
    samples=_bilinear_samples,
    errors=_errors,
)

define_op(
    "ResizeBilinearGrad",
    inputs=("grads: float", "original_image: T"),
    outputs=("output: T",),
    attrs=("T: {float, bfloat16, half, double}", *_FLAGS),
    doc="The gradient of ResizeBilinear by its images; of original_image only shape and dtype matter.",
    shape=_bilinear_grad_shape,
    reference=_bilinear_grad,
    gradient=_bilinear_grad_gradient,
    accuracy=Accumulation(_bilinear_grad_terms),
    samples=_bilinear_grad_samples,
    errors=_bilinear_grad_errors,
)

define_op(
    "ResizeNearestNeighbor",
    inputs=("images: T", "size: int32"),
    outputs=("resized_images: T",),
    attrs=(f"T: {_TYPES}", *_FLAGS),
    doc="Brings NHWC images to a size; each pixel is the one of the input that its position falls on.",
    shape=_resized_shape,
    reference=_nearest_reference,
    gradient=_nearest_gradient("ResizeNearestNeighborGrad"),
    accuracy=EXACT,
    shape_inputs=("size",),
    samples=_nearest_samples,
    errors=_errors,
)

define_op(
    "ResizeNearestNeighborGrad",
    inputs=("grads: T", "size: int32"),
    outputs=("output: T",),
    attrs=("T: {uint8, int8, int32, half, float, double, bfloat16}", *_FLAGS),
    doc="The gradient of ResizeNearestNeighbor by its images, whose height and width are size.",
    shape=_resized_shape,
    reference=_nearest_grad,
    gradient=_nearest_gradient("ResizeNearestNeighbor"),
    accuracy=Accumulation(_grad_terms),
    shape_inputs=("size",),
    samples=_nearest_grad_samples,
    errors=_errors,
)

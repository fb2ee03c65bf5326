"""Images of another size: ResizeBicubic with its gradient, and ResizeArea."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.image.interpolation import Weights, area, bicubic, resized, spread

_ALIGN, _HALF = "align_corners: bool = false", "half_pixel_centers: bool = false"
_IMAGES = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}"
_TRIED = {"T": ("float32", "float64", "float16", "uint8", "int32")}
_SHAPES = (((1, 2, 2, 1), (4, 4)), ((2, 5, 3, 3), (2, 7)), ((1, 3, 4, 2), (3, 4)), ((2, 4, 6, 1), (1, 1)))


def _new_size(c: InferenceContext) -> list[int | None]:
    """Height and width that input 1 gives."""
    if c.shapes[1] is not None and len(c.shapes[1]) != 1:
        raise c.error(f"size has shape {format_shape(c.shapes[1])}; it must be (2,)")
    wanted = c.shape_value(1)
    found: list[int | None] = [None, None] if wanted is None else list(wanted)
    if len(found) != 2:
        raise c.error(f"size has {len(found)} elements; it must have 2, height and width")
    if any(d is not None and d <= 0 for d in found):
        raise c.late_error(f"size is {found}; both must be positive")
    return found


def _resized_shape(c: InferenceContext) -> list[Shape]:
    images = c.require_rank(0, 4)
    if 0 in images[1:3]:
        raise c.late_error(f"images has shape {format_shape(images)}; height and width must be positive")
    return [(images[0], *_new_size(c), images[3])]


def _terms(weights: Weights, first: int) -> Any:
    def count(attrs: Attrs, x: np.ndarray, other: np.ndarray) -> int:
        sizes = np.shape(other)[1:3] if first else [int(n) for n in other]
        pairs = list(zip(sizes, x.shape[1:3], strict=True) if first else zip(x.shape[1:3], sizes, strict=True))
        axis = 0 if first else 1
        return 4 + sum(int((weights(a, b, attrs) != 0).sum(axis).max(initial=0)) for a, b in pairs)

    return count


def _accuracy(weights: Weights, backward: bool = False) -> Accumulation:
    """Returns sums over the pixels of a column, then of a row; weights may be negative."""

    def positive(size: int, wanted: int, attrs: Any) -> np.ndarray:
        return abs(weights(size, wanted, attrs))

    def magnitude(attrs: Attrs, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        height, width = np.shape(other)[1:3] if backward else [int(n) for n in other]
        return (spread if backward else resized)(positive, abs(x), height, width, attrs)

    return Accumulation(_terms(weights, int(backward)), magnitude)


def _samples(flags: Sequence[str]) -> Iterator[Sample]:
    for shape, size in _SHAPES:
        images = Arg(shape, special=False)
        for flag in ("", *flags):
            yield Sample([images, Arg(values=np.array(size, np.int32))], {flag: True} if flag else {}, _TRIED)


def _errors() -> Iterator[ErrorSample]:
    for shape, size, match in (
        ((2, 3, 1), (2, 2), "it must have rank 4"),
        ((1, 2, 3, 1), (0, 2), r"size is \[0, 2\]; both must be positive"),
        ((1, 2, 3, 1), (2, 2, 2), "size has 3 elements; it must have 2"),
        ((1, 2, 3, 1), ((2, 2),), r"size has shape \(1, 2\); it must be \(2,\)"),
    ):
        yield ErrorSample([Arg(shape), Arg(values=np.array(size, np.int32))], match)


def _define_resize(name: str, weights: Weights, gradient: Any, doc: str, half: bool = True) -> None:
    def reference(attrs: Attrs, images: np.ndarray, size: np.ndarray) -> np.ndarray:
        return resized(weights, images, int(size[0]), int(size[1]), attrs)

    define_op(
        f"Resize{name}",
        inputs=["images: T", "size: int32"],
        outputs=["resized_images: float"],
        attrs=[_IMAGES, _ALIGN, *([_HALF] if half else [])],
        doc=doc,
        shape=_resized_shape,
        reference=reference,
        gradient=gradient,
        accuracy=_accuracy(weights),
        shape_inputs=("size",),
        samples=lambda: _samples(("align_corners", "half_pixel_centers") if half else ("align_corners",)),
        errors=_errors,
    )


def _flags(op: Any) -> dict[str, Any]:
    return {k: op.attrs[k] for k in ("align_corners", "half_pixel_centers")}


def _size(images: Any) -> Any:
    """Height and width."""
    return apply_op("StridedSlice", [shape_of(images), [1], [3], [1]])


def _smooth_gradient(name: str, types: tuple[str, ...]) -> Any:
    """TensorFlow passes no gradient to images of integers. types: those that the gradient op takes."""

    def gradient(op: Any, grad: Any) -> list[Any]:
        image = op.inputs[0]
        if not image.dtype.is_floating:
            return [None, None]
        if image.dtype.name in types:
            return [apply_op(f"Resize{name}Grad", [grad, image], _flags(op)), None]
        wide = apply_op(f"Resize{name}Grad", [grad, apply_op("Cast", [image], {"DstT": grad.dtype})], _flags(op))
        return [apply_op("Cast", [wide], {"DstT": image.dtype}), None]

    return gradient


_WIDE = ("float32", "float64")

_define_resize(
    "Bicubic", bicubic, _smooth_gradient("Bicubic", _WIDE), "Images of another size, by bicubic interpolation."
)
_define_resize(
    "Area",
    area,
    MissingGradient("TensorFlow gives resizing by area none either"),
    "Images of another size, each pixel being the mean of those that it covers.",
    half=False,
)


@late_errors
def _backward_shape(c: InferenceContext) -> list[Shape]:
    grads, image = c.require_rank(0, 4), c.require_rank(1, 4)
    return [(grads[0], image[1], image[2], grads[3])]


def _backward_samples() -> Iterator[Sample]:
    for shape, size in _SHAPES:
        grads = Arg((shape[0], *size, shape[3]), special=False)
        for flag in ("", "align_corners", "half_pixel_centers"):
            yield Sample([grads, Arg(shape, special=False)], {flag: True} if flag else {})


def _define_backward(name: str, weights: Weights, types: str) -> None:
    def reference(attrs: Attrs, grads: np.ndarray, original_image: np.ndarray) -> np.ndarray:
        height, width = original_image.shape[1:3]
        return spread(weights, grads, height, width, attrs)

    def gradient(op: Any, grad: Any) -> list[Any]:
        size = _size(op.inputs[0])
        wide = apply_op(f"Resize{name}", [grad, size], _flags(op))
        return [wide, None]

    define_op(
        f"Resize{name}Grad",
        inputs=["grads: float", "original_image: T"],
        outputs=["output: T"],
        attrs=[types, _ALIGN, _HALF],
        doc=f"The gradient of Resize{name} for images of the size of original_image.",
        shape=_backward_shape,
        reference=reference,
        gradient=gradient,
        accuracy=_accuracy(weights, backward=True),
        samples=_backward_samples,
        errors=lambda: [ErrorSample([Arg((2, 2)), Arg((1, 2, 2, 1))], "it must have rank 4")],
    )


_define_backward("Bicubic", bicubic, "T: {float, double}")

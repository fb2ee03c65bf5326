"""Ops that prepare pictures, as NumPy computes them: once a picture, not once a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_sdk import KernelDef, KernelNode, Launcher, UnimplementedError

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PIXELS = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16")


def _wide(dtype: np.dtype[Any]) -> Any:
    """Returns the dtype to compute in."""
    return np.float64 if dtype == np.float64 else np.float32


# Sizes. Resizing is linear along each axis: a matrix of weights for rows, and one for columns.


def _resize(node: KernelNode) -> Launcher:
    from timberframe_ops.image.interpolation import area, bicubic

    (_, height, width, _), (_, rows, columns, _) = node.inputs[0].shape, node.outputs[0].shape
    weights = area if node.op == "ResizeArea" else bicubic
    down, across = weights(height, rows, node.attrs), weights(width, columns, node.attrs)
    return _product(down, across, node.outputs[0].dtype)


def _resize_gradient(node: KernelNode) -> Launcher:
    from timberframe_ops.image.interpolation import bicubic

    (_, height, width, _), (_, rows, columns, _) = node.outputs[0].shape, node.inputs[0].shape
    down, across = bicubic(height, rows, node.attrs).T, bicubic(width, columns, node.attrs).T
    return _product(down, across, node.outputs[0].dtype)


def _product(down: np.ndarray, across: np.ndarray, dtype: np.dtype[Any]) -> Launcher:
    from timberframe_ops.image.interpolation import weighted

    down, across = down.astype(dtype), across.astype(dtype)

    def launch(images: np.ndarray, *rest: np.ndarray) -> None:
        rest[-1][...] = weighted(across, weighted(down, images.astype(dtype), 1), 2)

    return launch


# Colours


def _hue_and_span(rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue in turns, the largest component, and how far the smallest is below it."""
    first = rgb.argmax(-1)[..., None]
    most, following, last = (np.take_along_axis(rgb, (first + i) % 3, -1)[..., 0] for i in range(3))
    span = most - rgb.min(-1)
    offset = np.where(span > 0, (following - last) / np.where(span > 0, span, 1), 0)
    hue = np.where(span > 0, (2 * first[..., 0] + offset) / 6, 0)
    return np.where(hue < 0, hue + 1, hue).astype(rgb.dtype), most, span


def _parts(hue: np.ndarray) -> np.ndarray:
    """Returns how much of the span red, green and blue of a hue lie above the smallest component."""
    distance = np.abs(6 * hue[..., None] - np.array([3, 2, 4], hue.dtype))
    parts = np.array([-1, 2, 2], hue.dtype) + np.array([1, -1, -1], hue.dtype) * distance
    return np.asarray(np.clip(parts, 0, 1))


def _to_hsv(rgb: np.ndarray) -> np.ndarray:
    hue, value, span = _hue_and_span(rgb)
    return np.stack([hue, np.where(value > 0, span / np.where(value > 0, value, 1), 0), value], -1)


def _to_rgb(hsv: np.ndarray) -> np.ndarray:
    saturation, value = hsv[..., 1, None], hsv[..., 2, None]
    return np.asarray(value * (1 - saturation + saturation * _parts(hsv[..., 0])))


_SIXTHS = np.array([[0, 5, 0], [2, 0, 1], [3, 4, 0]])
"""Of the colour wheel, by the number of a colour's largest and of its smallest component."""
_COMPONENTS = np.array([[2, 1, 0], [1, 2, 0], [0, 2, 1], [0, 1, 2], [1, 0, 2], [2, 0, 1]])
"""For each sixth which of the smallest (0), middle (1) and largest (2) values red, green and blue have."""


def _turn(rgb: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Smallest and largest value stay; the middle one and the order change. In TensorFlow's order of operations."""
    values = np.sort(rgb, -1)
    least, middle, most = values[..., 0], values[..., 1], values[..., 2]
    span = most - least
    sixth = _SIXTHS[rgb.argmax(-1), rgb.argmin(-1)]
    ratio = np.where(span > 0, (middle - least) / span, 0).astype(rgb.dtype)
    hue = np.where(span > 0, sixth.astype(rgb.dtype) + _up_or_down(sixth, ratio), 0).astype(rgb.dtype)
    hue = np.mod(hue + delta * delta.dtype.type(6), delta.dtype.type(6))
    sixth = np.minimum(hue.astype(np.int64), 5)
    values[..., 1] = least + _up_or_down(sixth, hue - sixth.astype(rgb.dtype)) * span
    return np.take_along_axis(values, _COMPONENTS[sixth], -1)


def _up_or_down(sixth: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Returns the middle value rises from the smallest to the largest in even sixths, and falls in odd ones."""
    return np.where(sixth % 2 == 0, ratio, ratio.dtype.type(1) - ratio)


def _saturate(rgb: np.ndarray, scale: np.ndarray) -> np.ndarray:
    hsv = _to_hsv(rgb)
    hsv[..., 1] = np.clip(hsv[..., 1] * scale, 0, 1)
    return _to_rgb(hsv)


def _contrast(images: np.ndarray, factor: np.ndarray) -> np.ndarray:
    mean = _mean(images.reshape(*images.shape[:-3], -1, images.shape[-1]))[..., None, None, :]
    return np.asarray((images - mean) * factor + mean)


def _mean(pixels: np.ndarray) -> np.ndarray:
    """Over the axis before the last; the ends are added to the starts until one is left, as in TensorFlow."""
    total, count = pixels.copy(), pixels.shape[-2]
    while count > 1:
        half = count // 2
        total[..., :half, :] += total[..., count - half : count, :]
        count -= half
    return np.asarray(total[..., 0, :] / total.dtype.type(pixels.shape[-2]))


def _pixelwise(change: Callable[..., np.ndarray]) -> Callable[[KernelNode], Launcher]:
    """Returns the builder of what is computed of an image, and perhaps a number, in one dtype."""

    def build(node: KernelNode) -> Launcher:
        dtype = _wide(node.inputs[0].dtype)

        def launch(images: np.ndarray, *rest: np.ndarray) -> None:
            with np.errstate(all="ignore"):
                if images.size:
                    rest[-1][...] = change(images.astype(dtype), *(x.astype(dtype) for x in rest[:-1]))

        return launch

    return build


# Boxes and windows


def _boxes(node: KernelNode) -> Launcher:
    from timberframe_ops.image.boxes import PALETTE

    height, width, depth = node.inputs[0].shape[1:]
    scale = np.array([height - 1, width - 1] * 2, np.float32)

    def launch(images: np.ndarray, boxes: np.ndarray, *rest: np.ndarray) -> None:
        colors = np.array(rest[0] if len(rest) > 1 and rest[0].size else PALETTE)
        if depth == 1:
            colors[:, 0] = 1
        colors = colors[:, :depth].astype(images.dtype)
        rest[-1][...] = images
        for image, corners in zip(rest[-1], np.trunc(boxes * scale), strict=True):
            for number, (top, left, bottom, right) in enumerate(corners.tolist()):
                if top <= bottom and left <= right:
                    _outline(image, (top, bottom), (left, right), colors[number % len(colors)])

    return launch


def _outline(image: np.ndarray, rows: tuple[float, float], columns: tuple[float, float], color: np.ndarray) -> None:
    """Draws what lies within the image of a rectangle's four sides."""
    down, across = np.arange(image.shape[0]), np.arange(image.shape[1])
    tall, wide = (down >= rows[0]) & (down <= rows[1]), (across >= columns[0]) & (across <= columns[1])
    image[np.ix_(np.isin(down, rows), wide)] = color
    image[np.ix_(tall, np.isin(across, columns))] = color


def _glimpse(node: KernelNode) -> Launcher:
    from timberframe_ops.image.boxes import NOISE

    size, wanted = (np.array(v.shape[1:3], np.float32) for v in (node.inputs[0], node.outputs[0]))
    attrs = node.attrs

    def launch(images: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
        at = offsets * size if attrs["normalized"] else offsets
        starts = np.trunc(at / 2 + size / 2 - wanted / 2 if attrs["centered"] else at).astype(np.int64)
        rows, columns = (starts[:, i, None] + np.arange(out.shape[i + 1]) for i in range(2))
        inside = ((rows >= 0) & (rows < size[0]))[:, :, None] & ((columns >= 0) & (columns < size[1]))[:, None]
        if attrs["noise"] != "zero" and not inside.all():
            raise UnimplementedError(f"{node.op} '{node.name}': {NOISE.format(attrs['noise'])}", node.name)
        if not images.size:
            out[...] = 0
            return
        rows, columns = (np.clip(x, 0, int(n) - 1) for x, n in ((rows, size[0]), (columns, size[1])))
        found = images[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None]]
        out[...] = np.where(inside[..., None], found, 0)

    return launch


_ADJUSTED = {"T": ("float16", "float32")}

KERNELS = [
    KernelDef("ResizeArea", "CPU", _resize, {"T": _PIXELS}),
    KernelDef("ResizeBicubic", "CPU", _resize, {"T": _PIXELS}),
    KernelDef("ResizeBicubicGrad", "CPU", _resize_gradient, {"T": ("float32", "float64")}),
    KernelDef("RGBToHSV", "CPU", _pixelwise(_to_hsv), {"T": _FLOATS}),
    KernelDef("HSVToRGB", "CPU", _pixelwise(_to_rgb), {"T": _FLOATS}),
    KernelDef("AdjustHue", "CPU", _pixelwise(_turn), _ADJUSTED),
    KernelDef("AdjustSaturation", "CPU", _pixelwise(_saturate), _ADJUSTED),
    KernelDef("AdjustContrastv2", "CPU", _pixelwise(_contrast), _ADJUSTED),
    KernelDef("DrawBoundingBoxes", "CPU", _boxes, _ADJUSTED),
    KernelDef("DrawBoundingBoxesV2", "CPU", _boxes, _ADJUSTED),
    KernelDef("ExtractGlimpse", "CPU", _glimpse),
    KernelDef("ExtractGlimpseV2", "CPU", _glimpse),
]

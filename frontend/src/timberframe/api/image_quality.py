"""`tf.image.*`: how much images differ, and how much they vary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import concat, pad, reshape, shape, stack
from timberframe.api.constants import zeros_like
from timberframe.api.framework import name_scope
from timberframe.api.image_colors import convert_image_dtype
from timberframe.api.image_geometry import image_tensor
from timberframe.api.nn import avg_pool, depthwise_conv2d
from timberframe.api.reduction import reduce_mean, reduce_prod, reduce_sum
from timberframe.api.selection import cast
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import compatible, format_shape

NAMESPACES = {
    "image": ("image_gradients", "psnr", "sobel_edges", "ssim", "ssim_multiscale", "total_variation"),
}

_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Weights of the scales of MS-SSIM (Wang, Simoncelli and Bovik 2003)."""


def _pair(function: str, a: Any, b: Any, max_val: Any) -> tuple[Any, Any, Any]:
    """Returns both images, and the greatest value, as float32 of [0, 1] where they are integers."""
    first, second = convert_to_tensor(a), convert_to_tensor(b)
    for x in (first, second):
        if x.static_shape is not None and len(x.static_shape) < 3:
            raise InvalidArgumentError(
                f"tf.image.{function}: an image has shape {format_shape(x.static_shape)}; rank 3 or more is required"
            )
    if not compatible((first.static_shape or (None,) * 3)[-3:], (second.static_shape or (None,) * 3)[-3:]):
        raise InvalidArgumentError(
            f"tf.image.{function}: images have shapes {format_shape(first.static_shape)} and "
            f"{format_shape(second.static_shape)}; height, width and channels must be equal"
        )
    limit = cast(max_val, first.dtype)
    return tuple(convert_image_dtype(x, float32) for x in (first, second, limit))  # type: ignore[return-value]  # three


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """10 log10(max_val^2 / mean squared difference) for each image [..., height, width, channels], in dB."""
    with name_scope(name, "PSNR", [a, b]) as scope:
        first, second, limit = _pair("psnr", a, b, max_val)
        error: Any = reduce_mean(apply_op("SquaredDifference", [first, second]), [-3, -2, -1])
        whole: Any = apply_op("Log", [limit])
        made: Tensor = apply_op(
            "Sub", [20 / math.log(10) * whole, 10 / math.log(10) * apply_op("Log", [error])], None, scope
        )
        return made


def _window(size: int, sigma: float) -> np.ndarray:
    """Returns weights of a round window [size, size, 1, 1] that add up to one."""
    row = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    weights: np.ndarray = np.outer(row, row) / row.sum() ** 2
    return weights.astype(np.float32)[:, :, None, None]


def _ssim_of_channels(
    x: Any, y: Any, limit: Any, size: int, sigma: float, k1: float, k2: float
) -> tuple[Any, Any]:  # fmt: skip
    """Similarity, and its part without luminance, of each channel (Wang et al. 2004, equations 6 and 13)."""
    c1, c2 = (k1 * limit) ** 2, (k2 * limit) ** 2
    window = apply_op("Tile", [_window(size, sigma), [1, 1, shape(x)[-1], 1]])

    def local(values: Any) -> Any:
        sizes = shape(values)
        made = depthwise_conv2d(reshape(values, concat([[-1], sizes[-3:]], 0)), window, [1, 1, 1, 1], "VALID")
        return reshape(made, concat([sizes[:-3], shape(made)[1:]], 0))

    mean_x, mean_y = local(x), local(y)
    product, squares = 2 * mean_x * mean_y, mean_x**2 + mean_y**2
    luminance = (product + c1) / (squares + c1)
    structure = (2 * local(x * y) - product + c2) / (local(x**2 + y**2) - squares + c2)
    return reduce_mean(luminance * structure, [-3, -2]), reduce_mean(structure, [-3, -2])


def _check_size(function: str, size: int, *images: Any) -> None:
    for x in images:
        known = (x.static_shape or ())[-3:-1]
        if any(n is not None and n < size for n in known):
            raise InvalidArgumentError(
                f"tf.image.{function}: an image has height and width {list(known)}; {size}, the filter's, is the least"
            )


def ssim(
    img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """Returns the structural similarity of images [..., height, width, channels], the mean over their channels: [...].

    max_val: the greatest value that images may have. filter_size, filter_sigma: of the round window in which means are
    taken. k1, k2: small parts of max_val that keep divisors from 0 (Wang et al. 2004).
    """
    with name_scope(None, "SSIM", [img1, img2]):
        x, y, limit = _pair("ssim", img1, img2, max_val)
        _check_size("ssim", filter_size, x, y)
        found, _ = _ssim_of_channels(x, y, limit, filter_size, filter_sigma, k1, k2)
        return reduce_mean(found, [-1])


def _half(x: Any) -> Any:
    """Returns images of half the size; the last row or column counts twice where the size is odd."""
    sizes: Any = shape(x)
    flat = reshape(x, concat([[-1], sizes[-3:]], 0))
    odd = sizes[-3:-1] % 2
    amounts = apply_op("Pack", [[[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]]])
    made = avg_pool(pad(flat, amounts, "SYMMETRIC"), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return reshape(made, concat([sizes[:-3], shape(made)[1:]], 0))


def ssim_multiscale(
    img1: Any, img2: Any, max_val: Any, power_factors: Sequence[float] = _SCALES, filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """Returns the product of `ssim` at several scales, each half the one before, to the powers of power_factors."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        x, y, limit = _pair("ssim_multiscale", img1, img2, max_val)
        _check_size("ssim_multiscale", filter_size, x, y)
        parts: list[Any] = []
        for scale in range(len(power_factors)):
            if scale:
                x, y = _half(x), _half(y)
            whole, structure = _ssim_of_channels(x, y, limit, filter_size, filter_sigma, k1, k2)
            parts.append(structure)
        parts[-1] = whole
        powers = apply_op("Pow", [apply_op("Relu", [stack(parts, -1)]), list(power_factors)])
        return reduce_mean(reduce_prod(powers, [-1]), [-1])


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Returns the sum of absolute differences of neighbours of an image [height, width,
    channels], or for each of a batch.
    """
    with name_scope(name, "total_variation"):
        given = image_tensor(images, "total_variation")
        batch = given.shape.ndims == 4
        down, right = _differences(given if batch else apply_op("ExpandDims", [given, 0]))
        axes = [1, 2, 3] if batch else [0, 1, 2, 3]
        total: Any = reduce_sum(apply_op("Abs", [down]), axes)
        made: Tensor = total + reduce_sum(apply_op("Abs", [right]), axes)
        return made


def _differences(images: Any) -> tuple[Any, Any]:
    return images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1]


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx) of images [batch, height, width, channels]: the difference to the next pixel, 0 at the end."""
    given = convert_to_tensor(image)
    if given.shape.ndims != 4:
        raise InvalidArgumentError(
            f"tf.image.image_gradients: image has shape {format_shape(given.static_shape)}; rank 4 is required"
        )
    down, right = _differences(given)
    return (
        concat([down, zeros_like(given[:, :1])], 1),
        concat([right, zeros_like(given[:, :, :1])], 2),
    )


def sobel_edges(image: Any) -> Tensor:
    """Sobel's derivatives along height and width: [batch, height, width, channels, 2]; edges are mirrored."""
    given = convert_to_tensor(image)
    kernel = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], np.float32)
    both = apply_op("Tile", [np.stack([kernel, kernel.T], -1)[:, :, None], [1, 1, shape(given)[-1], 1]])
    framed = pad(given, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    made = depthwise_conv2d(framed, both, [1, 1, 1, 1], "VALID")
    result: Tensor = reshape(made, concat([shape(given), [2]], 0))
    result.set_shape(given.shape.concatenate([2]))
    return result

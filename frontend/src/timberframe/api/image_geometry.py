"""`tf.image.*`: images that are mirrored, turned, cut and framed. An image is [height, width, channels], or a batch."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import expand_dims, reshape, reverse, shape, squeeze, transpose
from timberframe.api.control_flow import cond
from timberframe.api.framework import name_scope
from timberframe.api.image import resize_images
from timberframe.api.random import random_uniform
from timberframe.api.selection import cast
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

NAMESPACES = {
    "image": (
        "central_crop", "crop_to_bounding_box", "flip_left_right", "flip_up_down", "pad_to_bounding_box",
        "random_flip_left_right", "random_flip_up_down", "resize_image_with_crop_or_pad", "resize_image_with_pad",
        "resize_with_crop_or_pad", "rot90", "transpose_image",
    ),
}  # fmt: skip


def image_tensor(image: Any, function: str) -> Tensor:
    """Returns an image or a batch of images as a tensor of known rank."""
    given = convert_to_tensor(image, name="image")
    if given.shape.ndims not in (3, 4):
        raise InvalidArgumentError(
            f"tf.image.{function}: image has shape {format_shape(given.static_shape)}; "
            "[height, width, channels] or [batch, height, width, channels] is required"
        )
    return given


def _axes(image: Tensor) -> tuple[int, int]:
    """Of height and width."""
    return (0, 1) if image.shape.ndims == 3 else (1, 2)


def _mirrored(image: Any, function: str, axis: int) -> Tensor:
    with name_scope(None, function, [image]):
        given = image_tensor(image, function)
        return reverse(given, [_axes(given)[axis]])


def flip_left_right(image: Any) -> Tensor:
    """Returns images mirrored from left to right."""
    return _mirrored(image, "flip_left_right", 1)


def flip_up_down(image: Any) -> Tensor:
    """Returns images mirrored from top to bottom."""
    return _mirrored(image, "flip_up_down", 0)


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Returns images with height and width exchanged."""
    with name_scope(name, "transpose_image", [image]):
        given = image_tensor(image, "transpose_image")
        return transpose(given, [1, 0, 2] if given.shape.ndims == 3 else [0, 2, 1, 3])


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """Returns images turned by 90 degrees k times, against the clock."""
    with name_scope(name, "rot90", [image]):
        given, turns = image_tensor(image, "rot90"), int(k) % 4
        if turns == 1:
            return flip_up_down(transpose_image(given))
        if turns == 2:
            return flip_up_down(flip_left_right(given))
        return transpose_image(flip_up_down(given)) if turns == 3 else given


def _random_flip(image: Any, function: str, axis: int, seed: int | None) -> Any:
    with name_scope(None, function, [image]):
        given = image_tensor(image, function)
        mirrored_axis = _axes(given)[axis]
        if given.shape.ndims == 3:
            chance = random_uniform([], 0.0, 1.0, seed=seed)
            return cond(apply_op("Less", [chance, 0.5]), lambda: reverse(given, [mirrored_axis]), lambda: given)
        chance = random_uniform([shape(given)[0]], 0.0, 1.0, seed=seed)
        chosen = apply_op("Greater", [reshape(chance, [-1, 1, 1, 1]), 0.5])
        return apply_op("SelectV2", [chosen, reverse(given, [mirrored_axis]), given])


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """Returns images of which every other, at random, is mirrored from left to right."""
    return _random_flip(image, "random_flip_left_right", 1, seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """Returns images of which every other, at random, is mirrored from top to bottom."""
    return _random_flip(image, "random_flip_up_down", 0, seed)


def _sizes(image: Tensor) -> list[Any]:
    """Height and width: integers where they are known, else tensors."""
    known, whole = image.shape.as_list(), shape(image)
    return [whole[axis] if known[axis] is None else known[axis] for axis in _axes(image)]


def _check(function: str, fact: bool, message: str) -> None:
    if not fact:
        raise InvalidArgumentError(f"tf.image.{function}: {message}")


def _plain(*values: Any) -> list[Any]:
    """Returns the values, Dimensions as integers."""
    return [int(v) if isinstance(v, Dimension) else v for v in values]


def _known(*values: Any) -> bool:
    return all(isinstance(v, int) for v in values)


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Returns the part of images that begins at the offsets and has the target sizes; it must lie inside.

    image: [height, width, channels], or with a batch in front. InvalidArgumentError where the part does not lie inside,
    at once or from the run.
    """
    with name_scope(None, "crop_to_bounding_box", [image]):
        given = image_tensor(image, "crop_to_bounding_box")
        height, width = _sizes(given)
        for what, offset, target, size in (
            ("height", offset_height, target_height, height), ("width", offset_width, target_width, width)
        ):  # fmt: skip
            if _known(offset, target):
                inside = offset >= 0 and target > 0 and (not _known(size) or offset + target <= size)
                _check(
                    "crop_to_bounding_box", inside, f"{what} {target} from {offset} on of {size}; it must lie inside"
                )
        whole = given.shape.ndims == 3
        begin, size = [offset_height, offset_width, 0], [target_height, target_width, -1]
        result: Tensor = apply_op(
            "Slice", [given, _vector(begin if whole else [0, *begin]), _vector(size if whole else [-1, *size])]
        )
        result.set_shape(_framed(given, target_height, target_width))
        return result


def _vector(values: list[Any]) -> Tensor:
    if _known(*values):
        return convert_to_tensor(values, int32)
    made: Tensor = apply_op("Pack", [[cast(convert_to_tensor(v), int32) for v in values]], {"axis": 0})
    return made


def _framed(image: Tensor, height: Any, width: Any) -> list[int | None]:
    """Returns the static shape with these sizes."""
    sizes = image.shape.as_list()
    for axis, size in zip(_axes(image), (height, width), strict=True):
        sizes[axis] = size if _known(size) else None
    return sizes


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Returns images with zeros around, so that they begin at the offsets and all has the target sizes.

    image: [height, width, channels], or with a batch in front. InvalidArgumentError where the image does not fit, at
    once or from the run.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        given = image_tensor(image, "pad_to_bounding_box")
        height, width = _sizes(given)
        after = []
        for what, offset, target, size in (
            ("height", offset_height, target_height, height), ("width", offset_width, target_width, width)
        ):  # fmt: skip
            if _known(offset, target, size):
                fits = offset >= 0 and offset + size <= target
                _check("pad_to_bounding_box", fits, f"{what} {size} at {offset} in {target}; it must have room")
            after.append(target - offset - size)
        amounts = [0, 0, offset_height, after[0], offset_width, after[1], 0, 0]
        pairs = reshape(_vector(amounts if given.shape.ndims == 4 else amounts[2:]), [-1, 2])
        result: Tensor = apply_op("Pad", [given, pairs])
        result.set_shape(_framed(given, target_height, target_width))
        return result


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Returns images cut or framed with zeros, evenly on both sides, to the target sizes."""
    target_height, target_width = _plain(target_height, target_width)
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        given = image_tensor(image, "resize_image_with_crop_or_pad")
        for what, target in (("target_height", target_height), ("target_width", target_width)):
            _check(
                "resize_image_with_crop_or_pad",
                not _known(target) or target > 0,
                f"{what} is {target}; it must be positive",
            )
        height, width = _sizes(given)
        rows, columns = target_height - height, target_width - width
        cut = crop_to_bounding_box(
            given, _largest(-rows // 2, 0), _largest(-columns // 2, 0), _least(target_height, height),
            _least(target_width, width),
        )  # fmt: skip
        return pad_to_bounding_box(cut, _largest(rows // 2, 0), _largest(columns // 2, 0), target_height, target_width)


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def _largest(a: Any, b: Any) -> Any:
    return max(a, b) if _known(a, b) else apply_op("Maximum", [a, b])


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if _known(a, b) else apply_op("Minimum", [a, b])


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Returns the middle of images, central_fraction in (0, 1] of height and width."""
    with name_scope(None, "central_crop", [image]):
        given = image_tensor(image, "central_crop")
        _check(
            "central_crop", 0 < central_fraction <= 1, f"central_fraction is {central_fraction}; it must be in (0, 1]"
        )
        if central_fraction == 1:
            return given
        starts, sizes = [], []
        for size in _sizes(given):
            if _known(size):
                start: Any = int((size - size * central_fraction) / 2)
            else:
                start = cast(cast(size, "float64") * ((1 - central_fraction) / 2), int32)
            starts.append(start)
            sizes.append(size - 2 * start)
        return crop_to_bounding_box(given, *starts, *sizes)


def resize_image_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = 0, align_corners: bool = False
) -> Tensor:
    """Returns images resized to the largest size that fits and keeps the ratio, with zeros
    around; see `resize_images`.
    """
    target_height, target_width = _plain(target_height, target_width)
    with name_scope(None, "resize_image_with_pad", [image]):
        given = image_tensor(image, "resize_image_with_pad")
        batch = expand_dims(given, 0) if given.shape.ndims == 3 else given
        sizes = [cast(s, "float32") for s in _sizes(batch)]
        targets = (target_height, target_width)
        ratio = apply_op("Maximum", [s / t for s, t in zip(sizes, targets, strict=True)])
        fitted = [cast(apply_op("Floor", [s / ratio]), int32) for s in sizes]
        offsets = [
            cast(apply_op("Maximum", [0.0, apply_op("Floor", [(t - s / ratio) / 2])]), int32)
            for s, t in zip(sizes, targets, strict=True)
        ]
        resized = resize_images(batch, _vector(fitted), method, align_corners)
        framed = pad_to_bounding_box(resized, offsets[0], offsets[1], target_height, target_width)
        return squeeze(framed, [0]) if given.shape.ndims == 3 else framed

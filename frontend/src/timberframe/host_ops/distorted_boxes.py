"""SampleDistortedBoundingBox, with TensorFlow's random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from timberframe.host_ops.candidate_sampling import RandomWords, words
from timberframe_core.plugin.host_ops import HostCall, host_op

_F = np.float32


class _Box(NamedTuple):
    """In pixels: left, upper, right and lower edges."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def area(self) -> float:
        return float((self.x1 - self.x0) * (self.y1 - self.y0))

    def common(self, other: _Box) -> float:
        """Returns the area that both have."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        return float(width * height) if width > 0 and height > 0 else 0.0


def _unit(numbers: Iterator[int]) -> np.float32:
    """Returns a float in [0, 1) of 23 bits."""
    return _F(np.array([(127 << 23) | (next(numbers) & 0x7FFFFF)], np.uint32).view(_F)[0] - _F(1))


def _below(most: int, numbers: Iterator[int]) -> int:
    """Returns an integer below `most`, each equally probable: the least numbers, which would
    favour some, are left out.
    """
    if most & (most - 1) == 0:
        return next(numbers) & (most - 1)
    least = (2**32 - 1) % most + 1
    while (x := next(numbers)) < least:
        pass
    return x % most


def _drawn(
    width: int, height: int, low: np.float32, high: np.float32, ratio: np.float32, numbers: Iterator[int]
) -> _Box | None:
    """Returns a box of this ratio whose area lies between those given; None where none fits."""
    if high <= 0 or ratio <= 0 or width <= 0 or height <= 0 or low > high:
        return None
    least, most = _F(_F(low * width) * height), _F(_F(high * width) * height)
    rows, limit = (int(np.rint(np.sqrt(_F(a / ratio)))) for a in (least, most))
    if int(np.rint(_F(limit * ratio))) > width:
        limit = int(_F((width + 0.5 - 1e-7) / ratio))
        if int(np.rint(_F(limit * ratio))) > width:
            limit -= 1
    limit = min(limit, height)
    rows = min(rows, limit)
    if rows < limit:
        rows += _below(limit - rows + 1, numbers)
    columns = int(np.rint(_F(rows * ratio)))
    if columns * rows < least:
        rows += 1
        columns = int(np.rint(_F(rows * ratio)))
    if columns * rows > most:
        rows -= 1
        columns = int(np.rint(_F(rows * ratio)))
    area = _F(columns * rows)
    if area < least or area > most or not 0 < columns <= width or not 0 < rows <= height:
        return None
    y = _below(height - rows, numbers) if rows < height else 0
    x = _below(width - columns, numbers) if columns < width else 0
    return _Box(x, y, x + columns, y + rows)


def _covers(box: _Box, objects: list[_Box], least: float) -> bool:
    if box.area < 1:
        return False
    return any(o.area >= 1 and _F(o.common(box) / o.area) >= least for o in objects)


@host_op("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def _sample(call: HostCall) -> list[Any]:
    size, boxes = call.inputs[:2]
    covered = _F(call.inputs[2] if len(call.inputs) > 2 else call.attrs["min_object_covered"])
    height, width = int(size[0]), int(size[1])
    _check(call, height, width, boxes, covered)
    objects = [_Box(*(int(_F(b[i] * n)) for i, n in ((1, width), (0, height), (3, width), (2, height))))
               for b in boxes.reshape(-1, 4)]  # fmt: skip
    whole = _Box(0, 0, width, height)
    found = _search(call, whole, objects or [whole], covered) or whole
    kind = call.dtypes[0].numpy
    edges = [[[found.y0 / height, found.x0 / width, found.y1 / height, found.x1 / width]]]
    return [
        np.array([found.y0, found.x0, 0], kind),
        np.array([found.y1 - found.y0, found.x1 - found.x0, -1], kind),
        np.array(edges, _F),
    ]


def _search(call: HostCall, whole: _Box, objects: list[_Box], covered: np.float32) -> _Box | None:
    attrs, tries = call.attrs, call.attrs["max_attempts"]
    stream = call.resources.get_or_make(f"boxes {call.path}", lambda: RandomWords(attrs["seed"], attrs["seed2"]))
    numbers = words(stream.take(tries))
    (low_ratio, high_ratio), (low, high) = (
        (_F(a), _F(b)) for a, b in (attrs["aspect_ratio_range"], attrs["area_range"])
    )
    for _ in range(tries):
        ratio = _F(_unit(numbers) * _F(high_ratio - low_ratio) + low_ratio)
        box = _drawn(whole.x1, whole.y1, low, high, ratio, numbers)
        if box is not None and _covers(box, objects, float(covered)):
            return box
    return None


def _check(call: HostCall, height: int, width: int, boxes: np.ndarray, covered: np.float32) -> None:
    """Raises InvalidArgumentError for what no box can be drawn from."""
    attrs = call.attrs
    if height <= 0 or width <= 0:
        raise call.error(f"image_size is [{height}, {width}]; both must be positive")
    if covered < 0:
        raise call.error(f"min_object_covered is {covered}; it must not be negative")
    for name, most in (("aspect_ratio_range", None), ("area_range", 1)):
        given = attrs[name]
        if len(given) != 2 or given[0] <= 0 or given[1] < given[0] or (most and given[1] > most):
            raise call.error(f"{name} is {list(given)}; two positive numbers in order are required")
    if not boxes.size and not attrs["use_image_if_no_bounding_boxes"]:
        raise call.error("bounding_boxes is empty; use_image_if_no_bounding_boxes lets the image count as one")
    for box in boxes.reshape(-1, 4):
        if ((box < 0) | (box > 1)).any() or (box[:2] >= box[2:]).any():
            raise call.error(
                f"a box is {box.tolist()}, which leaves [0, 1] or has no area; y_min, x_min, y_max, x_max are required"
            )

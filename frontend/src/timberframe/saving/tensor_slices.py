"""Slices of tensors, as which checkpoints keep partitioned variables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages
from timberframe_core.shapes import StaticShape, num_elements

_EXTENT = re.compile(r"-|(\d{1,18}),(\d{1,18})", re.ASCII)
_SIZE = re.compile(r"\d{1,18}", re.ASCII)


def parse_slice(text: str, name: str) -> tuple[StaticShape, Any]:
    """Returns the shape of a whole tensor and a TensorSliceProto, as nodes that save and restore say them: "4 6 0,2:-".

    The last of these words has a start and a length for each dimension, or "-" for all of it. Raises
    InvalidArgumentError, naming the tensor, for anything else and for slices that do not lie in the whole.
    """
    *sizes, extents = text.split(" ")
    found = [_EXTENT.fullmatch(extent) for extent in extents.split(":")]
    if not sizes or not all(map(_SIZE.fullmatch, sizes)) or None in found:
        raise InvalidArgumentError(
            f"tensor '{name}' is to be the slice '{text}'; sizes of the whole and 'start,length' or '-' for each "
            "dimension are required, such as '4 6 0,2:-'"
        )
    shape, part = tuple(map(int, sizes)), messages.TensorSliceProto()
    for match in found:
        extent = part.extent.add()
        if match is not None and match[1]:
            extent.start, extent.length = int(match[1]), int(match[2])
    if slice_range(part, shape) is None:
        raise InvalidArgumentError(
            f"tensor '{name}' is to be the slice '{text}'; it must lie in the shape {list(shape)}"
        )
    return shape, part


def slice_range(part: Any, shape: StaticShape) -> tuple[slice, ...] | None:
    """Returns where a slice lies in the whole; None where it does not."""
    if len(part.extent) != len(shape):
        return None
    found = []
    for extent, size in zip(part.extent, shape, strict=True):
        start, length = (extent.start, extent.length) if extent.HasField("length") else (0, size)
        if start < 0 or length < 0 or start + length > size:
            return None
        found.append(slice(start, start + length))
    return tuple(found)


def tile(parts: Sequence[tuple[slice, ...]], shape: StaticShape) -> bool:
    """Returns whether slices fill the shape and none lies over another one."""
    total = sum(num_elements(sizes_of(part)) for part in parts)
    return total == num_elements(shape) and not any(overlap(a, b) for a, b in itertools.combinations(parts, 2))


def overlap(a: Sequence[slice], b: Sequence[slice]) -> bool:
    """Returns whether an element lies in both of two slices of one tensor."""
    return all(max(r.start, s.start) < min(r.stop, s.stop) for r, s in zip(a, b, strict=True))


def sizes_of(where: Sequence[slice]) -> StaticShape:
    """Returns the shape of what lies there."""
    return tuple(r.stop - r.start for r in where)


def slice_key(name: str, part: Any) -> bytes:
    """Returns the key under which a slice of a tensor is stored: a zero, the name, and start and
    length for each dimension.

    Numbers and strings are coded so that their order is that of the bytes: tensorflow/core/lib/strings/ordered_code.
    """
    escaped = name.encode().replace(b"\0", b"\0\xff")  # names are UTF-8, which has no byte 0xff
    code = b"\0" + escaped + b"\0\1" + _unsigned(len(part.extent))
    for extent in part.extent:
        code += _signed(extent.start) + _signed(extent.length if extent.HasField("length") else -1)
    return code


def _unsigned(value: int) -> bytes:
    """Returns the number of bytes, and these, the highest first."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Seven bits a byte, the highest first; preceded by as many ones as there are bytes, zeros if negative."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    header = ((1 << size) - 1) << (7 * size)
    sign_bits = value & ((1 << (8 * size)) - 1)
    return (header ^ sign_bits).to_bytes(size, "big")

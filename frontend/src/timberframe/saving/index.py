"""The index of our checkpoints: name, dtype, shape, location and checksum of every tensor, as JSON with a checksum.

Everything is checked once, when an index is read, so that its users can rely on it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timberframe_core.dtypes import BY_NAME, resource, string, variant
from timberframe_core.errors import DataLossError
from timberframe_core.shapes import MAX_ELEMENTS, num_elements

FORMAT = "timberframe checkpoint"
_VERSION = 1
_LONGEST = 1 << 30  # bytes of an index: one of a million tensors has 200 MB


def new_index(data: str, size: int, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The index of a data file of `size` bytes with these tensors."""
    return {"format": FORMAT, "version": _VERSION, "data": data, "size": size, "tensors": tensors}


def encode_index(index: Mapping[str, Any]) -> bytes:
    """The content of an index file."""
    text = json.dumps(index, separators=(",", ":"))
    return f'{{"crc32":{zlib.crc32(text.encode())},"index":{text}}}\n'.encode()


def read_index(path: Path) -> dict[str, Any]:
    """The index that a file holds; DataLossError if it is damaged or inconsistent."""
    advice = "restore another checkpoint, such as another one that the file 'checkpoint' in its folder names"
    if path.stat().st_size > _LONGEST:
        raise DataLossError(f"'{path}': has {path.stat().st_size} bytes, too many for an index; {advice}")
    raw = path.read_bytes()
    try:
        outer = json.loads(raw)
        index: dict[str, Any] = outer["index"]
        if outer["crc32"] != zlib.crc32(json.dumps(index, separators=(",", ":")).encode()):
            raise ValueError("its checksum is wrong")
        if index["format"] != FORMAT:
            raise ValueError(f"its format is {index['format']!r}")
        if index["version"] == _VERSION:
            _check(index)
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise DataLossError(f"'{path}': {len(raw)} bytes that are no index of a checkpoint ({e}); {advice}") from None
    if index["version"] != _VERSION:
        raise DataLossError(f"'{path}': has version {index['version']}; {_VERSION} is the latest one known here")
    return index


def _check(index: Mapping[str, Any]) -> None:
    """Raises ValueError, TypeError or KeyError unless all that readers use exists and is consistent."""
    data, size = index["data"], _count(index["size"], "size")
    if not isinstance(data, str) or data in ("", "..") or "\0" in data or Path(data).name != data:
        raise ValueError(f"its data file is {data!r}, which is no name of a file in its folder")
    if not isinstance(index["tensors"], dict):
        raise TypeError("its tensors are no mapping")
    for name, tensor in index["tensors"].items():
        try:
            _check_tensor(tensor, size)
        except (ValueError, TypeError, KeyError) as e:
            raise ValueError(f"tensor {name!r}: {e}") from None


def _check_tensor(tensor: Mapping[str, Any], size: int) -> None:
    dtype = BY_NAME.get(tensor["dtype"])
    if dtype is None or dtype.is_ref or dtype in (resource, variant):
        raise ValueError(f"its dtype is {tensor['dtype']!r}")
    if not isinstance(tensor["shape"], list):
        raise TypeError("its shape is no list")
    shape = tuple(_count(d, "a dimension") for d in tensor["shape"])
    if num_elements(tuple(d for d in shape if d)) * max(dtype.numpy.itemsize, 8) > MAX_ELEMENTS:
        raise ValueError(f"its shape is {list(shape)}")
    _check_location(tensor, size, None if dtype is string else num_elements(shape) * dtype.numpy.itemsize)
    if dtype is string:
        _check_location(tensor["lengths"], size, num_elements(shape) * 8)


def _check_location(location: Mapping[str, Any], size: int, wanted: int | None) -> None:
    """wanted: how many bytes it must have; None for any number."""
    offset, nbytes = _count(location["offset"], "offset"), _count(location["nbytes"], "nbytes")
    if offset + nbytes > size:
        raise ValueError(f"{nbytes} bytes at {offset} are not within the {size} of the data file")
    if wanted is not None and nbytes != wanted:
        raise ValueError(f"it has {nbytes} bytes; its shape and dtype take {wanted}")
    _count(location["crc32"], "crc32")


def _count(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_ELEMENTS:
        raise ValueError(f"{what} is {value!r}")
    return value

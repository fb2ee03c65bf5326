"""Our checkpoints: one safetensors file, and an index that makes it a checkpoint.

`PREFIX.index.json` names the data file `PREFIX.<token>.safetensors` and holds name, dtype, shape, location and checksum
of every tensor, and a checksum of its own. The data file is complete, on the disk, and under a name of its own before
the index is renamed into place, and data that the index no longer names is removed after. So at any moment the index on
the disk belongs to a complete data file.
"""

from __future__ import annotations

import contextlib
import glob
import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from timberframe.saving.encoding import LENGTHS, Part, as_bytes, decode, decode_strings, encode
from timberframe.saving.files import finish, map_file, new_file, new_token, remove_leftovers, replace_file, sync_folder
from timberframe.saving.index import FORMAT, encode_index, new_index, read_index
from timberframe.saving.reader import CheckpointReader, Entry
from timberframe_core import dtypes
from timberframe_core.dtypes import DType, string
from timberframe_core.errors import DataLossError, OpError
from timberframe_core.shapes import num_elements

INDEX = ".index.json"
POSITIONS = ".positions"
"""Ends the name of the file beside a checkpoint that `saving/positions.py` writes."""
_DATA = ".safetensors"
_HEADER = b'{"__metadata__":{"format":"%s"}' % FORMAT.encode()
_TOKEN = re.compile(r"\.[0-9a-f]{12}\.safetensors$")
_ATTEMPTS = 3
_CHUNK = 16 << 20  # bytes that are checked and written at a time


@dataclass(frozen=True)
class Saved:
    """A tensor to save; `array()` is called when it is written, so that one copy at a time is enough."""

    dtype: DType
    shape: tuple[int, ...]
    array: Any


def write_checkpoint(prefix: str, tensors: Mapping[str, Saved], family: str | None = None) -> None:
    """Writes a checkpoint. It replaces one of the same prefix, which stays until the new one is complete.

    family: how the names of all checkpoints of the same writer begin, by default as this one's; what killed writers
    left of them is removed.
    """
    target = Path(prefix)
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = {name: encode(name, t.dtype, t.shape, t.array) for name, t in tensors.items()}
    data = target.with_name(f"{target.name}.{new_token()}{_DATA}")
    with new_file(data) as file:
        locations, size = _write_data(file, sorted((p for group in parts.values() for p in group), key=_alignment))
        finish(file)
        sync_folder(target.parent)
        entries = {
            name: {"dtype": t.dtype.name, "shape": list(t.shape), **locations[name]} for name, t in tensors.items()
        }
        for name, tensor in tensors.items():
            if tensor.dtype is string:
                entries[name]["lengths"] = locations[f"{name}{LENGTHS}"]
        index = new_index(data.name, size, entries)
        replaced = _data_file(prefix)
        replace_file(_index_path(prefix), encode_index(index))
    if replaced is not None:
        replaced.unlink(missing_ok=True)
    remove_leftovers(target.parent, family or target.name, _is_leftover, _DATA)


def _data_file(prefix: str) -> Path | None:
    """The data file that the index of this prefix names; None without a readable index."""
    with contextlib.suppress(OSError, OpError):
        found = Path(prefix).with_name(read_index(_index_path(prefix))["data"])
        return found if _is_data(found) else None
    return None


def remove_checkpoint_files(prefix: str) -> None:
    """Removes a checkpoint, its index first, so that no index names incomplete data."""
    target = Path(prefix)
    with contextlib.suppress(FileNotFoundError):
        _index_path(prefix).unlink()
    for path in target.parent.glob(f"{glob.escape(target.name)}.*{_DATA}"):
        if _is_data(path) and _prefix_of(path.name) == target.name:
            path.unlink(missing_ok=True)


def _index_path(prefix: str) -> Path:
    return Path(f"{prefix}{INDEX}")


def _prefix_of(data: str) -> str:
    """The checkpoint that a data file was written for."""
    return data.removesuffix(_DATA).rpartition(".")[0]


def _is_data(path: Path) -> bool:
    """Whether a file was made by a writer of checkpoints, and not only has the same suffix."""
    if not _TOKEN.search(path.name):
        return False
    with open(path, "rb") as file:
        start = file.read(8 + len(_HEADER))[8:]
    return _HEADER.startswith(start)


def _is_leftover(path: Path) -> bool:
    """Whether a data file is unused: no index names it."""
    if not _is_data(path):
        return False
    try:
        index = read_index(path.with_name(f"{_prefix_of(path.name)}{INDEX}"))
    except FileNotFoundError:
        return True
    except OpError:
        return False  # a damaged index: nothing is removed
    return bool(index["data"] != path.name)


def _alignment(part: Part) -> int:
    """Large elements come first, so that all are aligned."""
    return -part.nbytes // max(1, num_elements(part.shape))


def _write_data(file: IO[bytes], parts: list[Part]) -> tuple[dict[str, dict[str, int]], int]:
    """Writes a safetensors file; returns location and checksum of each part, and the size of the file.

    Its layout: the header's length in 8 bytes, the header in JSON, the elements of each tensor in row-major order.
    """
    header: dict[str, Any] = {"__metadata__": {"format": FORMAT}}
    end = 0
    for part in parts:
        start, end = end, end + part.nbytes
        header[part.name] = {"dtype": part.dtype, "shape": list(part.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    locations, at = {}, 8 + len(text)
    for part in parts:
        checksum = 0
        data = as_bytes(part.array())
        assert len(data) == part.nbytes
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            checksum = zlib.crc32(chunk, checksum)
            file.write(chunk)
        locations[part.name] = {"offset": at, "nbytes": part.nbytes, "crc32": checksum}
        at += part.nbytes
    return locations, at


def open_checkpoint(prefix: str) -> Checkpoint:
    """Opens a checkpoint of ours."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(DataLossError):  # a writer may have replaced the checkpoint after its index was read
            return Checkpoint(prefix)
    return Checkpoint(prefix)


class Checkpoint(CheckpointReader):
    """A checkpoint of ours, opened for reading: the file is mapped, and a tensor is checked when it is read."""

    def __init__(self, prefix: str) -> None:
        index = read_index(_index_path(prefix))
        self._tensors: dict[str, Any] = index["tensors"]
        super().__init__(
            prefix,
            {n: Entry(dtypes.as_dtype(t["dtype"]), tuple(t["shape"])) for n, t in self._tensors.items()},
        )
        self._data = self._map(Path(prefix).with_name(index["data"]), index["size"])

    def _map(self, file: Path, size: int) -> np.ndarray:
        try:
            found = file.stat().st_size
        except FileNotFoundError:
            raise DataLossError(
                f"checkpoint '{self.path}': its data file '{file}' is missing; "
                "copy it here together with the index, or restore another checkpoint"
            ) from None
        if found != size:
            raise DataLossError(
                f"checkpoint '{self.path}': its data file has {found} bytes and its index says {size}; "
                "it is truncated or another file, restore another checkpoint"
            )
        return map_file(file)

    def _read(self, name: str) -> np.ndarray:
        location, entry = self._tensors[name], self.entries[name]
        if entry.dtype is string:
            lengths = self._bytes(name, location["lengths"]).view(np.int64).reshape(entry.shape)
            return decode_strings(name, self._bytes(name, location), lengths)
        return decode(entry.dtype, entry.shape, self._bytes(name, location))

    def _bytes(self, name: str, location: Mapping[str, int]) -> np.ndarray:
        data = self._data[location["offset"] : location["offset"] + location["nbytes"]]
        if zlib.crc32(data.data) != location["crc32"]:
            raise DataLossError(
                f"checkpoint '{self.path}': the bytes of tensor '{name}' have changed since they were written; "
                "restore another checkpoint"
            )
        return data

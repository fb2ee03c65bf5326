"""Reads TensorFlow's checkpoints, version 2, which are ours, too.

`PREFIX.index` is a table from tensor names to BundleEntryProto, with a BundleHeaderProto under the empty name;
`PREFIX.data-00000-of-00001` and so on hold the elements. Layout: tensorflow/core/util/tensor_bundle.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from timberframe.saving.files import map_file
from timberframe.saving.reader import CheckpointReader, Entry
from timberframe.saving.snappy import read_varint
from timberframe.saving.table import read_table
from timberframe.saving.tensor_slices import sizes_of, slice_key, slice_range, tile
from timberframe_core import dtypes
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.dtypes import string
from timberframe_core.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import decode_shape
from timberframe_core.shapes import format_shape, num_elements

INDEX = ".index"
VERSION = 1  # of the format: kTensorBundleVersion


def data_file(prefix: str, shard: int, count: int) -> Path:
    """Returns the file with the elements of some tensors."""
    return Path(f"{prefix}.data-{shard:05d}-of-{count:05d}")


def shard_count(prefix: str) -> int:
    """Returns how many data files the index of a checkpoint counts. Raises as reading the index does."""
    return _header(dict(read_table(Path(f"{prefix}{INDEX}").read_bytes()))).num_shards  # type: ignore[no-any-return] # a message


def _header(table: dict[bytes, bytes]) -> Any:
    return messages.as_message(table.pop(b"", b""), messages.BundleHeaderProto, "header")


class TensorFlowBundle(CheckpointReader):
    """A checkpoint; its files are mapped, and a tensor is checked when it is read."""

    def __init__(self, prefix: str) -> None:
        self._protos: dict[str, Any] = {}
        self._slices: dict[bytes, bytes] = {}
        with open(f"{prefix}{INDEX}", "rb") as file:
            self._index, data = _identity(os.fstat(file.fileno())), file.read()
        try:
            entries = self._read_index(data)
        except OpError as e:
            raise type(e)(f"checkpoint '{prefix}': index file: {e.message}; restore another checkpoint") from None
        super().__init__(prefix, entries)
        self._shards: dict[int, np.ndarray] = {}
        self.complete = all(self._map_shard(i) for i in {p.shard_id for p in self._protos.values() if not p.slices})
        """Whether all data files were there. One that is missing is reported when a tensor of it is read."""

    def is_current(self) -> bool:
        """Returns whether the index that was read is still there, so that the data files are those that it means."""
        with contextlib.suppress(FileNotFoundError):
            return _identity(os.stat(f"{self.path}{INDEX}")) == self._index
        return False

    def _read_index(self, data: bytes) -> dict[str, Entry]:
        table = dict(read_table(data))
        header = _header(table)
        self._shard_count: int = header.num_shards
        if header.version.min_consumer > VERSION:
            raise UnimplementedError(f"has version {header.version.producer}; {VERSION} is the latest one known here")
        if header.endianness or sys.byteorder != "little":
            raise UnimplementedError("was written, or is read, on a big-endian machine; only little-endian is known")
        entries: dict[str, Entry] = {}
        for key, value in table.items():
            if key.startswith(b"\0"):
                self._slices[key] = value
                continue
            name = key.decode(errors="replace")
            proto = messages.as_message(value, messages.BundleEntryProto, f"entry '{name}'")
            entries[name] = _entry(proto, f"entry '{name}'")
            self._protos[name] = proto
        return entries

    def _read(self, name: str) -> np.ndarray:
        proto, entry = self._protos[name], self.entries[name]
        return self._joined(name, proto, entry) if proto.slices else self._value(name, proto, entry)

    def _joined(self, name: str, proto: Any, entry: Entry) -> np.ndarray:
        """Returns the value of a partitioned variable, whose slices are stored one by one."""
        parts = [slice_range(part, entry.shape) for part in proto.slices]
        if None in parts or not tile([p for p in parts if p is not None], entry.shape):
            raise self._damaged(name, f"its slices do not make up its shape {list(entry.shape)}")
        found = [self._slice(name, part) for part in proto.slices]
        whole = np.empty(entry.shape, entry.dtype.numpy)  # allocated only after as many bytes were read
        for where, value in zip(parts, found, strict=True):
            assert where is not None
            if value.dtype != whole.dtype or value.shape != sizes_of(where):
                raise self._damaged(name, f"one of its slices is {value.dtype.name}{list(value.shape)}")
            whole[where] = value
        return whole

    def _slice(self, name: str, part: Any) -> np.ndarray:
        stored = self._slices.get(slice_key(name, part))
        if stored is None:
            raise self._damaged(name, "one of its slices is missing")
        own = messages.as_message(stored, messages.BundleEntryProto, f"slice of '{name}'")
        return self._value(name, own, _entry(own, f"slice of '{name}'"))

    def slices(self, name: str) -> list[Any]:
        return list(self._protos[name].slices)

    def _read_slice(self, name: str, part: Any) -> np.ndarray:
        if slice_key(name, part) not in self._slices:
            return super()._read_slice(name, part)
        value, where = self._slice(name, part), slice_range(part, self.entries[name].shape)
        if where is None or value.dtype != self.entries[name].dtype.numpy or value.shape != sizes_of(where):
            raise self._damaged(name, f"one of its slices is {value.dtype.name}{list(value.shape)}")
        return value

    def _value(self, name: str, proto: Any, entry: Entry) -> np.ndarray:
        if entry.dtype.name in ("variant", "resource"):
            raise UnimplementedError(
                f"checkpoint '{self.path}': tensor '{name}' is a {entry.dtype.name}; only numbers and strings are read"
            )
        data = self._bytes(name, proto)
        if entry.dtype is string:
            return self._strings(name, proto, entry, data)
        if proto.size != num_elements(entry.shape) * entry.dtype.size:
            raise self._damaged(name, f"{proto.size} bytes do not hold its shape {format_shape(tuple(entry.shape))}")
        self._check(name, proto, crc32c(data))
        return data.view(entry.dtype.numpy).reshape(entry.shape)

    def _bytes(self, name: str, proto: Any) -> np.ndarray:
        if not 0 <= proto.shard_id < self._shard_count or proto.offset < 0 or proto.size < 0:
            raise self._damaged(
                name,
                f"it is {proto.size} bytes at {proto.offset} of file {proto.shard_id} of {self._shard_count}",
            )
        if not self._map_shard(proto.shard_id):
            missing = data_file(self.path, proto.shard_id, self._shard_count)
            raise DataLossError(
                f"checkpoint '{self.path}': its data file '{missing}' is missing; "
                "copy it here together with the index, or restore another checkpoint"
            )
        data = self._shards[proto.shard_id][proto.offset : proto.offset + proto.size]
        if len(data) != proto.size:
            raise self._damaged(name, f"its {proto.size} bytes at {proto.offset} run past the end of the data file")
        return data

    def _map_shard(self, shard: int) -> bool:
        """Maps a data file, if it is there and not mapped yet; whether it is mapped."""
        if shard not in self._shards and 0 <= shard < self._shard_count:
            with contextlib.suppress(FileNotFoundError):
                self._shards[shard] = map_file(data_file(self.path, shard, self._shard_count))
        return shard in self._shards

    def _strings(self, name: str, proto: Any, entry: Entry, data: np.ndarray) -> np.ndarray:
        """Returns lengths as varints, a checksum of the lengths, and the bytes of all elements."""
        raw, at = data.tobytes(), 0
        lengths = []
        for _ in range(num_elements(entry.shape)):
            length, at = read_varint(raw, at)
            lengths.append(length)
        checksum = crc32c(b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths))
        stored = raw[at : at + 4]
        at += 4
        if stored != struct.pack("<I", masked(checksum)) or len(raw) - at != sum(lengths):
            raise self._damaged(name, "the lengths of its strings are wrong")
        self._check(name, proto, crc32c(raw[at:], crc32c(stored, checksum)))
        result = np.empty(len(lengths), object)
        for i, length in enumerate(lengths):
            result[i] = raw[at : at + length]
            at += length
        return result.reshape(entry.shape)

    def _check(self, name: str, proto: Any, checksum: int) -> None:
        if masked(checksum) != proto.crc32c:
            raise self._damaged(name, "its checksum is wrong")

    def _damaged(self, name: str, fact: str) -> DataLossError:
        return DataLossError(
            f"checkpoint '{self.path}': tensor '{name}': {fact}; it is damaged or truncated, restore another checkpoint"
        )


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    """Returns what a file that takes the place of another one has different."""
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _entry(proto: Any, what: str) -> Entry:
    """Returns the entry's description of its tensor; DataLossError if no tensor can be like that."""
    try:
        dtype, shape = dtypes.as_dtype(proto.dtype).base_dtype, decode_shape(proto.shape, what)
    except InvalidArgumentError as e:
        raise DataLossError(f"{what}: {e}; the file is damaged") from None
    sizes = tuple(d for d in shape or () if d is not None)
    if shape is None or len(sizes) < len(shape):
        raise DataLossError(f"{what}: its shape is {format_shape(shape)}; the file is damaged")
    return Entry(dtype, sizes)

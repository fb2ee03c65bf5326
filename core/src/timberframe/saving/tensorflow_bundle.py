"""TensorFlow's checkpoints, version 2, for reading.

`PREFIX.index` is a table from tensor names to BundleEntryProto, with a BundleHeaderProto under the empty name;
`PREFIX.data-00000-of-00001` and so on hold the elements. Layout: tensorflow/core/util/tensor_bundle.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from timberframe import dtypes
from timberframe.dtypes import string
from timberframe.errors import DataLossError, OpError, UnimplementedError
from timberframe.graphdef.messages import BundleEntryProto, BundleHeaderProto, as_message
from timberframe.saving.crc32c import crc32c, masked
from timberframe.saving.reader import CheckpointReader, Entry
from timberframe.saving.snappy import read_varint
from timberframe.saving.table import read_table
from timberframe.shapes import format_shape, num_elements

INDEX = ".index"
_VERSION = 1  # of the format: kTensorBundleVersion


class TensorFlowBundle(CheckpointReader):
    """A checkpoint that TensorFlow wrote; its files are mapped, and a tensor is checked when it is read."""

    def __init__(self, prefix: str) -> None:
        self._protos: dict[str, Any] = {}
        self._slices: dict[bytes, bytes] = {}
        try:
            entries = self._read_index(Path(f"{prefix}{INDEX}").read_bytes())
        except OpError as e:
            raise type(e)(f"checkpoint '{prefix}': index file: {e.message}; restore another checkpoint") from None
        super().__init__(prefix, entries)
        self._shards: dict[int, np.ndarray] = {}

    def _read_index(self, data: bytes) -> dict[str, Entry]:
        table = dict(read_table(data))
        header = as_message(table.pop(b"", b""), BundleHeaderProto, "header")
        self._shard_count: int = header.num_shards
        if header.version.min_consumer > _VERSION:
            raise UnimplementedError(f"has version {header.version.producer}; {_VERSION} is the latest one known here")
        if header.endianness or sys.byteorder != "little":
            raise UnimplementedError("was written, or is read, on a big-endian machine; only little-endian is known")
        entries: dict[str, Entry] = {}
        for key, value in table.items():
            if key.startswith(b"\0"):
                self._slices[key] = value
                continue
            name = key.decode(errors="replace")
            proto = as_message(value, BundleEntryProto, f"entry '{name}'")
            shape = tuple(d.size for d in proto.shape.dim)
            entries[name] = Entry(dtypes.as_dtype(proto.dtype), shape)
            self._protos[name] = proto
        return entries

    def read(self, name: str) -> np.ndarray:
        proto, entry = self._protos[name], self.entries[name]
        return self._joined(name, proto, entry) if proto.slices else self._value(name, proto, entry)

    def _joined(self, name: str, proto: Any, entry: Entry) -> np.ndarray:
        """The value of a partitioned variable, whose slices are stored one by one."""
        whole = np.empty(entry.shape, entry.dtype.numpy)
        for part in proto.slices:
            stored = self._slices.get(slice_key(name, part))
            if stored is None:
                raise self._damaged(name, "one of its slices is missing")
            own = as_message(stored, BundleEntryProto, f"slice of '{name}'")
            found = self._value(name, own, Entry(entry.dtype, tuple(d.size for d in own.shape.dim)))
            whole[tuple(_range(e) for e in part.extent)] = found
        return whole

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
        shard = self._shards.get(proto.shard_id)
        if shard is None:
            path = Path(f"{self.path}.data-{proto.shard_id:05d}-of-{self._shard_count:05d}")
            if not path.exists():
                raise DataLossError(
                    f"checkpoint '{self.path}': its data file '{path}' is missing; "
                    "copy it here together with the index, or restore another checkpoint"
                )
            empty = path.stat().st_size == 0  # which cannot be mapped
            shard = np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, "r")
            self._shards[proto.shard_id] = shard
        data = shard[proto.offset : proto.offset + proto.size]
        if len(data) != proto.size:
            raise self._damaged(name, f"its {proto.size} bytes at {proto.offset} run past the end of the data file")
        return data

    def _strings(self, name: str, proto: Any, entry: Entry, data: np.ndarray) -> np.ndarray:
        """Lengths as varints, a checksum of the lengths, and the bytes of all elements."""
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
            f"checkpoint '{self.path}': tensor '{name}': {fact}; "
            "the checkpoint is damaged or truncated, restore another one"
        )


def _range(extent: Any) -> slice:
    return slice(extent.start, extent.start + extent.length) if extent.HasField("length") else slice(None)


def slice_key(name: str, part: Any) -> bytes:
    """The key under which a slice of a tensor is stored: a zero, the name, and start and length for each dimension.

    Numbers and strings are coded so that their order is that of the bytes: tensorflow/core/lib/strings/ordered_code.
    """
    escaped = name.encode().replace(b"\0", b"\0\xff")  # names are UTF-8, which has no byte 0xff
    code = b"\0" + escaped + b"\0\1" + _unsigned(len(part.extent))
    for extent in part.extent:
        code += _signed(extent.start) + _signed(extent.length if extent.HasField("length") else -1)
    return code


def _unsigned(value: int) -> bytes:
    """The number of bytes, and these, the highest first."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Seven bits a byte, the highest first; as many ones as there are bytes stand before, zeros if negative."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    header = ((1 << size) - 1) << (7 * size)
    sign_bits = value & ((1 << (8 * size)) - 1)
    return (header ^ sign_bits).to_bytes(size, "big")

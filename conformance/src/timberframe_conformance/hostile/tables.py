"""Writes TensorFlow's checkpoints, version 2, in which any number can be wrong.

The reader is `timberframe.saving.table`; the layout is LevelDB's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from timberframe_core.crc32c import crc32c, masked

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_HANDLES = 40


def varint(value: int) -> bytes:
    """Returns an integer in groups of seven bits, low ones first; negative ones as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@dataclass
class Row:
    """An entry of a block: how many bytes of the key before it shares, the rest of the key, the value.

    fresh, size: their lengths as stored, if wrong.
    """

    key: bytes
    value: bytes
    shared: int = 0
    fresh: int | None = None
    size: int | None = None

    def encode(self) -> bytes:
        fresh = len(self.key) if self.fresh is None else self.fresh
        size = len(self.value) if self.size is None else self.size
        return varint(self.shared) + varint(fresh) + varint(size) + self.key + self.value


@dataclass
class Table:
    """A table of one block. The other fields are None if they are correct."""

    rows: list[Row]
    compressed: bool = False
    restarts: int | None = None
    handle: tuple[int, int] | None = None
    index_handle: tuple[int, int] | None = None
    kind: int | None = None
    damage: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of the stored block to change before its checksum is computed."""

    def encode(self) -> bytes:
        """Returns the file; checksums are correct even if other fields are wrong."""
        block = self._block([r.encode() for r in self.rows], self.restarts)
        stored = _compress(block) if self.compressed else block
        for at, change in self.damage:
            at %= len(stored)
            stored = stored[:at] + bytes([stored[at] ^ change]) + stored[at + 1 :]
        data = _with_trailer(stored, int(self.compressed) if self.kind is None else self.kind)
        offset, size = self.handle or (0, len(stored))
        last = self.rows[-1].key if self.rows else b""
        index = self._block([Row(last, varint(offset) + varint(size)).encode()])
        at = len(data)
        data += _with_trailer(index, 0)
        meta_at = len(data)
        data += _with_trailer(self._block([]), 0)
        index_at, index_size = self.index_handle or (at, len(index))
        footer = varint(meta_at) + varint(8) + varint(index_at) + varint(index_size)
        return data + footer.ljust(_HANDLES, b"\0")[:_HANDLES] + _MAGIC

    @staticmethod
    def _block(rows: Sequence[bytes], restarts: int | None = None) -> bytes:
        return b"".join(rows) + struct.pack("<I", 0) + struct.pack("<I", 1 if restarts is None else restarts)


def _with_trailer(block: bytes, kind: int) -> bytes:
    tail = bytes([kind])
    return block + tail + struct.pack("<I", masked(crc32c(block + tail)))


def _compress(data: bytes) -> bytes:
    """Snappy: runs of zeros as copies of the preceding bytes, everything else as literals."""
    out, at = bytearray(varint(len(data))), 0
    while at < len(data):
        run = len(data[at : at + 60]) - len(data[at : at + 60].lstrip(b"\0"))
        if run >= 4 and at:
            out += bytes([(run - 1) << 2 | 2, 1, 0]) if data[at - 1] == 0 else _literal(data[at : at + run])
            at += run
        else:
            out += _literal(data[at : at + 1])
            at += 1
    return bytes(out)


def _literal(data: bytes) -> bytes:
    return bytes([(len(data) - 1) << 2]) + data

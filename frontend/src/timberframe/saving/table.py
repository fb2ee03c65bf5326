"""Sorted tables of keys and values in one file, as LevelDB lays them out and TensorFlow's checkpoints use them.

Blocks of entries, an index block with their offsets, and a footer with that block's offset. In a block a key omits the
prefix that it shares with the key before. Each block has a checksum and may be compressed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from timberframe.saving.snappy import expand, read_varint, write_varint
from timberframe_core.crc32c import crc32c, masked
from timberframe_core.errors import DataLossError, UnimplementedError

_FOOTER = 48  # two block handles, filled up, and the magic number
_MAGIC = 0xDB4775248B80FB57
_TRAILER = 5  # kind of compression and checksum, after each block
_BLOCK = 1 << 16  # bytes of entries after which another block begins


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values in order; DataLossError where `data` is no table, or a damaged one."""
    if len(data) < _FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
        raise DataLossError(
            f"{len(data)} bytes without the mark at the end of a table; it is truncated or another file"
        )
    _, at = _handle(data[-_FOOTER:], 0)
    index, _ = _handle(data[-_FOOTER:], at)
    for _, handle in _entries(_block(data, *index)):
        yield from _entries(_block(data, *_handle(handle, 0)[0]))


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Offset and size of a block, and where the handle ends."""
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _block(data: bytes, offset: int, size: int) -> bytes:
    content, trailer = data[offset : offset + size], data[offset + size : offset + size + _TRAILER]
    if len(trailer) < _TRAILER:
        raise DataLossError(f"a block of {size} bytes at {offset} runs past the end; the file is truncated")
    kind, checksum = struct.unpack("<BI", trailer)
    if masked(crc32c(content + trailer[:1])) != checksum:
        raise DataLossError(f"the block at {offset} has a wrong checksum; the file is damaged")
    if kind == 0:
        return content
    if kind == 1:
        return expand(content)
    raise UnimplementedError(f"the block at {offset} has compression {kind}; only none and snappy are known")


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = struct.unpack_from("<I", block, len(block) - 4)[0] if len(block) >= 4 else 1 << 32
    end, at, key = len(block) - 4 * (restarts + 1), 0, b""
    if end < 0:
        raise DataLossError(f"a block of {len(block)} bytes has no room for what ends it; the file is damaged")
    while at < end:
        shared, at = read_varint(block, at)
        fresh, at = read_varint(block, at)
        size, at = read_varint(block, at)
        if shared > len(key) or at + fresh + size > end:
            raise DataLossError(
                f"an entry of {fresh} and {size} bytes, {shared} of its key being those before, does not fit its block "
                f"of {end} bytes; the file is damaged"
            )
        key = key[:shared] + block[at : at + fresh]
        at += fresh
        yield key, block[at : at + size]
        at += size


def write_table(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns the file of these keys and values, which come in the order of their keys. Nothing in it is compressed."""
    made, index, waiting, size = bytearray(), [], list[tuple[bytes, bytes]](), 0
    for entry in entries:
        if size > _BLOCK:
            index.append((waiting[-1][0], _add_block(made, waiting)))
            waiting, size = [], 0
        waiting.append(entry)
        size += len(entry[0]) + len(entry[1])
    if waiting:
        index.append((waiting[-1][0], _add_block(made, waiting)))
    handles = _add_block(made, []) + _add_block(made, index)
    return bytes(made) + handles.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC)


def _add_block(made: bytearray, entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Adds a block, all of whose keys are whole, and gives its handle."""
    content, starts = bytearray(), []
    for key, value in entries:
        starts.append(len(content))
        content += b"\0" + write_varint(len(key)) + write_varint(len(value)) + key + value
    starts = starts or [0]
    content += struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))
    handle = write_varint(len(made)) + write_varint(len(content))
    made += content + b"\0" + struct.pack("<I", masked(crc32c(bytes(content) + b"\0")))
    return handle

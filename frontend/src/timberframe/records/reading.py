"""Records of TFRecord files in random order, as RecordInput gives them."""

from __future__ import annotations

import glob
import gzip
import random
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from timberframe_core.errors import DataLossError, NotFoundError
from timberframe_core.ops.definition.opdef import Attrs
from timberframe_core.plugin.state import Position

_PIECE = 1 << 20  # bytes that are read at a time


class RecordReader:
    """All records of the files that match a pattern, round after round; a session has one for each RecordInput.

    A record is drawn from a buffer of `file_buffer_size`, which the files fill one after the other. The order of the
    files is drawn again in each round and, as in TensorFlow, then turned by file_shuffle_shift_ratio of their number
    more than in the last one.
    """

    def __init__(self, attrs: Attrs) -> None:
        self._attrs = attrs
        self._lock = threading.Lock()
        self._records = self._rounds()
        self._given = 0  # records since the first round began

    def batch(self, check: Callable[[], None]) -> np.ndarray:
        """Returns the next batch_size records. check: raises where the run was cancelled.

        Raises NotFoundError where no file matches or none has a record, DataLossError for a damaged one.
        """
        found = np.empty(self._attrs["batch_size"], object)
        with self._lock:
            for i in range(len(found)):
                check()
                try:
                    found[i] = self._next()
                except BaseException:
                    self._begin()  # one that raised gives nothing more
                    raise
        return found

    def position(self) -> Position:
        """Returns how many records it has given."""
        with self._lock:
            return {"records": np.array(self._given)}

    def set_position(self, position: Position) -> None:
        """Goes on after so many records; what comes before them is read again."""
        with self._lock:
            self._begin()
            while self._given < int(position["records"]):
                self._next()

    def _begin(self) -> None:
        self._records, self._given = self._rounds(), 0

    def _next(self) -> bytes:
        record = next(self._records)
        self._given += 1
        return record

    def _rounds(self) -> Iterator[bytes]:
        pattern, number = self._attrs["file_pattern"], 0
        while True:
            files = sorted(glob.glob(pattern))
            if not files:
                raise NotFoundError(f"no file matches file_pattern '{pattern}'; one at least must")
            chance = random.Random(self._attrs["file_random_seed"] + number)
            chance.shuffle(files)
            shift = int(self._attrs["file_shuffle_shift_ratio"] * number * len(files)) % len(files)
            records = self._shuffled([*files[shift:], *files[:shift]], chance)
            first = next(records, None)
            if first is None:
                raise NotFoundError(f"the files of file_pattern '{pattern}' have no record; one at least is required")
            yield first
            yield from records
            number += 1

    def _shuffled(self, files: list[str], chance: random.Random) -> Iterator[bytes]:
        buffer: list[bytes] = []
        for path in files:
            for record in read_records(path, self._attrs["compression_type"]):
                buffer.append(record)
                if len(buffer) >= self._attrs["file_buffer_size"]:
                    yield _draw(buffer, chance)
        while buffer:
            yield _draw(buffer, chance)


def _draw(buffer: list[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(buffer))
    buffer[at], buffer[-1] = buffer[-1], buffer[at]
    return buffer.pop()


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """Yields the records of a TFRecord file, in order. compression: '', 'ZLIB' or 'GZIP'.

    Raises NotFoundError for a file that cannot be read, DataLossError for one that is damaged.
    """
    try:
        with open(path, "rb") as raw:
            yield from records_in(_decompressed(raw, compression), path)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataLossError(f"file '{path}' is damaged ({error}); it must be compressed by {compression}") from None
    except OSError as error:
        raise NotFoundError(f"file '{path}' cannot be read: {error}") from None


def records_in(file: Any, path: str) -> Iterator[bytes]:
    """Yields the records of an open TFRecord file, in order.

    path: how errors name it. Raises DataLossError for damage.
    """
    while head := file.read(12):
        yield _record(path, file, head)


def _record(path: str, file: Any, head: bytes) -> bytes:
    """Returns one record: its length and that one's checksum, then its bytes and theirs."""
    from timberframe_core.crc32c import crc32c, masked  # file formats are a layer above

    if len(head) == 12:
        length, checksum = struct.unpack("<QI", head)
        if masked(crc32c(head[:8])) == checksum:
            data = _read(file, length)
            tail = file.read(4)
            if len(data) == length and len(tail) == 4 and masked(crc32c(data)) == struct.unpack("<I", tail)[0]:
                return data
    raise DataLossError(f"file '{path}' has a damaged record; its length and bytes must have their checksums")


def _read(file: Any, size: int) -> bytes:
    """Returns the next `size` bytes, or what is left; a damaged size takes no more memory than the file has bytes."""
    parts: list[bytes] = []
    while size and (part := file.read(min(size, _PIECE))):
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class _Inflated:
    """A ZLIB stream, read piece by piece."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._stream = zlib.decompressobj()
        self._ready = b""

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes, or what is left."""
        while len(self._ready) < size:
            piece = self._stream.unconsumed_tail or self._raw.read(65_536)
            if not piece:
                self._ready += self._stream.flush()
                break
            self._ready += self._stream.decompress(piece, _PIECE)
        found, self._ready = self._ready[:size], self._ready[size:]
        return found


def _decompressed(raw: BinaryIO, compression: str) -> Any:
    if compression == "GZIP":
        return gzip.GzipFile(fileobj=raw)
    return _Inflated(raw) if compression == "ZLIB" else raw

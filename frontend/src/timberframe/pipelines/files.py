"""Pipelines of what files hold: lines, records of one length."""

from __future__ import annotations

import gzip
import zlib
from abc import abstractmethod
from typing import Any, BinaryIO

import numpy as np

from timberframe.pipelines.base import Block, Context, Cursor, Element, Pipeline, State
from timberframe_core.dtypes import string
from timberframe_core.errors import DataLossError, InvalidRecordsError, NotFoundError, OpError, PermissionDeniedError
from timberframe_core.plugin.host_ops import HostCall

_LEAST_PIECE = 1 << 18
"""Bytes that are read at once, unless more are asked for."""


class Files(Pipeline):
    """The pieces of some files, one file after the other. compression: "", "ZLIB" or "GZIP"."""

    def __init__(self, call: HostCall, names: Any, compression: Any, buffer_size: int) -> None:
        super().__init__(call, [string], [()])
        self.names = [name.decode() for name in np.ravel(names).tolist()]
        kind = np.asarray(compression).item()
        self.compression = kind.decode() if isinstance(kind, bytes) else kind
        if self.compression not in ("", "ZLIB", "GZIP"):
            raise call.error(f"compression_type is {self.compression!r}; it must be '', 'ZLIB' or 'GZIP'")
        self.piece = max(buffer_size, _LEAST_PIECE)

    def begin(self, context: Context, path: str) -> Cursor:
        return _FilesCursor(self)

    @abstractmethod
    def reader(self, data: Data) -> Reader:
        """Returns what takes the pieces out of the data of a file."""


class Data:
    """The bytes of a file, decompressed, as far as they have been read and not taken. start: where `held` begins."""

    def __init__(self, pipeline: Files, name: str, start: int) -> None:
        self.name, self.start = name, start
        self.held = b""
        self.ended = False
        self._piece = pipeline.piece
        try:
            self._file = _open(name, pipeline.compression)
            self._skip(start)
        except FileNotFoundError:
            raise pipeline.error(f"file '{name}' does not exist", NotFoundError) from None
        except PermissionError:
            raise pipeline.error(f"file '{name}' may not be read", PermissionDeniedError) from None
        except (OSError, zlib.error, EOFError) as e:
            raise pipeline.error(f"file '{name}' cannot be read: {e}", NotFoundError) from None

    def _skip(self, count: int) -> None:
        if self._file.seekable() and not isinstance(self._file, _Inflated):
            self._file.seek(count)
            return
        while count and (part := self._file.read(min(count, self._piece))):
            count -= len(part)

    def more(self, least: int = 1) -> bool:
        """Reads on until at least so many bytes are held; False where the file has fewer."""
        parts, count = [self.held], len(self.held)
        while count < least and not self.ended:
            try:
                part = self._file.read(max(self._piece, least - count))
            except (OSError, zlib.error, EOFError) as e:
                raise DataLossError(
                    f"file '{self.name}' cannot be read on from byte {self.start + count}: {e}"
                ) from None
            self.ended = not part
            parts.append(part)
            count += len(part)
        self.held = b"".join(parts) if len(parts) > 1 else self.held
        return count >= least

    def take(self, count: int) -> bytes:
        """Takes so many of the bytes that are held."""
        found, self.held = self.held[:count], self.held[count:]
        self.start += count
        return found

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Reader:
    """Takes pieces out of the data of a file."""

    def __init__(self, data: Data) -> None:
        self.data = data

    @abstractmethod
    def read(self, count: int) -> list[bytes]:
        """Up to `count` of the next pieces, none at the end of the file."""

    def offset(self) -> int:
        """Returns where the next piece begins."""
        return self.data.start


class _FilesCursor(Cursor):
    fresh = True

    def __init__(self, pipeline: Files) -> None:
        self._pipeline = pipeline
        self._number = -1
        self._reader: Reader | None = None
        self._error: OpError | None = None

    def next(self) -> Element | None:
        found = self._read(1)
        return (np.array(found[0], object),) if found else None

    def block(self, count: int) -> Block | None:
        found = self._read(count)
        if not found:
            return None
        return Block(len(found), lambda: [np.array(found, object)])

    def _read(self, count: int) -> list[bytes]:
        while True:
            if self._reader is None:
                if self._number + 1 >= len(self._pipeline.names):
                    return []
                self._number += 1
                self._open(0)
            assert self._reader is not None
            try:
                found = self._reader.read(count)
            except OpError as e:
                self._end_file()
                raise self._pipeline.error(e.message, type(e)) from None
            if found:
                return found
            self._end_file()

    def _open(self, start: int) -> None:
        self._reader = self._pipeline.reader(Data(self._pipeline, self._pipeline.names[self._number], start))

    def _end_file(self) -> None:
        if self._reader is not None:
            self._reader.data.close()
            self._reader = None

    def position(self) -> State:
        return {"number": self._number, "offset": None if self._reader is None else self._reader.offset()}

    def set_position(self, state: State) -> None:
        self._end_file()
        self._number = state["number"]
        if state["offset"] is not None:
            self._open(state["offset"])

    def close(self) -> None:
        self._end_file()


class Lines(Files):
    """Lines without their ends, and without carriage returns anywhere, as TensorFlow reads them."""

    def reader(self, data: Data) -> Reader:
        return _LineReader(data)


class _LineReader(Reader):
    """`_lines` are those taken out of the data, of which `_at` were given; `_offset` is where the next one begins."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self._lines: list[bytes] = []
        self._at = 0
        self._offset = data.start

    def read(self, count: int) -> list[bytes]:
        if self._at >= len(self._lines) and not self._split():
            return []
        found = self._lines[self._at : self._at + count]
        self._at += len(found)
        self._offset += sum(map(len, found)) + len(found)
        return [x.replace(b"\r", b"") for x in found] if self._returns else found

    def _split(self) -> bool:
        data = self.data
        while True:
            cut = data.held.rfind(b"\n")
            if cut >= 0:
                self._lines = data.take(cut + 1)[:-1].split(b"\n")
                break
            if not data.more(len(data.held) + 1):
                if not data.held:
                    return False
                self._lines = [data.take(len(data.held))]
                break
        self._at = 0
        self._returns = any(b"\r" in x for x in self._lines)
        return True

    def offset(self) -> int:
        return self._offset


class FixedRecords(Files):
    """Records of `size` bytes between a header and a footer."""

    def __init__(self, *given: Any, header: int, size: int, footer: int) -> None:
        super().__init__(*given)
        self.header, self.record, self.footer = header, size, footer
        if size < 1:
            raise self.error(f"record_bytes is {size}; it must be greater than zero")
        if header < 0 or footer < 0:
            raise self.error(f"header_bytes is {header} and footer_bytes {footer}; they must not be negative")

    def reader(self, data: Data) -> Reader:
        return _FixedReader(data, self)


class _FixedReader(Reader):
    def __init__(self, data: Data, pipeline: FixedRecords) -> None:
        super().__init__(data)
        self._pipeline = pipeline
        if not data.start and pipeline.header:
            if not data.more(pipeline.header):
                raise InvalidRecordsError(
                    f"file '{data.name}' has {len(data.held)} bytes; its header alone has {pipeline.header}"
                )
            data.take(pipeline.header)

    def read(self, count: int) -> list[bytes]:
        data, size, footer = self.data, self._pipeline.record, self._pipeline.footer
        if len(data.held) < size + footer:
            data.more(size + footer)
        there = len(data.held) - footer
        found = min(count, there // size)
        if found < 1:
            if there not in (0, -footer):
                raise InvalidRecordsError(
                    f"file '{data.name}' has {len(data.held)} bytes after its last whole record; "
                    f"records of {size} bytes and a footer of {footer} are required"
                )
            return []
        text = data.take(found * size)
        return [text[i : i + size] for i in range(0, len(text), size)]


def _open(name: str, compression: str) -> Any:
    if compression == "GZIP":
        return gzip.open(name, "rb")
    file = open(name, "rb")  # noqa: SIM115 - `Data.close` closes it
    return _Inflated(file) if compression else file


class _Inflated:
    """A file of zlib data, as the bytes that were compressed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()

    def seekable(self) -> bool:
        return False

    def read(self, size: int) -> bytes:
        while True:
            packed = self._inflate.unconsumed_tail or self._file.read(size)
            made = self._inflate.decompress(packed, size) if packed else self._inflate.flush()
            if made or not packed:
                return made

    def close(self) -> None:
        self._file.close()

"""Writing of TFRecord files."""

from __future__ import annotations

import gzip
import os
import struct
import threading
import zlib
from typing import Any, BinaryIO

from timberframe_core.crc32c import crc32c, masked
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


COMPRESSIONS = {
    TFRecordCompressionType.NONE: "",
    TFRecordCompressionType.ZLIB: "ZLIB",
    TFRecordCompressionType.GZIP: "GZIP",
}


class TFRecordOptions:
    """Settings of a TFRecord file. compression_type: "", "ZLIB" or "GZIP", or one of TFRecordCompressionType.

    compression_level: 0 (none) to 9 (best), -1 for the library's own. The others are TensorFlow's and change nothing.
    """

    compression_type_map = COMPRESSIONS

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = compression_name(compression_type)
        self.compression_level = -1 if compression_level is None else compression_level

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Returns the name of the compression of options, of a type, or "" for None."""
        return compression_name(options)


def compression_name(given: Any) -> str:
    """ "", "ZLIB" or "GZIP" of options, a name or a type; InvalidArgumentError for anything else."""
    if isinstance(given, TFRecordOptions):
        return given.compression_type
    name = "" if given is None else COMPRESSIONS.get(given, given)
    if name not in COMPRESSIONS.values():
        raise InvalidArgumentError(f"TFRecordOptions: compression_type is {given!r}; '', 'ZLIB' or 'GZIP' is required")
    return str(name)


class _Deflated:
    """A file whose bytes are written as one ZLIB stream."""

    def __init__(self, file: BinaryIO, level: int) -> None:
        self._file = file
        self._stream = zlib.compressobj(level)

    def write(self, data: bytes) -> None:
        self._file.write(self._stream.compress(data))

    def flush(self) -> None:
        self._file.write(self._stream.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        self._file.write(self._stream.flush())
        self._file.close()


def frame(record: bytes) -> bytes:
    """Returns a record as it stands in a file: its length and that one's checksum, then its bytes and theirs."""
    length = struct.pack("<Q", len(record))
    return b"".join(
        (length, struct.pack("<I", masked(crc32c(length))), record, struct.pack("<I", masked(crc32c(record))))
    )


class TFRecordWriter:
    """Writes records to a TFRecord file, which it replaces. options: a TFRecordOptions or the compression's name.

    Threads may share one. Raises NotFoundError where the file cannot be made.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        self._path = os.fspath(path)
        kind = compression_name(options)
        level = options.compression_level if isinstance(options, TFRecordOptions) else -1
        try:
            file = open(self._path, "wb")  # noqa: SIM115 - the object closes it
        except OSError as e:
            raise NotFoundError(
                f"TFRecordWriter: '{self._path}' cannot be written: {e.strerror}; its folder must exist"
            ) from e
        self._file: Any = file
        if kind == "GZIP":
            self._file = _Gzip(file, level)
        elif kind == "ZLIB":
            self._file = _Deflated(file, level)
        self._lock = threading.Lock()

    def write(self, record: Any) -> None:
        """Adds a record, bytes or a string."""
        data = record.encode() if isinstance(record, str) else bytes(record)
        with self._lock:
            if self._file is None:
                raise FailedPreconditionError(f"TFRecordWriter: '{self._path}' is closed; write before")
            self._file.write(frame(data))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        with self._lock:
            if self._file is not None:
                self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Gzip:
    """A file whose bytes are written through gzip; closing it closes the file, which GzipFile does not."""

    def __init__(self, file: BinaryIO, level: int) -> None:
        self._file = file
        self._stream = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6 if level < 0 else level)

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()
        self._file.flush()

    def close(self) -> None:
        self._stream.close()
        self._file.close()

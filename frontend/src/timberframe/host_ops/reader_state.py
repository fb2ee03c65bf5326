"""Readers as a session keeps them: the file that each is reading, and what it has counted."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from timberframe.host_ops.queue_state import Queue
from timberframe.records.reading import read_records
from timberframe_core.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnimplementedError,
    UnknownError,
)
from timberframe_core.plugin.contracts import CancelToken

Record = tuple[bytes, bytes]
Records = Callable[[bytes], Iterator[Record]]


class Reader:
    """Gives the records of the files that a queue names, one file after the other.

    records: those of a file, with their keys. whole: a file is one record, and finished with it; the state of such a
    reader can be saved.
    """

    def __init__(self, name: str, kind: str, records: Records, whole: bool) -> None:
        self.name = name
        self.kind = kind
        self._records = records
        self._whole = whole
        self._free = threading.Condition()
        self._busy = False
        self.reset()

    def __repr__(self) -> str:
        return f"reader '{self.name}'"

    def reset(self) -> None:
        """Forgets the file and the counts."""
        self._work = b""
        self._open: Iterator[Record] | None = None
        self._started = 0
        self.finished = 0
        """How many files were read to their end."""
        self.produced = 0
        """How many records were given."""

    @contextmanager
    def alone(self, cancel: CancelToken) -> Iterator[None]:
        """Keeps other threads from the reader; raises what cancels the run, also while another one reads."""
        with self._free:
            cancel.wait_for(self._free, lambda: not self._busy)
            self._busy = True
        try:
            yield
        finally:
            with self._free:
                self._busy = False
                self._free.notify_all()

    def read(self, count: int, queue: Queue, cancel: CancelToken) -> list[Record]:
        """At least one record and at most `count`, all of one file; waits for a file where it needs one.

        Raises OutOfRangeError where the queue is closed and empty, and what is wrong with a file; the next call then
        goes on with the next one.
        """
        found: list[Record] = []
        with self.alone(cancel):
            while len(found) < count:
                if self._open is None:
                    self._work = bytes(queue.take(1, False, cancel)[0][0][()])
                    self._open = _checked(self._work, self._records(self._work))
                    self._started += 1
                record = self._next(self._open)
                if record is not None:
                    found.append(record)
                    self.produced += 1
                if record is None or self._whole:
                    self._open, self.finished = None, self._started
                    if found:
                        break
        return found

    def _next(self, records: Iterator[Record]) -> Record | None:
        try:
            return next(records, None)
        except BaseException:
            self._open = None
            raise

    def state(self) -> bytes:
        """Returns a ReaderBaseState message; UnimplementedError for readers that may be inside a file."""
        self._check_saves()
        numbers = (self._started, self.finished, self.produced)
        fields = [bytes([8 * (i + 1)]) + _varint(n) for i, n in enumerate(numbers) if n]
        return b"".join([*fields, b"\x22" + _varint(len(self._work)) + self._work if self._work else b""])

    def restore(self, state: bytes) -> None:
        """Goes on from a state of a reader of this kind; InvalidArgumentError for anything else."""
        self._check_saves()
        numbers, work = _fields(self, state)
        if numbers[0] < numbers[1]:
            raise InvalidArgumentError(f"{self} gets a state with more files finished than begun; it is damaged")
        if numbers[0] != numbers[1]:
            raise InvalidArgumentError(f"{self} gets a state inside a file; a reader of whole files has none")
        self._started, self.finished, self.produced = numbers
        self._work, self._open = work, None

    def _check_saves(self) -> None:
        if not self._whole:
            raise UnimplementedError(f"{self} is a {self.kind}; the state of readers of whole files alone can be saved")


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def _fields(reader: Reader, state: bytes) -> tuple[list[int], bytes]:
    numbers, work, at = [0, 0, 0], b"", 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = state[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    try:
        while at < len(state):
            tag = varint()
            if tag in (8, 16, 24):
                numbers[tag // 8 - 1] = varint()
            elif tag == 0x22:
                size = varint()
                work, at = state[at : at + size], at + size
            else:
                raise IndexError
        if at > len(state):
            raise IndexError
    except IndexError:
        raise InvalidArgumentError(f"{reader} gets {state!r} as a state; one of reader_serialize is required") from None
    return numbers, work


def _checked(work: bytes, records: Iterator[Record]) -> Iterator[Record]:
    """Yields the records, with errors of the file system as ours."""
    try:
        yield from records
    except OSError as e:
        kind: type[OpError] = UnknownError
        if isinstance(e, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            kind = NotFoundError
        elif isinstance(e, PermissionError):
            kind = PermissionDeniedError
        raise kind(f"'{os.fsdecode(work)}': {e.strerror}; a file that can be opened is required") from None


def whole_files(work: bytes) -> Iterator[Record]:
    """Yields the whole file as one record, its name the key."""
    yield work, Path(os.fsdecode(work)).read_bytes()


def identities(work: bytes) -> Iterator[Record]:
    """Yields what the queue gave, as key and record."""
    yield work, work


def text_lines(skip: int) -> Records:
    """Returns the lines of a file without their ends, after `skip` of them; keys are `file:line`, counted from 1."""

    def records(work: bytes) -> Iterator[Record]:
        with open(os.fsdecode(work), "rb") as file:
            for number, line in enumerate(file, 1):
                if number > skip:
                    yield b"%s:%d" % (work, number), line.removesuffix(b"\n").removesuffix(b"\r")

    return records


def tf_records(compression: str) -> Records:
    """Returns the records of a TFRecord file; keys are `file:byte`, where the record begins."""

    def records(work: bytes) -> Iterator[Record]:
        at = 0
        for record in read_records(os.fsdecode(work), compression):
            yield b"%s:%d" % (work, at), record
            at += 16 + len(record)  # length, two checksums, bytes

    return records


def fixed_lengths(header: int, size: int, footer: int, hop: int, encoding: str) -> Records:
    """Records of `size` bytes that begin `hop` bytes apart; keys are `file:record`, counted from 0."""

    def records(work: bytes) -> Iterator[Record]:
        data = Path(os.fsdecode(work)).read_bytes()
        if encoding:
            try:
                data = zlib.decompress(data)
            except zlib.error as e:
                raise InvalidArgumentError(f"'{os.fsdecode(work)}': {e}; a ZLIB stream is required") from None
        last = len(data) - footer - size  # what is left after it is no record, as in TensorFlow
        for number, at in enumerate(range(header, last + 1, hop or size)):
            yield b"%s:%d" % (work, number), data[at : at + size]

    return records

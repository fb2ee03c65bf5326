"""Readers: ops that make records of the files that a queue names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timberframe.api.queues import QueueBase
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from timberframe.records.writing import TFRecordOptions

__all__ = [
    "FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader", "TextLineReader", "WholeFileReader",
]  # fmt: skip


class ReaderBase:
    """Makes records, each with a key, of the files that a queue names; use one of its subclasses.

    A reader lives in a session, as a queue does. supports_serialize: whether its state can be saved.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns the key and the value of the next record, string scalars. queue: a queue of
        names of files, or its handle.

        Running it waits for a file where it needs one, and raises OutOfRangeError where the queue is closed and empty.
        """
        key, value = apply_op("ReaderReadV2", [self._reader_ref, _handle(queue)], name=name)
        return key, value

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of the next records, string vectors: at most num_records, and fewer at the end of a file."""
        given = [self._reader_ref, _handle(queue), num_records]
        keys, values = apply_op("ReaderReadUpToV2", given, name=name)
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Returns how many records it has given, an int64 scalar."""
        made: Tensor = apply_op("ReaderNumRecordsProducedV2", [self._reader_ref], name=name)
        return made

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Returns how many files it has finished, an int64 scalar."""
        made: Tensor = apply_op("ReaderNumWorkUnitsCompletedV2", [self._reader_ref], name=name)
        return made

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Returns its state as a string; running it raises UnimplementedError for readers that may be inside a file."""
        made: Tensor = apply_op("ReaderSerializeStateV2", [self._reader_ref], name=name)
        return made

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Goes on from what `serialize_state` gave."""
        given = convert_to_tensor(state, string, "state")
        made: Operation = apply_op("ReaderRestoreStateV2", [self._reader_ref, given], name=name)
        return made

    def reset(self, name: str | None = None) -> Operation:
        """Makes the reader as it was at first."""
        made: Operation = apply_op("ReaderResetV2", [self._reader_ref], name=name)
        return made


def _handle(queue: Any) -> Any:
    return queue.queue_ref if isinstance(queue, QueueBase) else queue


class WholeFileReader(ReaderBase):
    """A reader whose records are whole files; a key is the file's name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("WholeFileReaderV2", name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """A reader whose records are lines without their ends; keys are ``file:line``, counted from 1.

    skip_header_lines: how many lines at the beginning of each file are left out.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        attrs = {"skip_header_lines": skip_header_lines or 0}
        super().__init__(apply_op("TextLineReaderV2", attrs=attrs, name=name))


class FixedLengthRecordReader(ReaderBase):
    """A reader whose records have record_bytes each; keys are ``file:record``, counted from 0.

    header_bytes, footer_bytes: of a file, which are left out. hop_bytes: from the beginning of one record to that of
    the next, record_bytes if None or 0. encoding: "" or "ZLIB", how the files are compressed.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        attrs = {
            "record_bytes": record_bytes,
            "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
            "hop_bytes": hop_bytes or 0,
            "encoding": encoding or "",
        }
        super().__init__(apply_op("FixedLengthRecordReaderV2", attrs=attrs, name=name))


class TFRecordReader(ReaderBase):
    """A reader whose records are those of TFRecord files; keys are ``file:byte``. options: a TFRecordOptions."""

    def __init__(self, name: str | None = None, options: TFRecordOptions | None = None) -> None:
        compression = "" if options is None else getattr(options, "compression_type", None)
        if compression is None:
            raise InvalidArgumentError(f"TFRecordReader: options is {options!r}; a TFRecordOptions is required")
        attrs = {"compression_type": compression}
        super().__init__(apply_op("TFRecordReaderV2", attrs=attrs, name=name))


class IdentityReader(ReaderBase):
    """A reader whose records are what the queue gives, which is the key, too."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("IdentityReaderV2", name=name), supports_serialize=True)

"""TFRecord files: records between lengths and checksums."""

from __future__ import annotations

import numpy as np

from timberframe.pipelines.files import Data, Files, Reader
from timberframe_core.crc32c import crc32c, masked, of_each, of_rows
from timberframe_core.errors import DataLossError

_HEADER, _FOOTER = 12, 4
"""Bytes before and after a record."""

_MOST_RECORDS = 1024
"""That are checked together."""


class Records(Files):
    """The records of TFRecord files."""

    def reader(self, data: Data) -> Reader:
        return _RecordReader(data)


class _RecordReader(Reader):
    """`_records` were taken out of the data and checked, of which `_at` were given; `_ends` says where each ends.

    `_damage` is what comes after them.
    """

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self._records: list[bytes] = []
        self._ends: list[int] = []
        self._at = 0
        self._damage: DataLossError | None = None

    def read(self, count: int) -> list[bytes]:
        if self._at >= len(self._records):
            if self._damage is None:
                self._take_records()
            if self._damage is not None and self._at >= len(self._records):
                raise self._damage
        at, self._at = self._at, min(self._at + count, len(self._records))
        return self._records[at : self._at]

    def offset(self) -> int:
        return self._ends[self._at - 1] if self._at else self.data.start - self._taken

    _taken = 0

    def _take_records(self) -> None:
        """Takes the records that the data holds whole, one at least; none at the end of the file."""
        data = self.data
        while True:
            begins, lengths, end = self._walk(data.held)
            if begins:
                break
            if not data.more(_HEADER):
                self._records, self._ends, self._at, self._taken = [], [], 0, 0
                if data.held:
                    self._damage = self._cut_off(_HEADER)
                return
            if not self._whole(data.held[:8], data.held[8:_HEADER]):
                self._records, self._damage = [], self._wrong(data.start)
                return
            least = _HEADER + int.from_bytes(data.held[:8], "little") + _FOOTER
            if not data.more(least):
                self._records, self._damage = [], self._cut_off(least)
                return
        held, start = data.held, data.start
        self._records = [held[b + _HEADER : b + _HEADER + n] for b, n in zip(begins, lengths, strict=True)]
        self._ends = [start + b + _HEADER + n + _FOOTER for b, n in zip(begins, lengths, strict=True)]
        self._at, self._taken = 0, end
        wrong = self._first_wrong(held, begins, lengths)
        if wrong is not None:
            self._damage = self._wrong(start + begins[wrong])
            del self._records[wrong:], self._ends[wrong:]
        data.take(end)

    @staticmethod
    def _walk(held: bytes) -> tuple[list[int], list[int], int]:
        """Returns where whole records begin, their lengths, and where the last one ends."""
        begins: list[int] = []
        lengths: list[int] = []
        at, size = 0, len(held)
        while size - at >= _HEADER + _FOOTER and len(begins) < _MOST_RECORDS:
            length = int.from_bytes(held[at : at + 8], "little")
            stride = _HEADER + length + _FOOTER
            if at + stride > size:
                break
            count = min((size - at) // stride, _MOST_RECORDS - len(begins))
            if count > 1 and held[at + stride : at + stride + 8] == held[at : at + 8]:
                heads = np.frombuffer(held, np.uint8, count * stride, at).reshape(count, stride)[:, :8]
                others = (heads != heads[0]).any(1)
                count = int(others.argmax()) if others.any() else count
            else:
                count = 1
            begins.extend(range(at, at + count * stride, stride))
            lengths.extend([length] * count)
            at += count * stride
        return begins, lengths, at

    def _first_wrong(self, held: bytes, begins: list[int], lengths: list[int]) -> int | None:
        """Returns the number of the first record with a wrong checksum."""
        first, stride = lengths[0], _HEADER + lengths[0] + _FOOTER
        if lengths.count(first) == len(lengths):
            rows = np.frombuffer(held, np.uint8, len(begins) * stride).reshape(-1, stride)
            heads, tails, made = rows[:, :_HEADER], rows[:, -_FOOTER:], of_rows(rows[:, _HEADER:-_FOOTER])
        else:
            text, at = np.frombuffer(held, np.uint8), np.array(begins)
            heads = text[at[:, None] + np.arange(_HEADER)]
            tails = text[(at + _HEADER + np.array(lengths))[:, None] + np.arange(_FOOTER)]
            made = of_each(self._records)
        wrong = masked(of_rows(heads[:, :8])) != np.ascontiguousarray(heads[:, 8:]).view("<u4")[:, 0]
        wrong |= masked(made) != np.ascontiguousarray(tails).view("<u4")[:, 0]
        return int(wrong.argmax()) if wrong.any() else None

    @staticmethod
    def _whole(text: bytes, stored: bytes) -> bool:
        return bool(masked(crc32c(text)) == int.from_bytes(stored, "little"))

    def _wrong(self, at: int) -> DataLossError:
        return DataLossError(f"file '{self.data.name}' is damaged at byte {at}: a checksum is wrong")

    def _cut_off(self, least: int) -> DataLossError:
        data = self.data
        return DataLossError(
            f"file '{data.name}' ends within the record at byte {data.start}: "
            f"{len(data.held)} of {least} bytes are there"
        )

"""Examples of equal layout, read together.

What one program writes has most often one layout: the same features at the same bytes, with values of the same sizes.
The layout is found in one Example; of the others only the bytes between the values are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType

_KINDS = {1: "string", 2: "float32", 3: "int64"}
_MOST_LAYOUTS = 16
"""In one batch; more of them are read faster one by one."""

Values = tuple[str, list[tuple[int, int]]]
"""The dtype of a feature, and where its values are: numbers in one range of bytes, each string in one of its own."""


class IrregularError(Exception):
    """Examples that must be read one by one."""


class Layout:
    """Where the values of the features are in an Example. Raises IrregularError where it is not as usual."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.fields: dict[bytes, Values] = {}
        (features,) = self._parts(0, len(text), 1)
        for entry in self._parts(*features, 1):
            self._add_feature(*entry)
        self._bytes = np.frombuffer(text, np.uint8)
        wanted = np.full(len(text), 0xFF, np.uint8)  # the bits in which others must be the same
        for kind, ranges in self.fields.values():
            for begin, end in ranges:
                wanted[begin:end] = 0x80 if kind == "int64" else 0
        self._mask = wanted
        self._wanted = self._bytes & wanted

    def fits(self, rows: np.ndarray) -> np.ndarray:
        """Returns which rows, the bytes of Examples as long as this one, have the layout."""
        found: np.ndarray = ((rows & self._mask) == self._wanted).all(1)
        return found

    def values(self, key: bytes, rows: np.ndarray) -> np.ndarray:
        """Returns the values of a feature, in rows."""
        kind, ranges = self.fields[key]
        if kind == "string":
            made: np.ndarray = np.empty((len(rows), len(ranges)), object)
            for i, (begin, end) in enumerate(ranges):
                made[:, i] = [x.tobytes() for x in rows[:, begin:end]]
            return made
        if not ranges:
            return np.empty((len(rows), 0), kind)
        ((begin, end),) = ranges
        part = rows[:, begin:end]
        if kind == "float32":
            return np.ascontiguousarray(part).view("<f4")
        return _integers(part, self._bytes[begin:end])

    def _parts(self, begin: int, end: int, number: int) -> list[tuple[int, int]]:
        """Returns the ranges of a field that is all that a message has, once or several times."""
        found = []
        while begin < end:
            tag, begin = self._integer(begin)
            if tag != number << 3 | 2:
                raise IrregularError
            size, begin = self._integer(begin)
            if begin + size > end:
                raise IrregularError
            found.append((begin, begin + size))
            begin += size
        if number == 1 and not found and not self.fields:
            raise IrregularError
        return found

    def _integer(self, at: int) -> tuple[int, int]:
        """Returns a number of a message, and where the next thing begins."""
        text, value, shift = self._text, 0, 0
        while True:
            if at >= len(text) or shift > 63:
                raise IrregularError
            byte = text[at]
            value |= (byte & 0x7F) << shift
            at += 1
            if byte < 0x80:
                return value, at
            shift += 7

    def _add_feature(self, begin: int, end: int) -> None:
        tag, at = self._integer(begin)
        size, at = self._integer(at)
        key = self._text[at : at + size]
        tag_of_value, rest = self._integer(at + size)
        length, rest = self._integer(rest)
        if tag != 0x0A or tag_of_value != 0x12 or rest + length != end or key in self.fields or not length:
            raise IrregularError
        kind, at = self._integer(rest)
        size, at = self._integer(at)
        if kind & 7 != 2 or kind >> 3 not in _KINDS or at + size != end:
            raise IrregularError
        name = _KINDS[kind >> 3]
        self.fields[key] = name, []
        ranges = self._parts(at, end, 1)
        if name != "string" and len(ranges) > 1:
            raise IrregularError
        self.fields[key] = name, ranges


def _integers(rows: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Returns the numbers of rows whose bytes go on where those of `like` do."""
    ends = np.flatnonzero(like < 0x80)
    if len(ends) == len(like):
        return rows.astype(np.int64)
    begins = np.concatenate([[0], ends[:-1] + 1])
    made = np.zeros((len(rows), len(ends)), np.uint64)
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        for k in range(begin, end + 1):
            made[:, i] |= (rows[:, k].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(7 * (k - begin))
    return made.view(np.int64)


def read(
    texts: Sequence[bytes], keys: Sequence[bytes], dtypes: Sequence[DType], counts: Sequence[int],
    defaults: Sequence[np.ndarray],
) -> list[np.ndarray]:  # fmt: skip
    """For each key the values of all Examples, in rows of so many; IrregularError where one must be read by itself."""
    made = [np.empty((len(texts), n), d.numpy) for n, d in zip(counts, dtypes, strict=True)]
    lengths = np.array([len(x) for x in texts])
    left = np.arange(len(texts))
    for _ in range(_MOST_LAYOUTS):
        layout = Layout(texts[left[0]])
        same = left[lengths[left] == lengths[left[0]]]
        rows = np.frombuffer(b"".join([texts[i] for i in same]), np.uint8).reshape(len(same), -1)
        fits = layout.fits(rows)
        chosen = same[fits]
        rows = rows if len(chosen) == len(same) else rows[fits]
        for key, dtype, count, default, column in zip(keys, dtypes, counts, defaults, made, strict=True):
            column[chosen] = _column(layout, key, dtype, count, default, rows)
        left = left[~np.isin(left, chosen)] if len(chosen) < len(left) else left[:0]
        if not len(left):
            return made
    raise IrregularError


def _column(layout: Layout, key: bytes, dtype: DType, count: int, default: np.ndarray, rows: np.ndarray) -> Any:
    if key not in layout.fields:
        if default.size not in (1, count) or (count and not default.size):
            raise IrregularError
        return default.reshape(-1)
    values = layout.values(key, rows) if layout.fields[key][0] == dtype.name else None
    if values is None or values.shape[1] != count:
        raise IrregularError
    return values

"""Snappy, the compression that tables may use: expanding alone."""

from __future__ import annotations

from timberframe_core.errors import DataLossError


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns an integer in groups of seven bits, low ones first, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DataLossError("a number runs past the end of its block; the file is damaged")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def write_varint(number: int) -> bytes:
    """Returns a number, seven bits a byte, the lowest first."""
    made = bytearray()
    while number >= 128:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def expand(data: bytes) -> bytes:
    """Returns the data that was compressed; DataLossError where that is not what `data` is."""
    size, at = read_varint(data, 0)
    result = bytearray()
    while at < len(data):
        tag = data[at]
        kind = tag & 3
        if kind == 0:
            length, at = _literal_length(data, at)
            result += data[at : at + length]
            at += length
            _check_fits(result, size)
            continue
        if kind == 1:
            length = (tag >> 2 & 7) + 4
            offset = tag >> 5 << 8 | int.from_bytes(data[at + 1 : at + 2], "little")
            at += 2
        else:
            width = 2 if kind == 2 else 4
            length = (tag >> 2) + 1
            offset = int.from_bytes(data[at + 1 : at + 1 + width], "little")
            at += 1 + width
        _copy(result, offset, length)
        _check_fits(result, size)
    if len(result) != size:
        raise DataLossError(f"a compressed block has {len(result)} bytes instead of {size}; the file is damaged")
    return bytes(result)


def _check_fits(result: bytearray, size: int) -> None:
    """Stops as soon as there is more than there should be, since it could be far more."""
    if len(result) > size:
        raise DataLossError(f"a compressed block has more than its {size} bytes; the file is damaged")


def _literal_length(data: bytes, at: int) -> tuple[int, int]:
    length = data[at] >> 2
    if length < 60:
        return length + 1, at + 1
    width = length - 59
    return int.from_bytes(data[at + 1 : at + 1 + width], "little") + 1, at + 1 + width


def _copy(result: bytearray, offset: int, length: int) -> None:
    """Repeats what was made `offset` bytes ago; source and target may overlap."""
    if not 0 < offset <= len(result):
        raise DataLossError("a compressed block refers to what is before its start; the file is damaged")
    start = len(result) - offset
    if offset >= length:
        result += result[start : start + length]
        return
    pattern = bytes(result[start:])
    result += (pattern * (length // offset + 1))[:length]

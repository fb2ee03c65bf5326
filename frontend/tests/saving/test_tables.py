"""The parts of TensorFlow's file formats: checksums, compression, tables."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import timberframe as tf
from timberframe.saving.snappy import expand
from timberframe.saving.table import read_table
from timberframe_core.crc32c import crc32c, masked


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_checksum_of_the_standard_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, appendix B.4, has the polynomial and further examples
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"") == 0


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 70_001, 200_003])
def test_long_checksums_join_from_any_parts(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    expected = bit_by_bit(data)
    assert crc32c(data) == expected
    assert crc32c(data[size // 3 :], crc32c(data[: size // 3])) == expected


def test_literals_and_copies_expand() -> None:
    # 14 bytes: a literal "ab", a copy of 6 bytes from 2 back (it overlaps itself), a literal "c",
    # 4 bytes from 9 back with an offset of two bytes, and one more by an offset of four
    packed = bytes([14, 1 << 2, *b"ab", 2 << 2 | 1, 2, 0, ord("c"), 3 << 2 | 2, 9, 0, 0 << 2 | 3, 1, 0, 0, 0])
    assert expand(packed) == b"abababab" + b"c" + b"abab" + b"b"


def test_long_literal_expands() -> None:
    assert expand(bytes([200, 1, 60 << 2, 199]) + b"x" * 200) == b"x" * 200


def test_damaged_compression_is_an_error() -> None:
    with pytest.raises(tf.errors.DataLossError, match="refers to what is before its start"):
        expand(bytes([4, 1, 9]))
    with pytest.raises(tf.errors.DataLossError, match="has 1 bytes instead of 4"):
        expand(bytes([4, 0, 1]))


def block(entries: list[tuple[bytes, bytes]], kind: int = 0) -> bytes:
    """Returns a block without shared parts of keys; with kind 1 it is compressed, as one literal."""
    content = b"".join(bytes([0, len(k), len(v)]) + k + v for k, v in entries) + struct.pack("<II", 0, 1)
    if kind == 1:
        content = bytes([len(content), (len(content) - 1) << 2]) + content
    return content + bytes([kind]) + struct.pack("<I", masked(crc32c(content + bytes([kind]))))


def table(kind: int) -> bytes:
    first, second = block([(b"a", b"1"), (b"b", b"2")], kind), block([(b"c", b"3")], kind)
    handles = [bytes([0, len(first) - 5]), bytes([len(first), len(second) - 5])]
    index = block([(b"b", handles[0]), (b"c", handles[1])])
    start = len(first) + len(second)
    footer = bytes([0, 0, start, len(index) - 5]).ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    return first + second + index + footer


@pytest.mark.parametrize("kind", [0, 1])
def test_table_is_read_plain_and_compressed(kind: int) -> None:
    assert list(read_table(table(kind))) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


def test_unknown_compression_is_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="has compression 4; only none and snappy"):
        list(read_table(table(4)))

"""The checksum of TensorFlow's files."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_core.crc32c import crc32c, masked, of_each, of_rows

SIZES = (0, 1, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 5000, 70_000)


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


DATA = [np.random.default_rng(n).bytes(n) for n in SIZES]


def test_the_check_value_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, appendix B.4


@pytest.mark.parametrize("data", DATA, ids=map(str, SIZES))
def test_checksums_of_any_length(data: bytes) -> None:
    assert crc32c(data) == bit_by_bit(data)


def test_a_checksum_is_continued() -> None:
    assert crc32c(DATA[-2][100:], crc32c(DATA[-2][:100])) == bit_by_bit(DATA[-2])


def test_checksums_of_many_pieces() -> None:
    assert of_each(DATA).tolist() == [bit_by_bit(x) for x in DATA]


@pytest.mark.parametrize("length", [0, 3, 4, 8, 200, 3000])
def test_checksums_of_rows(length: int) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (5, length), np.uint8)
    assert of_rows(rows).tolist() == [bit_by_bit(row.tobytes()) for row in rows]


def test_masked_checksums_of_an_array() -> None:
    values = [0, 1, 0xFFFFFFFF, 0x12345678]
    assert masked(np.array(values, np.uint32)).tolist() == [masked(v) for v in values]

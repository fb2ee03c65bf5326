"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, in NumPy.

Long data is cut into lanes of equal length whose checksums are computed side by side, two bytes a step, and then
joined: after n further bytes a checksum is a linear function of what it was, which is a matrix over two elements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78  # reflected
_MASK = 0xA282EAD8  # what TensorFlow adds to stored checksums, after turning them by 15 bits
_LANES = 1 << 12
_STEP = 1 << 10  # bytes of a lane that are taken at a time, so that they stay in the cache
_FAR = 1 << 10  # bytes that are looked up in one table by their distance from the end
_SHORT = 64  # bytes that are faster taken one by one
_BITS = np.arange(32, dtype=np.uint32)

Words = np.ndarray[Any, np.dtype[np.uint32]]


def crc32c(data: Any, start: int = 0) -> int:
    """The checksum of bytes, continued from the checksum `start` of what stands before them."""
    array = np.frombuffer(data, np.uint8)
    register = start ^ 0xFFFFFFFF
    while len(array) >= 16 * _LANES:
        step = min(len(array) // (2 * _LANES) * 2, _STEP)
        register = _join(register, array[: step * _LANES], step)
        array = array[step * _LANES :]
    while len(array) >= _SHORT:
        register, array = _of_piece(register, array[:_FAR]), array[_FAR:]
    table = _byte_table()
    for byte in array.tobytes():
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def of_each(parts: Sequence[bytes]) -> Words:
    """The checksums of several pieces of data, most of which are short."""
    lengths = np.array([len(x) for x in parts], np.int64)
    made: Words = np.zeros(len(parts), np.uint32)
    together = np.flatnonzero((lengths >= 4) & (lengths <= _FAR))
    if len(together):
        made[together] = _of_short([parts[i] for i in together.tolist()], lengths[together])
    for i in np.flatnonzero((lengths < 4) | (lengths > _FAR)).tolist():
        made[i] = crc32c(parts[i])
    return made


def of_rows(rows: np.ndarray) -> Words:
    """The checksums of the rows of a matrix of bytes."""
    length = rows.shape[1]
    if not 4 <= length <= _FAR:
        return of_each([row.tobytes() for row in rows])
    data = rows.astype(np.int64)
    data[:, :4] ^= 0xFF  # what the register begins with
    data += np.arange(length - 1, -1, -1) << 8
    found: Words = np.bitwise_xor.reduce(_distance_table(1 << (length - 1).bit_length()).take(data), axis=1)
    return found ^ np.uint32(0xFFFFFFFF)


def _of_short(parts: Sequence[bytes], lengths: np.ndarray) -> Words:
    """The checksums of pieces of four bytes at least, by what each byte contributes at its distance from the end."""
    data = np.frombuffer(b"".join(parts), np.uint8).astype(np.int64)
    ends = np.cumsum(lengths)
    begins = ends - lengths
    for k in range(4):
        data[begins + k] ^= 0xFF  # what the register begins with
    data += (np.repeat(ends, lengths) - np.arange(1, len(data) + 1)) << 8
    table = _distance_table(1 << int(lengths.max() - 1).bit_length())
    found: Words = np.bitwise_xor.reduceat(table.take(data), begins)
    return found ^ np.uint32(0xFFFFFFFF)


def _of_piece(register: int, piece: np.ndarray) -> int:
    """The register after a few bytes, four at least."""
    data = piece.astype(np.int64)
    data[:4] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)
    data += np.arange(len(data) - 1, -1, -1) << 8
    return int(np.bitwise_xor.reduce(_distance_table(_FAR).take(data)))


@functools.cache
def _distance_table(distances: int) -> Words:
    """What a byte makes of an empty register, so many bytes later: for each distance a row for all bytes, flat."""
    table = np.array(_byte_table(), np.uint32)
    made = np.empty((distances, 256), np.uint32)
    made[0] = table
    for i in range(1, distances):
        made[i] = table[made[i - 1] & 0xFF] ^ (made[i - 1] >> np.uint32(8))
    return made.reshape(-1)


def masked(checksum: Any) -> Any:
    """A checksum, or an array of them, in the form in which TensorFlow stores it."""
    if isinstance(checksum, np.ndarray):
        return (checksum >> np.uint32(15) | checksum << np.uint32(17)) + np.uint32(_MASK)
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def _join(register: int, array: np.ndarray, step: int) -> int:
    """The register after all bytes of `array`, which has `step` bytes for each lane."""
    columns = np.ascontiguousarray(array.view("<u2").reshape(_LANES, step // 2).T)
    table = _pair_table()
    registers: Words = np.zeros(_LANES, np.uint32)
    registers[0] = register
    low: np.ndarray = np.empty(_LANES, np.uint16)
    looked_up = np.empty_like(registers)
    for column in columns:
        np.bitwise_xor(registers.view(np.uint16)[::2], column, out=low)
        np.take(table, low, out=looked_up, mode="wrap")
        np.right_shift(registers, np.uint32(16), out=registers)
        np.bitwise_xor(registers, looked_up, out=registers)
    for matrix in _joints(step):
        registers = _apply(matrix, registers[0::2]) ^ registers[1::2]
    return int(registers[0])


@functools.cache
def _byte_table() -> list[int]:
    table = []
    for byte in range(256):
        register = byte
        for _ in range(8):
            register = register >> 1 ^ (_POLYNOMIAL if register & 1 else 0)
        table.append(register)
    return table


@functools.cache
def _pair_table() -> Words:
    """What two bytes at a time make of the register's lower half."""
    table = np.array(_byte_table(), np.uint32)
    pairs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        pairs = table[pairs & 0xFF] ^ (pairs >> np.uint32(8))
    return pairs


def _apply(matrix: Words, vectors: Words) -> Words:
    """A matrix over two elements, given as the images of the 32 unit vectors, times each of the vectors."""
    chosen = np.where(vectors[:, None] >> _BITS & 1, matrix, np.uint32(0))
    product: Words = np.bitwise_xor.reduce(chosen, axis=1)
    return product


@functools.lru_cache(8)
def _joints(step: int) -> list[Words]:
    """The matrices that join neighbours, then pairs of neighbours and so on."""
    matrices = [_after_zeros(step)]
    while 1 << len(matrices) < _LANES:
        matrices.append(_apply(matrices[-1], matrices[-1]))
    return matrices


def _after_zeros(count: int) -> Words:
    """The matrix that takes a register to what it is `count` zero bytes later."""
    table = np.array(_byte_table(), np.uint32)
    unit = np.uint32(1) << _BITS
    power: Words = table[unit & 0xFF] ^ (unit >> np.uint32(8))
    result: Words = unit
    while count:
        if count & 1:
            result = _apply(power, result)
        power = _apply(power, power)
        count >>= 1
    return result

"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, in NumPy.

Long data is cut into lanes of equal length whose checksums are computed side by side, two bytes a step, and then
joined: after n further bytes a checksum is a linear function of what it was, which is a matrix over two elements.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78  # reflected
_MASK = 0xA282EAD8  # what TensorFlow adds to stored checksums, after turning them by 15 bits
_LANES = 1 << 12
_STEP = 1 << 10  # bytes of a lane that are taken at a time, so that they stay in the cache
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
    table = _byte_table()
    for byte in array.tobytes():
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """A checksum in the form in which TensorFlow stores it."""
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

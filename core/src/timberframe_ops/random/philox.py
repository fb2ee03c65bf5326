"""Philox 4x32-10, the counter-based generator of all random ops, in NumPy.

J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). A block is four 32-bit
numbers and a function of a 64-bit key and a 128-bit counter alone, so any part of a stream can be made by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
"""What the two halves of the key grow by from round to round: the golden ratio and the root of 3 less 1."""
ROUNDS = 10

_MASK = 2**64 - 1
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SCRAMBLE_KEY = 0x02461E293EC8F720  # TensorFlow's, from which the key of a stateless op is made


@dataclass(frozen=True)
class Philox:
    """A generator at one position of its stream: the key, and the counter's lower and upper 64 bits."""

    key: int
    low: int = 0
    high: int = 0
    rounds: int = ROUNDS

    @classmethod
    def seeded(cls, seed: int, seed2: int) -> Philox:
        """Returns the start of a stateful op's stream: the seed is the key, seed2 the counter's upper half."""
        return cls(seed & _MASK, 0, seed2 & _MASK)

    @classmethod
    def stateless(cls, seed: np.ndarray) -> Philox:
        """Returns the stream of a stateless op's pair of seeds, mixed so that it matters little
        which bits of them differ.
        """
        first, second = (int(s) & _MASK for s in np.ravel(seed))
        a, b, c, d = (int(x) for x in cls(_SCRAMBLE_KEY, first, second).blocks(1)[0])
        return cls(a | b << 32, 0, c | d << 32)

    @classmethod
    def at(cls, key: np.ndarray, counter: np.ndarray) -> Philox:
        """Returns the generator that the key and counter inputs of a stateless op say."""
        low, high = (int(c) for c in np.ravel(counter)[:2])
        return cls(int(np.ravel(key)[0]), low, high)

    def skip(self, blocks: int) -> Philox:
        """Returns the generator so many blocks further on."""
        counter = ((self.high << 64 | self.low) + int(blocks)) % 2**128
        return Philox(self.key, counter & _MASK, counter >> 64, self.rounds)

    def blocks(self, count: int) -> np.ndarray:
        """Returns the next blocks, as uint32 of shape [count, 4]."""
        return self.blocks_at(np.arange(count, dtype=np.uint64))

    def blocks_at(self, offsets: np.ndarray) -> np.ndarray:
        """Returns the blocks so far from here, as uint32 of the shape of `offsets` and 4; offsets are below 2^64."""
        with np.errstate(over="ignore"):  # scalars would warn of the wrap-around that is meant
            low = np.asarray(offsets).astype(np.uint64) + np.uint64(self.low)
            high = np.uint64(self.high) + (low < np.uint64(self.low)).astype(np.uint64)
        x = [low & _LOW, low >> _HALF, high & _LOW, high >> _HALF]
        keys = [self.key & 0xFFFFFFFF, self.key >> 32]
        for _ in range(self.rounds):
            products = x[0] * MULTIPLIERS[0], x[2] * MULTIPLIERS[1]
            x = [
                (products[1] >> _HALF) ^ x[1] ^ np.uint64(keys[0]),
                products[1] & _LOW,
                (products[0] >> _HALF) ^ x[3] ^ np.uint64(keys[1]),
                products[0] & _LOW,
            ]
            keys = [(k + w) & 0xFFFFFFFF for k, w in zip(keys, WEYL, strict=True)]
        return np.stack(x, axis=-1).astype(np.uint32)

    def numbers(self, count: int) -> np.ndarray:
        """Returns the next 32-bit numbers, as uint32 of shape [count]."""
        return self.blocks(-(-count // 4)).reshape(-1)[:count]


def wide(bits: np.ndarray) -> np.ndarray:
    """Returns pairs of 32-bit numbers as 64-bit ones, the lower half first."""
    pairs = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 2, 2).astype(np.uint64)
    return pairs[..., 0] | pairs[..., 1] << _HALF


def to_float32(bits: np.ndarray) -> np.ndarray:
    """32-bit numbers as float32 in [0, 1): the low 23 bits as the mantissa of a number in [1, 2), less 1."""
    return (bits & np.uint32(0x7FFFFF) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def to_float64(bits: np.ndarray) -> np.ndarray:
    """Returns pairs of 32-bit numbers as float64 in [0, 1): 20 bits of the first above the 32 of
    the second, as a mantissa.
    """
    pairs = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 2, 2).astype(np.uint64)
    mantissa = (pairs[..., 0] & np.uint64(0xFFFFF)) << _HALF | pairs[..., 1]
    return (mantissa | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0


def to_float16(bits: np.ndarray) -> np.ndarray:
    """32-bit numbers as float16 in [0, 1), of their low 10 bits."""
    return (bits & np.uint32(0x3FF)).astype(np.float32).astype(np.float16) / np.float16(1024)


def to_bfloat16(bits: np.ndarray) -> np.ndarray:
    """32-bit numbers in [0, 1) with the 7 bits that bfloat16 has, as float32."""
    return (bits & np.uint32(0x7F)).astype(np.float32) / np.float32(128)

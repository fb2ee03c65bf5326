"""Numbers of strings: FarmHash's 64-bit fingerprint, which TensorFlow takes for buckets.

Geoff Pike, "FarmHash", 2014: the variant `Fingerprint64`, whose values never change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, NotDifferentiable, define_op

_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_K3 = 0xC6A4A7935BD1E995

Pair = tuple[int, int]


def _word(s: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(s[at : at + size], "little")


def _rotated(x: int, by: int) -> int:
    x &= _MASK
    return (x >> by | x << (64 - by)) & _MASK


def _mixed(x: int) -> int:
    x &= _MASK
    return x ^ x >> 47


def _joined(u: int, v: int, factor: int) -> int:
    """Returns two words as one."""
    a = _mixed((u ^ v & _MASK) * factor)
    return _mixed((v ^ a) * factor) * factor & _MASK


def fingerprint(s: bytes) -> int:
    """Returns the fingerprint of a string, an integer in [0, 2**64)."""
    if len(s) <= 16:
        return _short(s)
    if len(s) <= 32:
        return _of_two(s)
    return _of_four(s) if len(s) <= 64 else _long(s)


def joined_fingerprints(first: int, second: int) -> int:
    """Returns the fingerprint of two fingerprints, an integer in [0, 2**64): TensorFlow's FingerprintCat64."""
    result = first ^ _K3
    result ^= _mixed(second * _K3) * _K3
    return _mixed(_mixed(result * _K3) * _K3)


def _short(s: bytes) -> int:
    n = len(s)
    factor = _K2 + 2 * n
    if n >= 8:
        a, b = _word(s, 0) + _K2, _word(s, n - 8)
        return _joined((_rotated(b, 37) * factor + a) & _MASK, (_rotated(a, 25) + b) * factor & _MASK, factor)
    if n >= 4:
        return _joined(n + (_word(s, 0, 4) << 3), _word(s, n - 4, 4), factor)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _parts(s: bytes, first: int) -> tuple[int, int, int, int]:
    """Returns what strings of 17 to 64 bytes start with: a, b and c of their ends, and the first word of the result."""
    factor, n = _K2 + 2 * len(s), len(s)
    a, b = _word(s, 0) * first & _MASK, _word(s, 8)
    c = _word(s, n - 8) * factor & _MASK
    y = (_rotated(a + b, 43) + _rotated(c, 30) + _word(s, n - 16) * _K2) & _MASK
    return a, b, c, y


def _of_two(s: bytes) -> int:
    a, b, c, y = _parts(s, _K1)
    return _joined(y, (a + _rotated(b + _K2, 18) + c) & _MASK, _K2 + 2 * len(s))


def _of_four(s: bytes) -> int:
    n, factor = len(s), _K2 + 2 * len(s)
    a, b, c, y = _parts(s, _K2)
    z = _joined(y, (a + _rotated(b + _K2, 18) + c) & _MASK, factor)
    e, f = _word(s, 16) * factor & _MASK, _word(s, 24)
    g, h = (y + _word(s, n - 32)) * factor & _MASK, (z + _word(s, n - 24)) * factor & _MASK
    first = (_rotated(e + f, 43) + _rotated(g, 30) + h) & _MASK
    return _joined(first, (e + _rotated(f + a, 18) + g) & _MASK, factor)


def _of_block(s: bytes, at: int, a: int, b: int) -> Pair:
    """Returns the hash of 32 bytes and two seeds."""
    w, x, y, z = (_word(s, at + i) for i in (0, 8, 16, 24))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def _round(s: bytes, at: int, state: tuple[int, int, int, Pair, Pair], factor: int, times: int) -> Any:
    """Takes in 64 bytes."""
    x, y, z, v, w = state
    x = _rotated(x + y + v[0] + _word(s, at + 8), 37) * factor
    y = _rotated(y + v[1] + _word(s, at + 48), 42) * factor
    x ^= w[1] * times
    y += v[0] * times + _word(s, at + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _of_block(s, at, v[1] * factor, x + w[0])
    w = _of_block(s, at + 32, z + w[1], y + _word(s, at + 16))
    return z & _MASK, y & _MASK, x & _MASK, v, w


def _long(s: bytes) -> int:
    seed = 81
    y = seed * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    state: tuple[int, int, int, Pair, Pair] = ((seed * _K2 + _word(s, 0)) & _MASK, y & _MASK, z & _MASK, (0, 0), (0, 0))
    for at in range(0, (len(s) - 1) // 64 * 64, 64):
        state = _round(s, at, state, _K1, 1)
    x, y, z, v, w = state
    factor = _K1 + ((z & 0xFF) << 1)
    w = w[0] + (len(s) - 1 & 63), w[1]
    v = (v[0] + w[0]) & _MASK, v[1]
    w = (w[0] + v[0]) & _MASK, w[1]
    x, y, z, v, w = _round(s, len(s) - 64, (x, y, z, v, w), factor, 9)
    first = (_joined(v[0], w[0], factor) + _mixed(y) * _K0 + z) & _MASK
    return _joined(first, (_joined(v[1], w[1], factor) + x) & _MASK, factor)


def _buckets(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    found = [fingerprint(s) % attrs["num_buckets"] for s in x.ravel().tolist()]
    return np.array(found, np.int64).reshape(x.shape)


define_op(
    "StringToHashBucketFast",
    inputs=["input: string"],
    outputs=["output: int64"],
    attrs=["num_buckets: int >= 1"],
    doc="For each string a number in [0, num_buckets), by its fingerprint.",
    shape=lambda c: [c.shapes[0]],
    reference=_buckets,
    gradient=NotDifferentiable("strings have no derivative"),
    on_host=True,
)

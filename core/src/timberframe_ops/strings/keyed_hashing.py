"""Numbers of strings by hashes with a key: SipHash, and MurmurHash with the one key that TensorFlow gives it.

J.-P. Aumasson, D. J. Bernstein: SipHash: a fast short-input PRF, 2012 (2 rounds a word, 4 at the end). A. Appleby:
MurmurHash64A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.strings.editing import each

_MASK = 2**64 - 1
_MURMUR_FACTOR, _MURMUR_KEY = 0xC6A4A7935BD1E995, 0xDECAFCAFFE


def murmur_hash(s: bytes, key: int = _MURMUR_KEY) -> int:
    """MurmurHash64A, an integer in [0, 2**64)."""
    h, whole = key ^ len(s) * _MURMUR_FACTOR & _MASK, len(s) & ~7
    for at in range(0, whole, 8):
        k = int.from_bytes(s[at : at + 8], "little") * _MURMUR_FACTOR & _MASK
        k = (k ^ k >> 47) * _MURMUR_FACTOR & _MASK
        h = (h ^ k) * _MURMUR_FACTOR & _MASK
    if whole < len(s):
        h = (h ^ int.from_bytes(s[whole:], "little")) * _MURMUR_FACTOR & _MASK
    h = (h ^ h >> 47) * _MURMUR_FACTOR & _MASK
    return h ^ h >> 47


def _left(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & _MASK


def _round(v: Sequence[int]) -> tuple[int, int, int, int]:
    a, b, c, d = v
    a, c = a + b & _MASK, c + d & _MASK
    b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
    a, c = _left(a, 32) + d & _MASK, c + b & _MASK
    d, b = _left(d, 21) ^ a, _left(b, 17) ^ c
    return a, b, _left(c, 32), d


def sip_hash(s: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4, an integer in [0, 2**64); key: two such integers."""
    first, second = key
    v = (
        first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D, first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    )  # fmt: skip
    padded = s + bytes(-(len(s) + 1) % 8) + bytes([len(s) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        a, b, c, d = _round(_round((*v[:3], v[3] ^ word)))
        v = (a ^ word, b, c, d)
    v = (v[0], v[1], v[2] ^ 0xFF, v[3])
    for _ in range(4):
        v = _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _strong(attrs: Attrs) -> Callable[[bytes], int]:
    first, second = (k & _MASK for k in attrs["key"])
    return lambda s: sip_hash(s, (first, second))


def _two_keys(c: InferenceContext) -> Sequence[Shape]:
    if len(c.attrs["key"]) != 2:
        raise c.error(f"key has {len(c.attrs['key'])} numbers; 2 are required")
    return [c.shapes[0]]


def _define(
    name: str, argument: str, key: Sequence[str], doc: str, function: Callable[[Attrs], Callable[[bytes], int]],
    shape: Callable[[InferenceContext], Sequence[Shape]],
) -> None:  # fmt: skip
    def reference(attrs: Attrs, texts: Any) -> Any:
        of, count = function(attrs), attrs["num_buckets"]
        return each(lambda s: of(s) % count, texts, np.int64)

    define_op(
        name,
        inputs=[f"{argument}: string"],
        outputs=["output: int64"],
        attrs=["num_buckets: int >= 1", *key],
        doc=doc,
        shape=shape,
        reference=reference,
        gradient=NotDifferentiable("strings have no derivative"),
        on_host=True,
    )


_define(
    "StringToHashBucket", "string_tensor", (), "For each string a number in [0, num_buckets), by MurmurHash.",
    lambda attrs: murmur_hash, lambda c: [c.shapes[0]],
)  # fmt: skip
_define(
    "StringToHashBucketStrong", "input", ("key: list(int)",),
    "For each string a number in [0, num_buckets), by SipHash with a key, so that nobody who lacks it can aim at one.",
    _strong, _two_keys,
)  # fmt: skip

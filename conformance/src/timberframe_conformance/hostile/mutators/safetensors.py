"""Wrong content in safetensors files: their JSON and its length."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_conformance.hostile.mutators.values import SIZES, TEXTS, NothingToChangeError, change_bytes, pick

_ODD: Sequence[Any] = (
    None, True, "", "x", [], {}, [[]], {"a": 1}, 1.5, -1, 0, 10**400, "9" * 400, float("nan"), *SIZES, *TEXTS,
    "float32", "int64", "string", "complex128", "resource", "variant", "../x", "/dev/zero", ".", "F32", "BOOL", "U8",
)  # fmt: skip


def _odd(rng: random.Random) -> Any:
    return rng.choice(_ODD)


def _change(rng: random.Random, value: Any) -> Any:
    """Returns the same JSON value with one part changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = pick(rng, sorted(value))
        kind = rng.randrange(8)
        if kind == 0:
            del value[key]
        elif kind == 1:
            value[rng.choice([*TEXTS, *value])] = value[pick(rng, sorted(value))]
        else:
            value[key] = _change(rng, value[key])
        return value
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            value[at : at + 1] = value[at : at + 1] * rng.choice([0, 2, 70])
        else:
            value[at] = _change(rng, value[at])
        return value
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice([value + 1, value - 1, -value, value * 2, *SIZES])
    return _odd(rng)


def _header(rng: random.Random, raw: bytes) -> bytes:
    """Returns another header of a safetensors file, the length in front being right."""
    try:
        (length,) = struct.unpack_from("<Q", raw)
        header = json.loads(raw[8 : 8 + length])
    except (struct.error, ValueError, RecursionError):
        raise NothingToChangeError from None
    text = json.dumps(_change(rng, header)).encode()
    return struct.pack("<Q", len(text)) + text + raw[8 + length :]


def _header_length(rng: random.Random, raw: bytes) -> bytes:
    return struct.pack("<Q", rng.choice(SIZES) & (1 << 64) - 1) + raw[8:]


_SAFETENSORS: Sequence[Callable[[random.Random, bytes], bytes]] = (
    _header,
    _header,
    _header,
    _header_length,
    change_bytes,
)


def change_safetensors(rng: random.Random, raw: bytes) -> bytes:
    """Returns another content of a safetensors file."""
    return rng.choice(_SAFETENSORS)(rng, raw)

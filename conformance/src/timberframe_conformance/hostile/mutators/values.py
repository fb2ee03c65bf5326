"""Wrong values in parts of messages: sizes, numbers, dtypes, texts, shapes, tensors, attrs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from timberframe_core import dtypes


class NothingToChangeError(Exception):
    """The file has nothing that this mutator could change."""


SIZES = (
    -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 64, 65, 254, 255, 1000, 2**16, 2**20, 2**31 - 1, 2**31, 2**32, 2**40,
    2**53, 2**62, 2**63 - 1,
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3e38, -3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "^",
    ":",
    "/",
    "x",
    "a:0",
    "^a",
    "a:-1",
    "a" * 70_000,
    "\0",
    "\u00e9",
    "loc:@nowhere",
    "SAME",
    "NHWC",
    "min_max",
)
DTYPES = (*sorted({d.number for d in dtypes.BY_NAME.values()}), 0, -1, 27, 99, 2**31 - 1)


def parsed(kind: Any, raw: bytes) -> Any:
    """Returns the message; NothingToChangeError where an earlier change has left none."""
    message = kind()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise NothingToChangeError from None
    return message


def pick(rng: random.Random, items: Sequence[Any]) -> Any:
    """Returns one of the items; NothingToChangeError where there is none."""
    if not items:
        raise NothingToChangeError
    return items[rng.randrange(len(items))]


def change_integer(rng: random.Random, value: int, bits: int = 64) -> int:
    """Returns a number near the value, or at a limit of its type."""
    new = rng.choice([value + 1, value - 1, -value, value * 2, *SIZES])
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return min(max(new, low), high)


def change_shape(rng: random.Random, shape: Any) -> None:
    """Writes another shape in a TensorShapeProto."""
    kind = rng.randrange(6)
    if kind == 0 and shape.dim:
        pick(rng, shape.dim).size = rng.choice(SIZES)
    elif kind == 1 and shape.dim:
        del shape.dim[rng.randrange(len(shape.dim))]
    elif kind == 2:
        shape.dim.add(size=rng.choice(SIZES))
    elif kind == 3:
        shape.unknown_rank = not shape.unknown_rank
    elif kind == 4:
        for _ in range(rng.choice([9, 33, 65, 255, 5000])):
            shape.dim.add(size=rng.choice([1, 1, 1, -1, 2]))
    else:
        del shape.dim[:]


_VALUES = (
    "int_val", "int64_val", "uint32_val", "uint64_val", "half_val", "float_val", "double_val", "bool_val", "string_val",
    "scomplex_val", "dcomplex_val",
)  # fmt: skip
_UNSIGNED = {"uint32_val": 32, "uint64_val": 64}
_SIGNED = {"int_val": 32, "int64_val": 64, "half_val": 32}


def change_tensor(rng: random.Random, tensor: Any) -> None:
    """Writes another dtype, shape or content in a TensorProto."""
    kind = rng.randrange(5)
    if kind == 0:
        tensor.dtype = rng.choice(DTYPES)
    elif kind == 1:
        change_shape(rng, tensor.tensor_shape)
    elif kind == 2 and tensor.tensor_content:
        tensor.tensor_content = change_bytes(rng, tensor.tensor_content)
    elif kind == 3:
        _change_numbers(rng, tensor)
    else:
        _change_elements(rng, tensor)


def _change_elements(rng: random.Random, tensor: Any) -> None:
    """Other values of the same number and dtype: what shape arithmetic is computed from."""
    width = {3: 4, 9: 8}.get(tensor.dtype)
    if tensor.tensor_content and width:
        raw = bytearray(tensor.tensor_content)
        at = rng.randrange(len(raw) // width or 1) * width
        value = max(min(rng.choice(SIZES), (1 << 8 * width - 1) - 1), -(1 << 8 * width - 1))
        raw[at : at + width] = value.to_bytes(width, "little", signed=True)
        tensor.tensor_content = bytes(raw)
    else:
        _change_numbers(rng, tensor)


def _change_numbers(rng: random.Random, tensor: Any) -> None:
    found = [name for name in _VALUES if len(getattr(tensor, name))]
    name = pick(rng, found) if found and rng.random() < 0.8 else rng.choice(_VALUES)
    values = getattr(tensor, name)
    new = _value(rng, name)
    if len(values) and rng.random() < 0.7:
        values[rng.randrange(len(values))] = new
    elif len(values) and rng.random() < 0.3:
        del values[:]
    else:
        values.extend([new] * rng.choice([1, 2, 3, 1000]))


def _value(rng: random.Random, field: str) -> Any:
    if field in _UNSIGNED:
        return min(abs(rng.choice(SIZES)), (1 << _UNSIGNED[field]) - 1)
    if field in _SIGNED:
        return change_integer(rng, 1, _SIGNED[field])
    if field == "bool_val":
        return rng.random() < 0.5
    return rng.choice(TEXTS).encode() if field == "string_val" else rng.choice(FLOATS)


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    """Returns bytes with one change: a bit flipped, bytes cut, removed, repeated or inserted,
    or a number at its limit.
    """
    raw = bytearray(data)
    at, length = rng.randrange(len(raw) + 1), rng.choice([1, 1, 2, 4, 8, 64])
    kind = rng.randrange(7)
    if kind == 0 and at < len(raw):
        raw[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and at < len(raw):
        raw[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    elif kind == 2:
        del raw[at:]
    elif kind == 3:
        del raw[at : at + length]
    elif kind == 4:
        raw[at:at] = raw[at : at + length]
    elif kind == 5:
        raw[at:at] = bytes(rng.randrange(256) for _ in range(length))
    else:
        width = rng.choice([4, 8])
        value = rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]) & ((1 << 8 * width) - 1)
        raw[at : at + width] = value.to_bytes(width, "little")
    return bytes(raw)


def _list_attr(rng: random.Random, attr: Any) -> None:
    """Writes a list with an element more, fewer, or another."""
    lists = [name for name in ("s", "i", "f", "b", "type", "shape", "tensor", "func") if len(getattr(attr.list, name))]
    name = pick(rng, lists) if lists else rng.choice(["i", "s", "type"])
    values = getattr(attr.list, name)
    kind = rng.randrange(4)
    if kind == 0 and len(values):
        del values[rng.randrange(len(values))]
    elif kind == 1 and len(values):
        values.extend([values[rng.randrange(len(values))]] * rng.choice([1, 2, 1000]))
    elif kind == 2:
        del values[:]
    elif name == "shape":
        change_shape(rng, values.add() if not len(values) else pick(rng, values))
    elif name in ("tensor", "func"):
        pick(rng, values).Clear()
    else:
        new = _SCALARS[name](rng)
        if len(values):
            values[rng.randrange(len(values))] = new
        else:
            values.append(new)


_SCALARS: Mapping[str, Callable[[random.Random], Any]] = {
    "s": lambda rng: rng.choice(TEXTS).encode() if rng.random() < 0.9 else b"\xff\xfe",
    "i": lambda rng: rng.choice(SIZES),
    "f": lambda rng: rng.choice(FLOATS),
    "b": lambda rng: rng.random() < 0.5,
    "type": lambda rng: rng.choice(DTYPES),
}


def change_attr(rng: random.Random, attr: Any) -> None:
    """Writes another value in an AttrValue, at times of another kind."""
    held = attr.WhichOneof("value")
    if held is None or rng.random() < 0.1:
        held = rng.choice([*_SCALARS, "shape", "tensor", "list", "func"])
    if held == "shape":
        change_shape(rng, attr.shape)
    elif held == "tensor":
        change_tensor(rng, attr.tensor)
    elif held == "list":
        _list_attr(rng, attr)
    elif held == "func":
        attr.func.name = rng.choice(TEXTS)
    elif held == "i" and rng.random() < 0.5:
        attr.i = change_integer(rng, attr.i)
    elif held in _SCALARS:
        setattr(attr, held, _SCALARS[held](rng))
    else:
        raise NothingToChangeError

"""Ops that change strings one by one, measure them, and make numbers of them: TensorFlow's string_ops."""

from __future__ import annotations

import base64
import binascii
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.rows import same_on_rows
from timberframe_core.shapes import Shape

_STRINGS = NotDifferentiable("strings have no derivative")
_NUMBERS = "{float, double, int32, int64}"


def each(function: Callable[[bytes], object], texts: np.ndarray, dtype: Any = object) -> np.ndarray:
    """Returns a function of each string."""
    made: np.ndarray = np.empty(texts.size, dtype)
    made[:] = [function(x) for x in texts.reshape(-1).tolist()]
    return made.reshape(texts.shape)


def _same(c: InferenceContext) -> Sequence[Shape]:
    return [c.shapes[0]]


def _define(name: str, function: Callable[[Attrs], Callable[[bytes], object]], doc: str, attrs: Sequence[str] = (),
            output: str = "output: string", dtype: Any = object) -> None:  # fmt: skip
    define_op(
        name,
        inputs=("input: string",),
        outputs=(output,),
        attrs=tuple(attrs),
        doc=doc,
        shape=_same,
        reference=lambda given, x: each(function(given), x, dtype),
        gradient=_STRINGS,
        on_host=True,
    )


def _by_encoding(
    attrs: Attrs, of_text: Callable[[str], str], of_bytes: Callable[[bytes], bytes]
) -> Callable[[bytes], bytes]:
    if attrs["encoding"] not in ("", "utf-8"):
        raise InvalidArgumentError(f"encoding is {attrs['encoding']!r}; '' or 'utf-8' is required")
    if attrs["encoding"]:
        return lambda x: of_text(x.decode(errors="replace")).encode()
    return of_bytes


_define(
    "StringLower",
    lambda a: _by_encoding(a, str.lower, bytes.lower),
    "The strings with small letters: of ASCII, or with encoding 'utf-8' of all scripts.",
    ("encoding: string = ''",),
)
_define(
    "StringUpper",
    lambda a: _by_encoding(a, str.upper, bytes.upper),
    "The strings with capital letters: of ASCII, or with encoding 'utf-8' of all scripts.",
    ("encoding: string = ''",),
)
_define("StringStrip", lambda a: bytes.strip, "The strings without white space at both ends.")
_define(
    "StringLength",
    lambda a: len if a["unit"] == "BYTE" else lambda x: len(x.decode(errors="replace")),
    "The number of bytes, or of characters of UTF-8.",
    ("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",),
    "output: int32",
    np.int32,
)
_define(
    "EncodeBase64",
    lambda a: lambda x: base64.urlsafe_b64encode(x) if a["pad"] else base64.urlsafe_b64encode(x).rstrip(b"="),
    "The strings in base 64 with the letters of URLs; pad: filled with = to a multiple of 4.",
    ("pad: bool = false",),
)


def _decoded(text: bytes) -> bytes:
    try:
        if b"=" in text and len(text) % 4:
            raise binascii.Error(f"{len(text)} characters with padding are no multiple of 4")
        return base64.b64decode(text + b"=" * (-len(text.rstrip(b"=")) % 4 - text.count(b"=")), b"-_", validate=True)
    except binascii.Error as e:
        raise InvalidArgumentError(f"{text!r} is not of base 64 ({e}); letters, digits, - and _ are required") from None


_define("DecodeBase64", lambda a: _decoded, "The bytes of strings in base 64 with the letters of URLs.")


def _number(dtype: np.dtype) -> Callable[[bytes], object]:
    whole = dtype.kind == "i"

    def convert(text: bytes) -> object:
        try:
            value = int(text) if whole else float(text)
            if b"_" in text or (whole and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
                raise ValueError
        except ValueError:
            raise InvalidArgumentError(f"{text!r} is no {dtype.name}; a number is required") from None
        return value

    return convert


def _to_number(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    dtype = attrs["out_type"].numpy
    with np.errstate(over="ignore"):
        return each(_number(dtype), x, np.float64 if dtype.kind == "f" else dtype).astype(dtype)


define_op(
    "StringToNumber",
    inputs=("string_tensor: string",),
    outputs=("output: out_type",),
    attrs=(f"out_type: {_NUMBERS} = DT_FLOAT",),
    doc="The numbers that strings are.",
    shape=_same,
    reference=_to_number,
    gradient=_STRINGS,
    on_host=True,
    on_rows=same_on_rows("string_tensor"),
)


def _raw_shape(c: InferenceContext) -> Sequence[Shape]:
    shape = c.shapes[0]
    return [None if shape is None else (*shape, None)]


def _decode_raw(attrs: Attrs, texts: np.ndarray) -> np.ndarray:
    dtype = attrs["out_type"].numpy
    flat = texts.reshape(-1).tolist()
    sizes = {len(x) for x in flat}
    if len(sizes) > 1:
        raise InvalidArgumentError(f"strings have {sorted(sizes)} bytes; all must have as many")
    size = sizes.pop() if sizes else 0
    if size % dtype.itemsize:
        raise InvalidArgumentError(f"strings have {size} bytes; a multiple of {dtype.itemsize} is required")
    values = np.frombuffer(b"".join(flat), dtype)
    if (sys.byteorder == "little") != attrs["little_endian"]:
        values = values.byteswap()
    return values.reshape((*texts.shape, size // dtype.itemsize)).copy()


define_op(
    "DecodeRaw",
    inputs=("bytes: string",),
    outputs=("output: out_type",),
    attrs=(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool}",
        "little_endian: bool = true",
    ),
    doc="The numbers whose bytes strings are, along a new last dimension.",
    shape=_raw_shape,
    reference=_decode_raw,
    gradient=_STRINGS,
    on_host=True,
    on_rows=same_on_rows("bytes"),
)


def _formatted(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    width, precision, fill = attrs["width"], attrs["precision"], attrs["fill"]
    if fill not in ("", " ", "0", "+", "-"):
        raise InvalidArgumentError(f"fill is {fill!r}; '', ' ', '0', '+' or '-' is required")
    size = f"%{fill if width > -1 else ''}{width if width > -1 else ''}"
    kind = x.dtype.kind
    if kind == "f":
        digits = f".{precision}" if precision > -1 else ""
        letter = "e" if attrs["scientific"] else "g" if attrs["shortest"] else "f"
        form, spaced = f"{size}{digits}{letter}", f"{size.replace('%0', '%')}{digits}{letter}"
        values = [((form if math.isfinite(v) else spaced) % v).encode() for v in x.reshape(-1).tolist()]
    elif kind == "b":
        values = [b"true" if v else b"false" for v in x.reshape(-1).tolist()]
    elif kind == "O":
        values = [v.rjust(width) if width > -1 else v for v in x.reshape(-1).tolist()]
    else:
        values = [f"{size}d".__mod__(v).encode() for v in x.reshape(-1).tolist()]
    made = np.empty(len(values), object)
    made[:] = values
    return made.reshape(x.shape)


define_op(
    "AsString",
    inputs=("input: T",),
    outputs=("output: string",),
    attrs=(
        "T: {float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool, string}",
        "precision: int = -1",
        "scientific: bool = false",
        "shortest: bool = false",
        "width: int = -1",
        "fill: string = ''",
    ),
    doc="Numbers as strings, as C's printf writes them: with %f, or %e if scientific, or %g if shortest.",
    shape=_same,
    reference=lambda attrs, x: _formatted(attrs, x.astype(np.float32) if x.dtype.kind == "V" else x),
    gradient=_STRINGS,
    on_host=True,
)

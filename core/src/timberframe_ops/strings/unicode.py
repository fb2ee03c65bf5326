"""Strings in another encoding, and the scripts of characters."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, NotDifferentiable, define_op
from timberframe_ops.strings.editing import each

_MARK = "\udc00"  # stands for what is not of the encoding; decoders give no such half of a pair themselves
_LAST = 0x10FFFF  # code point
_MARKING = "timberframe.mark"
_NO_ENCODINGS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
_WITH_BYTE_ORDER = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _MARK, error.end


codecs.register_error(_MARKING, _mark)


def _decoder(encoding: str) -> Callable[[bytes], str]:
    """Returns a function that decodes strings, with `_MARK` for each part that is not of the encoding."""
    try:
        name = codecs.lookup(encoding).name
        b"a".decode(name, "ignore")
    except (LookupError, ValueError):
        name = "undefined"
    if name in _NO_ENCODINGS:
        raise InvalidArgumentError(f"input_encoding is {encoding!r}; a known encoding of texts is required")
    if name not in _WITH_BYTE_ORDER:
        return lambda text: text.decode(name, _MARKING)
    marks = _WITH_BYTE_ORDER[name]
    return lambda text: text.decode(name if text.startswith(marks) else f"{name}-be", _MARKING)


def _transcode(attrs: Attrs, texts: np.ndarray) -> np.ndarray:
    number, strict = attrs["replacement_char"], attrs["errors"] == "strict"
    if not 0 <= number <= _LAST:
        raise InvalidArgumentError(f"replacement_char is {number}; a code point, at most {_LAST}, is required")
    replacement = "" if attrs["errors"] == "ignore" else "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)
    wrong = re.compile(f"[{_MARK}\0-\x1f]" if attrs["replace_control_characters"] else _MARK)
    decode, encoding = _decoder(attrs["input_encoding"]), attrs["output_encoding"]

    def transcode(text: bytes) -> bytes:
        decoded = decode(text)
        if strict and wrong.search(decoded):
            raise InvalidArgumentError(f"{text!r} is no {attrs['input_encoding']}; with errors='strict' it must be")
        return wrong.sub(lambda _: replacement, decoded).encode(encoding)

    return each(transcode, texts)


define_op(
    "UnicodeTranscode",
    inputs=("input: string",),
    outputs=("output: string",),
    attrs=(
        "input_encoding: string",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false",
    ),
    doc="The strings in output_encoding. errors: what is not of input_encoding is an error, becomes replacement_char "
    "or is left out; with replace_control_characters so are the characters below U+0020. Encodings are Python's.",
    shape=lambda c: [c.shapes[0]],
    reference=_transcode,
    gradient=NotDifferentiable("strings have no derivative"),
    on_host=True,
)


@cache
def _scripts() -> np.ndarray:
    """Returns pairs of the first code point of a range and the script of all up to the next range."""
    return np.array(json.loads(Path(__file__).with_name("unicode_scripts.json").read_text()), np.int32)


def _script(attrs: Attrs, points: np.ndarray) -> np.ndarray:
    starts, scripts = _scripts().T
    found = scripts[np.searchsorted(starts, points, side="right") - 1]
    return np.where((points >= 0) & (points <= _LAST), found, np.int32(-1))


define_op(
    "UnicodeScript",
    inputs=("input: int32",),
    outputs=("output: int32",),
    doc="The script of each code point, by the number that the library ICU has for it; -1 for what is none.",
    shape=lambda c: [c.shapes[0]],
    reference=_script,
    gradient=NotDifferentiable("code points are integers"),
    on_host=True,
)

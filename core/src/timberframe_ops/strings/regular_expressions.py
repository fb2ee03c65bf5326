"""Ops that take regular expressions, which RE2 reads: characters of UTF-8, its classes, no look-aheads."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.extras import extra
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.strings.editing import each

if TYPE_CHECKING:
    import re2

_STRINGS = NotDifferentiable("strings have no derivative")
_TOKEN = re.compile(rb"\\(.?)|[^\\]+", re.DOTALL)  # of a rewrite: a backslash with its letter, or text


def _compiled(pattern: bytes) -> re2._Regexp:
    """Compiles an expression.

    InvalidArgumentError for what RE2 refuses, MissingPackageError where RE2 is not installed.
    """
    with extra("re2", "regular expressions"):
        import re2  # only an extra brings it

    options = re2.Options()
    options.log_errors = False  # the error says it
    try:
        return re2.compile(pattern, options)
    except re2.error as e:
        shown, reason = (x.decode(errors="backslashreplace") for x in (pattern, e.args[0]))
        raise InvalidArgumentError(
            f"pattern {shown!r} is refused by RE2 ({reason}); one of its syntax is required"
        ) from None


def _matches(pattern: bytes, texts: np.ndarray) -> np.ndarray:
    compiled = _compiled(pattern)
    found = [compiled.fullmatch(x) is not None for x in texts.reshape(-1).tolist()]
    return np.array(found, bool).reshape(texts.shape)


def _tokens(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """Texts and numbers of groups up to a wrong letter after a backslash, and whether there is none."""
    tokens: list[bytes | int] = []
    for token in _TOKEN.finditer(rewrite):
        letter = token[1]
        if letter is None or letter == b"\\":
            tokens.append(letter or token[0])
        elif letter.isdigit():
            tokens.append(int(letter))
        else:
            return tokens, False
    return tokens, True


def _replaced(attrs: Attrs, pattern: bytes, rewrite: bytes) -> Callable[[bytes], bytes]:
    """Returns the function of RE2 that replaces all matches, or the first.

    `\\0` to `\\9` are groups, two backslashes are one. As there, a rewrite with a group that the pattern lacks changes
    nothing. One with another letter after a backslash counts up to there where all matches are replaced, and else
    changes nothing.
    """
    compiled, everywhere = _compiled(pattern), attrs["replace_global"]
    tokens, whole = _tokens(rewrite)
    groups = [int(x[1]) for x in _TOKEN.finditer(rewrite) if x[1] and x[1].isdigit()]
    if max(groups, default=0) > compiled.groups or not (whole or everywhere):
        return lambda text: text

    def replacement(match: re2._Match) -> bytes:
        return b"".join(x if isinstance(x, bytes) else match.group(x) or b"" for x in tokens)

    def replace(text: bytes) -> bytes:
        match = compiled.search(text)
        if match is None:
            return text
        start, end = match.span()
        return text[:start] + replacement(match) + text[end:]

    return (lambda text: _all_replaced(compiled, replacement, text)) if everywhere else replace


def _all_replaced(compiled: re2._Regexp, replacement: Callable[[re2._Match], bytes], text: bytes) -> bytes:
    """Replaces all matches that do not overlap, but for an empty one right after another."""
    made, at, last = [], 0, -1
    while at <= len(text) and (match := compiled.search(text, at)) is not None:
        start, end = match.span()
        made.append(text[at:start])
        if start == end == last:
            width = _width(text, at)
            made.append(text[at : at + width])
            at += width
        else:
            made.append(replacement(match))
            at = last = end
    return b"".join([*made, text[at:]])


def _width(text: bytes, at: int) -> int:
    """Returns the bytes of the character there; 1 where they are not of UTF-8."""
    first = text[at : at + 1]
    size = 1 if first < b"\xc2" else 2 if first < b"\xe0" else 3 if first < b"\xf0" else 4
    try:
        return len(text[at : at + size].decode().encode()) or 1
    except UnicodeDecodeError:
        return 1


def _shape(c: InferenceContext) -> Sequence[Shape]:
    """Returns the shape of the strings; pattern and rewrite are scalars."""
    for i in range(1, len(c.shapes)):
        c.require_rank(i, 0)
    return [c.shapes[0]]


_MATCH = "Whether the whole of each string matches a regular expression of RE2."
_REPLACE = (
    "The strings with what matches a regular expression of RE2, all or the first, replaced. In rewrite, \\1 is the "
    "first group, \\0 the whole match. A rewrite with a group that the pattern lacks changes nothing."
)

define_op(
    "StaticRegexFullMatch",
    inputs=("input: string",),
    outputs=("output: bool",),
    attrs=("pattern: string",),
    doc=_MATCH,
    shape=_shape,
    reference=lambda attrs, x: _matches(attrs["pattern"].encode(), x),
    gradient=_STRINGS,
    on_host=True,
)

define_op(
    "RegexFullMatch",
    inputs=("input: string", "pattern: string"),
    outputs=("output: bool",),
    doc=_MATCH,
    shape=_shape,
    reference=lambda attrs, x, pattern: _matches(pattern.item(), x),
    gradient=_STRINGS,
    on_host=True,
)

define_op(
    "StaticRegexReplace",
    inputs=("input: string",),
    outputs=("output: string",),
    attrs=("pattern: string", "rewrite: string", "replace_global: bool = true"),
    doc=_REPLACE,
    shape=_shape,
    reference=lambda attrs, x: each(_replaced(attrs, attrs["pattern"].encode(), attrs["rewrite"].encode()), x),
    gradient=_STRINGS,
    on_host=True,
)

define_op(
    "RegexReplace",
    inputs=("input: string", "pattern: string", "rewrite: string"),
    outputs=("output: string",),
    attrs=("replace_global: bool = true",),
    doc=_REPLACE,
    shape=_shape,
    reference=lambda attrs, x, pattern, rewrite: each(_replaced(attrs, pattern.item(), rewrite.item()), x),
    gradient=_STRINGS,
    on_host=True,
)

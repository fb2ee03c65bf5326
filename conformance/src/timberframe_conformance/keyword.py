"""The option -k: texts joined by `and`, `or`, `not` and parentheses, each of which must be part of a case's id.

Unlike pytest's own, they may hold any character that ids have, such as # and =.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Matcher = Callable[[str], bool]

_TOKENS = re.compile(r"\(|\)|[^\s()]+(?:\([^\s()]*\)[^\s()]*)*")


class KeywordError(ValueError):
    """An expression that cannot be read."""


def compile_keyword(text: str) -> Matcher:
    """Returns a function that says whether an id matches; upper and lower case are the same. Raises KeywordError."""
    parser = _Parser(_TOKENS.findall(text.lower()), text)
    matcher = parser.either()
    if parser.tokens:
        raise parser.error()
    return lambda case_id: matcher(case_id.lower())


class _Parser:
    def __init__(self, tokens: list[str], text: str) -> None:
        self.tokens = tokens
        self.text = text

    def error(self) -> KeywordError:
        at = repr(self.tokens[0]) if self.tokens else "the end"
        return KeywordError(
            f"-k {self.text!r}: unexpected {at}; texts joined by and, or, not and parentheses are required"
        )

    def either(self) -> Matcher:
        parts = [self.both()]
        while self._take("or"):
            parts.append(self.both())
        return lambda i: any(p(i) for p in parts)

    def both(self) -> Matcher:
        parts = [self.one()]
        while self._take("and"):
            parts.append(self.one())
        return lambda i: all(p(i) for p in parts)

    def one(self) -> Matcher:
        if self._take("not"):
            inner = self.one()
            return lambda i: not inner(i)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise self.error()
            return inner
        if not self.tokens or self.tokens[0] in ("and", "or", ")"):
            raise self.error()
        text = self.tokens.pop(0)
        return lambda i: text in i

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

"""Words of messages that depend on a number, or on the word after them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Returns a number of things: ``1 node``, ``2 nodes``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def with_article(noun: str) -> str:
    """Returns the word with its indefinite article: ``an int32``, ``a uint8``."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"

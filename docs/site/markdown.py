"""Markdown: plain text of docstrings, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def plain(text: str) -> str:
    """Plain text without signs that Markdown would understand; what is between backticks stays code."""
    parts = text.replace("``", "`").split("`")
    for i in range(0, len(parts), 2):
        for sign in "\\*_<[{$#":
            parts[i] = parts[i].replace(sign, f"\\{sign}")
    return "`".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; "" without rows."""
    lines = [f"|{'|'.join(cell.replace('|', '&#124;') for cell in row)}|" for row in rows]
    head = [f"|{'|'.join(heads)}|", f"|{'-|' * len(heads)}"]
    return "\n".join([*head, *lines]) + "\n" if lines else ""

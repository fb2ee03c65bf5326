"""Which headers a source in C includes, for caches of what was compiled from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def headers_digest(source: str, folders: Sequence[str | Path], first: Iterable[Path] = ()) -> str:
    """Returns a digest of all headers of `folders` that a source includes, directly or through others.

    folders: what the compiler gets with -I, in this order. first: headers that it reads before the source. An include
    under a condition that does not hold counts, too; system headers do not.
    """
    import hashlib  # here, since it loads OpenSSL, and most programs compile nothing

    digest = hashlib.sha256()
    for header in _included(source, tuple(map(Path, folders)), first):
        digest.update(_text(header).encode())
    return digest.hexdigest()


def _included(source: str, folders: tuple[Path, ...], first: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = dict.fromkeys(first)  # in the order in which they are met
    waiting = [(source, None), *((_text(h), h.parent) for h in found)]
    while waiting:
        text, own_folder = waiting.pop()
        for quote, name in _INCLUDE.findall(text):
            searched = (own_folder, *folders) if quote == '"' and own_folder is not None else folders
            header = next((h for folder in searched if (h := folder / name).is_file()), None)
            if header is not None and header not in found:
                found[header] = None
                waiting.append((_text(header), header.parent))
    return list(found)


@cache  # as a process began with it: kernels that it made of one text must not be kept under the key of another
def _text(header: Path) -> str:
    return header.read_text()

"""Which of the peers that a user names are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence


def absent_modules(names: Iterable[str]) -> str:
    """Returns those of the modules that cannot be imported, with commas; empty if all can."""
    return ", ".join(name for name in names if importlib.util.find_spec(name) is None)


def find_peers(
    wanted: Sequence[str], known: Sequence[str], unknown: str, lacking: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Returns the wanted peers that can be measured, and why each of the others is left out.

    unknown: the reason given for a peer that is not known. lacking: what a known peer requires and is not installed,
    empty if nothing is missing.
    """
    present, absent = [], []
    for peer in wanted:
        if peer not in known:
            absent.append(f"{peer}: {unknown} (known: {', '.join(known)})")
        elif lacks := lacking(peer):
            absent.append(f"{peer}: {lacks} is not installed")
        else:
            present.append(peer)
    return present, absent

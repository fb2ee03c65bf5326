"""NVTX: ranges are noted instead of shown."""

from __future__ import annotations

import threading

available = True
ranges: list[tuple[int, str]] = []
"""The ranges that began, each with the number of those around it in its thread."""
_open = threading.local()


def RangePush(message: str, id_color: int = -1) -> None:
    depth = _open.__dict__.setdefault("depth", 0)
    ranges.append((depth, message))
    _open.depth = depth + 1


def RangePop() -> None:
    depth = _open.__dict__.get("depth", 0)
    if not depth:
        raise RuntimeError("no range of this thread is open")
    _open.depth = depth - 1

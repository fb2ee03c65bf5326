"""Notes of what others than a device's hardware compute in its name: reports show it, and it counts for no level."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

_noted: Counter[tuple[str, str, str]] = Counter()
_counting = threading.Lock()


def note_fallback(device_type: str, op: str, by: str) -> None:
    """Notes that a node of the op was computed by somebody else than the device's hardware.

    For devices whose toolchain gives nodes away by itself, such as to the host; each time such a node has run.
    by: who computed it, as reports are to name it.
    """
    with _counting:
        _noted[device_type, op, by] += 1


def times_fallen_back(device_type: str) -> Mapping[tuple[str, str], int]:
    """Returns how often each op has been computed by each other, for devices of this type in this process so far."""
    with _counting:
        return {(op, by): count for (kind, op, by), count in _noted.items() if kind == device_type}

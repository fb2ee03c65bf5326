"""Notes of who computes nodes where a device's toolchain decides it by itself: reports show its kernels by name.

What others than the device's hardware compute in its name counts for no level.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

_noted: Counter[tuple[str, str, str]] = Counter()
_kernels: Counter[tuple[str, str, str]] = Counter()
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


def note_kernel(device_type: str, op: str, kernel: str) -> None:
    """Notes that a kernel of the device's toolchain has run for a node of the op; each time that it has.

    kernel: its name in the toolchain's words, with what it is where it is not one of the hardware's own.
    """
    with _counting:
        _kernels[device_type, op, kernel] += 1


def kernels_noted(device_type: str) -> Mapping[tuple[str, str], int]:
    """Returns how often each kernel of the toolchain has run for each op, for devices of this type so far."""
    with _counting:
        return {(op, kernel): count for (kind, op, kernel), count in _kernels.items() if kind == device_type}

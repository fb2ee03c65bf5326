"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, as google-crc32c computes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import google_crc32c
import numpy as np

_MASK = 0xA282EAD8  # what TensorFlow adds to stored checksums, after turning them by 15 bits

Words = np.ndarray[Any, np.dtype[np.uint32]]


def crc32c(data: Any, start: int = 0) -> int:
    """Returns the checksum of bytes, continued from the checksum `start` of what stands before them."""
    found: int = google_crc32c.extend(start, data if type(data) is bytes else np.frombuffer(data, np.uint8))
    return found


def of_each(parts: Iterable[bytes]) -> Words:
    """Returns the checksums of several pieces of data."""
    return np.array([google_crc32c.value(part) for part in parts], np.uint32)


def of_rows(rows: np.ndarray) -> Words:
    """Returns the checksums of the rows of a matrix of bytes."""
    data, length = rows.tobytes(), rows.shape[1]
    return of_each(data[i * length : (i + 1) * length] for i in range(len(rows)))


def masked(checksum: Any) -> Any:
    """Returns a checksum, or an array of them, in the form in which TensorFlow stores it."""
    if isinstance(checksum, np.ndarray):
        return (checksum >> np.uint32(15) | checksum << np.uint32(17)) + np.uint32(_MASK)
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF

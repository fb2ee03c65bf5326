"""Constants of mapped files give their memory back when a kernel has them in another form."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from timberframe_sdk.execution.constants import leave_in_file

PAGES = 64


def resident(mapped: mmap.mmap) -> int:
    """Kilobytes of the mapping that are in memory."""
    start = np.frombuffer(mapped, np.uint8).ctypes.data
    lines = Path("/proc/self/smaps").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{start:x}-"))
    return int(next(line for line in lines[at:] if line.startswith("Rss:")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say what is in memory")
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_a_mapped_constant_is_read_from_its_file_again(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "constants"
    values = np.arange(PAGES * mmap.PAGESIZE // 4, dtype=np.float32)
    path.write_bytes(b"x" * offset + values.tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    x = np.frombuffer(mapped, np.float32, offset=offset).reshape(PAGES, -1)
    assert x.sum(dtype=np.float64) == values.sum(dtype=np.float64)
    before = resident(mapped)
    leave_in_file(x)
    assert resident(mapped) <= before - (PAGES - 2) * mmap.PAGESIZE // 1024
    np.testing.assert_array_equal(x.ravel(), values)


def test_other_arrays_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "constants"
    path.write_bytes(bytes(PAGES * mmap.PAGESIZE))
    with path.open("r+b") as file:
        private = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    for buffer in (private, bytearray(PAGES * mmap.PAGESIZE)):
        x = np.frombuffer(buffer, np.float32)
        x[:] = 1
        leave_in_file(x)
        assert (x == 1).all()
    part = np.frombuffer(private, np.float32)[::2]
    leave_in_file(part)
    assert (part == 1).all()

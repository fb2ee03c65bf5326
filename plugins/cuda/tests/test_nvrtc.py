"""NVRTC takes the sources of all kernels, without a warning.

A run of the tests takes a share that the commit chooses; ``python plugins/cuda/tests/test_nvrtc.py`` takes all.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_cuda.compiler import flags

pytestmark = pytest.mark.slow

ARCHITECTURES = "sm_75", "sm_80", "sm_90"
SHARE = 40


def complaints(tasks: Sequence[tuple[str, str, str]]) -> list[str]:
    """What NVRTC says about (source, what it is for, architecture)."""
    import nvrtc

    def one(task: tuple[str, str, str]) -> str:
        source, what, architecture = task
        found = nvrtc.complaints(source, flags(architecture))
        return f"{what}, {architecture}:\n{found}\n{source}" if found else ""

    with ThreadPoolExecutor(2) as pool:
        return [message for message in pool.map(one, tasks) if message]


def test_nvrtc_takes_a_share_of_all_kernels(emulator: None) -> None:
    import nvrtc
    from kernel_sources import kernel_sources

    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed; the package nvidia-cuda-nvrtc has it")

    commit = str(commit_number(Path(__file__).parent))
    tasks = [(s, w, a) for s, w in kernel_sources(1).items() for a in ARCHITECTURES]
    tasks.sort(key=lambda task: hashlib.sha256("".join((commit, *task)).encode()).digest())
    assert not complaints(tasks[:SHARE])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).with_name("emulator")))
    from kernel_sources import kernel_sources

    found = kernel_sources(1000, sys.argv[1:])
    bad = complaints([(s, w, a) for s, w in found.items() for a in ARCHITECTURES])
    print("\n".join(bad))
    print(f"{len(found)} sources, {len(ARCHITECTURES)} architectures, {len(bad)} refused or with a warning")
    sys.exit(bool(bad))

"""The device that runs CUDA sources on the CPU, as an installed plugin of this process and its children."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EMULATOR = Path(__file__).with_name("emulator")


@pytest.fixture(scope="session")
def emulator() -> Iterator[None]:
    """Makes ``cuda_on_cpu`` importable; skips where there is no C++ compiler."""
    sys.path.insert(0, str(EMULATOR))
    old = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (str(EMULATOR), old) if p)
    try:
        from cuda_on_cpu.program import compiler

        if compiler() is None:
            pytest.skip("no C++ compiler is installed, which the CPU needs to run CUDA sources")
        yield
    finally:
        sys.path.remove(str(EMULATOR))
        if old is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = old

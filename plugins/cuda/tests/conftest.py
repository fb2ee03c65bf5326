"""CUDA on the CPU: the emulator's modules, and the stand-in for CuPy in ``emulator/driver``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EMULATOR = Path(__file__).with_name("emulator")
PATHS = [str(EMULATOR), str(EMULATOR / "driver")]


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the emulator's modules importable; skips where there is no C++ compiler."""
    monkeypatch.syspath_prepend(PATHS[0])
    from cuda_on_cpu.program import compiler

    if compiler() is None:
        pytest.skip("no C++ compiler is installed, which the CPU needs to run CUDA sources")


@pytest.fixture(params=["at once", "late"])
def streams(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """When the emulated streams do their work: when it is enqueued, or not before somebody waits for it."""
    monkeypatch.setenv("EMULATED_STREAMS", request.param)
    return str(request.param)


@pytest.fixture
def cuda(emulator: None, streams: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The plugin's module of devices on two emulated GPUs."""
    monkeypatch.syspath_prepend(PATHS[1])
    before = _forget()
    from timberframe_cuda import device

    yield device
    _forget()
    sys.modules.update(before)  # an installed CuPy cannot be loaded twice


@pytest.fixture
def emulated_environment(emulator: None, streams: str) -> dict[str, str]:
    """The environment of a child process that sees the emulated GPUs."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*PATHS, *([before] if before else [])])}


def _forget() -> dict[str, ModuleType]:
    """Takes out what was imported on top of one CuPy, so that the next test meets its own."""
    names = [n for n in sys.modules if n.split(".")[0] in ("cupy", "timberframe_cuda")]
    return {name: sys.modules.pop(name) for name in names}

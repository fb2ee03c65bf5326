"""Registers the backend `mock` of mock_backend.cpp, which is compiled once for a version of torch; a library is kept.

``TIMBERFRAME_MOCK_BACKEND`` names the folder for it, by default one of the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import torch
from torch.utils import cpp_extension

from timberframe_sdk import cache_folder

SOURCE = Path(__file__).with_suffix(".cpp")


def library() -> Path:
    """Returns the compiled backend; FileNotFoundError where there is no compiler."""
    text = SOURCE.read_bytes() + torch.__version__.encode()
    folder = Path(os.environ.get("TIMBERFRAME_MOCK_BACKEND") or cache_folder("torch-tests"))
    made = folder / f"mock-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if made.exists():
        return made
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise FileNotFoundError("no C++ compiler")
    folder.mkdir(parents=True, exist_ok=True)
    libraries = Path(torch.__file__).parent / "lib"
    begun = made.with_suffix(f".{os.getpid()}")
    command = [
        compiler, "-O0", "-std=c++20", "-fPIC", "-shared", *(f"-I{p}" for p in cpp_extension.include_paths()),
        str(SOURCE), "-o", str(begun), f"-L{libraries}", "-ltorch", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    begun.replace(made)
    return made


class Mock(ModuleType):
    """What torch asks a backend's own module."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """It draws no numbers."""


torch.ops.load_library(str(library()))
torch.utils.rename_privateuse1_backend("mock")
torch._register_device_module("mock", Mock("torch.mock"))

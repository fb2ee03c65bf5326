"""NVRTC from NVIDIA's wheel or the system, called without CuPy: it needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def library() -> ctypes.CDLL | None:
    """NVRTC; None where it is not installed."""
    wheels = importlib.util.find_spec("nvidia")  # the namespace of NVIDIA's wheels
    folders = [Path(f) for f in (wheels.submodule_search_locations or ())] if wheels is not None else []
    found = [f for folder in folders for f in sorted(folder.glob("*/lib/libnvrtc.so.*")) if "alt" not in f.name]
    names = [*map(str, found), ctypes.util.find_library("nvrtc")]
    for name in filter(None, names):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def complaints(source: str, flags: Sequence[str]) -> str:
    """NVRTC's errors and warnings for a source; empty if there are none."""
    nvrtc = library()
    assert nvrtc is not None
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = (ctypes.c_char_p * len(flags))(*(f.encode() for f in flags))
    status = nvrtc.nvrtcCompileProgram(program, len(flags), options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode().strip() or ("" if status == 0 else f"status {status}")

"""NVRTC from NVIDIA's wheel or the system, called without CuPy: it needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


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


def version() -> str:
    """Major and minor version of NVRTC."""
    nvrtc = library()
    assert nvrtc is not None
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def log(source: str, flags: Sequence[str]) -> str:
    """Returns NVRTC's messages for a source: errors, warnings, and ptxas's figures where the flags ask for them."""
    nvrtc = library()
    assert nvrtc is not None
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = (ctypes.c_char_p * len(flags))(*(f.encode() for f in flags))
    status = nvrtc.nvrtcCompileProgram(program, len(flags), options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode().strip() or ("" if status == 0 else f"status {status}")


class Nvrtc:
    """`cupy.cuda.nvrtc` as far as `timberframe_cuda.compiler` calls it, where CuPy is not installed."""

    class NVRTCError(RuntimeError): ...

    def __init__(self) -> None:
        found = library()
        assert found is not None
        self._nvrtc = found

    def getVersion(self) -> tuple[int, ...]:  # noqa: N802 - the names are CuPy's
        return tuple(map(int, version().split(".")))

    def createProgram(self, src: str, name: str, headers: tuple[()], include_names: tuple[()]) -> ctypes.c_void_p:  # noqa: N802
        program = ctypes.c_void_p()
        self._nvrtc.nvrtcCreateProgram(ctypes.byref(program), src.encode(), name.encode(), 0, None, None)
        return program

    def compileProgram(self, prog: ctypes.c_void_p, options: Sequence[str]) -> None:  # noqa: N802
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        if status := self._nvrtc.nvrtcCompileProgram(prog, len(options), given):
            raise self.NVRTCError(f"status {status}")

    def _text(self, what: str, prog: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._nvrtc[f"nvrtcGet{what}Size"](prog, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._nvrtc[f"nvrtcGet{what}"](prog, text)
        return text.raw[:-1]  # as CuPy, which leaves out the last byte of machine code, too

    def getCUBIN(self, prog: ctypes.c_void_p) -> bytes:  # noqa: N802
        return self._text("CUBIN", prog)

    def getPTX(self, prog: ctypes.c_void_p) -> bytes:  # noqa: N802
        return self._text("PTX", prog)

    def getProgramLog(self, prog: ctypes.c_void_p) -> str:  # noqa: N802
        return self._text("ProgramLog", prog).decode()

    def destroyProgram(self, prog: ctypes.c_void_p) -> None:  # noqa: N802
        self._nvrtc.nvrtcDestroyProgram(ctypes.byref(prog))


@contextmanager
def as_cupy() -> Iterator[None]:
    """Puts NVRTC in the place of CuPy's module, and takes it away again."""
    names = "cupy", "cupy.cuda"
    modules: dict[str, Any] = {name: ModuleType(name) for name in names}
    modules["cupy.cuda"].nvrtc = Nvrtc()
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module

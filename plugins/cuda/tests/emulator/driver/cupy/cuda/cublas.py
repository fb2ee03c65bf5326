"""cuBLAS as a shared library of its real name, which ctypes finds once this module is loaded. It goes by columns."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from platformdirs import user_cache_path

from cuda_on_cpu.program import compiler
from cupy.cuda import runtime

_DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}
_COMPUTES = {68: np.float32, 77: np.float32, 70: np.float64}
_NOT_INITIALIZED, _INVALID_VALUE, _EXECUTION_FAILED, _INTERNAL_ERROR, _NOT_SUPPORTED = 1, 7, 13, 14, 15
calls = 0
"""Products that were asked for."""
fails_with = 0
"""The status that products give instead, for tests."""


class _StatusError(Exception):
    """A call that fails with a cublasStatus_t."""


@dataclass
class _Handle:
    device: int
    stream: int = 0
    workspace: int = 0


_handles: dict[int, _Handle] = {}


def _handle(number: int) -> _Handle:
    found = _handles.get(number)
    if found is None:
        raise _StatusError(_NOT_INITIALIZED)
    if found.device != runtime.getDevice():  # of another GPU than the current one
        raise _StatusError(_EXECUTION_FAILED)
    return found


def _create(place: Any) -> None:
    number = next(runtime.numbers)
    _handles[number] = _Handle(runtime.getDevice())
    ctypes.cast(place, ctypes.POINTER(ctypes.c_void_p))[0] = number


def _destroy(handle: int) -> None:
    _handle(handle)
    del _handles[handle]


def _set_stream(handle: int, stream: int) -> None:
    found = _handle(handle)
    runtime.check_stream(stream)
    found.stream, found.workspace = stream, 0  # a workspace that was set is forgotten


def _set_workspace(handle: int, address: int, size: int) -> None:
    if address % 256 or not size:
        raise _StatusError(_INVALID_VALUE)
    _handle(handle).workspace = size


def _set_math_mode(handle: int, mode: int) -> None:
    _handle(handle)


def _multiply(handle: int, numbers: Any, alpha: int, operands: Any, beta: int, result: int) -> None:
    global calls
    found = _handle(handle)
    transa, transb, m, n, k = numbers[:5]
    types, pitches, steps = numbers[5:14:3], numbers[6:14:3], numbers[7:14:3]
    count, compute = numbers[14], numbers[15]
    wide, rows = _COMPUTES.get(compute), [k if transa else m, n if transb else k, m]
    if min(m, n, k, count) < 0 or any(pitch < max(1, r) for pitch, r in zip(pitches, rows, strict=True)):
        raise _StatusError(_INVALID_VALUE)
    if wide is None or types[0] != types[1] or not {*types} <= {*_DTYPES} or (types[0] == 1) != (compute == 70):
        raise _StatusError(_NOT_SUPPORTED)
    if types[2] not in (types[0], 0):
        raise _StatusError(_NOT_SUPPORTED)
    if found.stream in runtime.captured and not found.workspace:  # it would allocate memory of its own
        raise _StatusError(_INTERNAL_ERROR)
    if fails_with:
        raise _StatusError(fails_with)
    calls += 1
    scale = ctypes.c_double if wide is np.float64 else ctypes.c_float
    factor, added = (scale.from_address(p).value for p in (alpha, beta))  # read now, not when the work is done
    addresses = operands[0], operands[1], result
    shapes = [(k, m) if transa else (m, k), (n, k) if transb else (k, n), (m, n)]

    def work() -> None:
        for i in range(count):
            a, b, c = (
                _by_columns(address + i * step * _size(kind), kind, shape, pitch)
                for address, step, kind, shape, pitch in zip(addresses, steps, types, shapes, pitches, strict=True)
            )
            product = factor * ((a.T if transa else a).astype(wide) @ (b.T if transb else b).astype(wide))
            c[...] = product + added * c.astype(wide) if added else product  # without `added`, c may hold anything

    runtime.do(found.stream, work)


def _by_columns(address: int, kind: int, shape: tuple[int, int], pitch: int) -> Any:
    """Returns the matrix whose columns begin every `pitch` elements."""
    rows, columns = shape
    dtype = np.dtype(_DTYPES[kind])
    size = ((columns - 1) * pitch + rows) * dtype.itemsize
    flat = np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, (dtype.itemsize, pitch * dtype.itemsize))


def _size(kind: int) -> int:
    return int(np.dtype(_DTYPES[kind]).itemsize)


def _returning_status(function: Callable[..., None]) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
        try:
            function(*arguments)
        except _StatusError as e:
            return int(e.args[0])
        except Exception:  # an exception cannot pass through C
            return _INTERNAL_ERROR
        return 0

    return call


_VOID, _INT = ctypes.c_void_p, ctypes.c_int
_NUMBERS, _POINTERS = ctypes.POINTER(ctypes.c_longlong), ctypes.POINTER(ctypes.c_void_p)
_HOOKS: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    (_create, (_VOID,)),
    (_destroy, (_VOID,)),
    (_set_stream, (_VOID, _VOID)),
    (_set_workspace, (_VOID, _VOID, ctypes.c_size_t)),
    (_set_math_mode, (_VOID, _INT)),
    (_multiply, (_VOID, _NUMBERS, _VOID, _POINTERS, _VOID, _VOID)),
]


def _load() -> Any:
    """Compiles the library, once for all processes, and sets what its functions call."""
    source, major = Path(__file__).with_name("cublas.c"), runtime.runtimeGetVersion() // 1000
    name = f"libcublas.so.{major}"
    folder = Path(os.environ.get("TIMBERFRAME_CACHE") or user_cache_path("timberframe")) / "cuda_on_cpu"
    path = folder / hashlib.sha256(source.read_bytes()).hexdigest()[:32] / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(f".{os.getpid()}")
        command = [compiler() or "c++", "-x", "c", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", made, source]
        subprocess.run(command, check=True)
        made.replace(path)
    library = ctypes.CDLL(str(path))
    hooks = [ctypes.CFUNCTYPE(ctypes.c_int, *types)(_returning_status(function)) for function, types in _HOOKS]
    table = (ctypes.c_void_p * len(hooks)).in_dll(library, "hooks")
    for i, hook in enumerate(hooks):
        table[i] = ctypes.cast(hook, ctypes.c_void_p)
    return library, hooks


_loaded = _load()

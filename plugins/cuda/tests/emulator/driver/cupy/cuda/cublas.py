"""cuBLAS: products of matrices that go by columns."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from cupy.cuda import runtime

CUBLAS_OP_N, CUBLAS_OP_T = 0, 1
CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F_FAST_TF32 = 68, 70, 77
CUBLAS_GEMM_DEFAULT = -1
_DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}


class CUBLASError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"CUBLAS_STATUS_{status}")
        self.status = status


def create() -> int:
    return next(runtime.numbers)


def setMathMode(handle: int, mode: int) -> None: ...


def _by_columns(address: int, kind: int, rows: int, columns: int, leading: int) -> Any:
    """The rows x columns matrix whose columns begin every `leading` elements."""
    assert leading >= rows
    dtype = np.dtype(_DTYPES[kind])
    size = ((columns - 1) * leading + rows) * dtype.itemsize
    flat = np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
    strides = dtype.itemsize, leading * dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), strides)


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int,
    A: int, Atype: int, lda: int, strideA: int, B: int, Btype: int, ldb: int, strideB: int, beta: int,
    C: int, Ctype: int, ldc: int, strideC: int, batchCount: int, computeType: int, algo: int,
) -> None:  # fmt: skip
    stream = runtime.current_streams()[-1].ptr
    runtime.check_stream(stream)
    if stream in runtime.captured:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
    wide = np.dtype(np.float64 if computeType == CUBLAS_COMPUTE_64F else np.float32)
    scales = [(ctypes.c_double if wide.itemsize == 8 else ctypes.c_float).from_address(p).value for p in (alpha, beta)]
    assert scales == [1, 0]

    def multiply() -> None:
        for i in range(batchCount):
            a = _by_columns(A + i * strideA * _size(Atype), Atype, *((k, m) if transa else (m, k)), lda)
            b = _by_columns(B + i * strideB * _size(Btype), Btype, *((n, k) if transb else (k, n)), ldb)
            c = _by_columns(C + i * strideC * _size(Ctype), Ctype, m, n, ldc)
            c[...] = (a.T if transa else a).astype(wide) @ (b.T if transb else b).astype(wide)

    runtime.do(stream, multiply)


def _size(kind: int) -> int:
    return int(np.dtype(_DTYPES[kind]).itemsize)

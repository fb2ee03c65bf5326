"""Products of matrices by cuBLAS, called through ctypes: CuPy calls it on no stream that is being captured.

A device has a handle for each of its two streams. What is captured runs on the main stream in the end, one after the
other with everything else, so both use the same workspace; with one of their own they allocate nothing in a capture.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from timberframe_accelerator import Function, Multiplication
from timberframe_sdk import InternalError, OpError, ResourceExhaustedError, UnimplementedError

_DATA = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
"""cudaDataType by dtype (library_types.h)."""
_AS_IT_IS, _TRANSPOSED = 0, 1  # cublasOperation_t
_COMPUTE_FLOAT32, _COMPUTE_FLOAT64, _COMPUTE_TF32 = 68, 70, 77  # cublasComputeType_t
_DEFAULT_ALGORITHM = -1  # cublasGemmAlgo_t
_EXACT_SUMS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: 16-bit floats are summed in float32 to the end
_SCALES = {t: np.array([0, 1], t) for t in (np.float32, np.float64)}  # beta of what is replaced and added to, and alpha
_MOST = 2**31 - 1  # of sizes and pitches: cuBLAS takes them as int

_STATUS: dict[int, tuple[type[OpError], str]] = {
    1: (InternalError, "NOT_INITIALIZED"),
    3: (ResourceExhaustedError, "ALLOC_FAILED: less memory in use at a time is required"),
    7: (InternalError, "INVALID_VALUE"),
    8: (UnimplementedError, "ARCH_MISMATCH: a GPU that computes with these dtypes is required"),
    11: (InternalError, "MAPPING_ERROR"),
    13: (InternalError, "EXECUTION_FAILED, perhaps of work that was enqueued before"),
    14: (InternalError, "INTERNAL_ERROR, perhaps of work that was enqueued before"),
    15: (UnimplementedError, "NOT_SUPPORTED"),
}
"""The error for each cublasStatus_t (cublas_api.h)."""

_VOID, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_OPERAND = (_VOID, _INT, _INT, _LONG)  # address, dtype, pitch and step
_FUNCTIONS: dict[str, Sequence[Any]] = {
    "cublasCreate_v2": (_VOID,),
    "cublasDestroy_v2": (_VOID,),
    "cublasSetStream_v2": (_VOID, _VOID),
    "cublasSetWorkspace_v2": (_VOID, _VOID, ctypes.c_size_t),
    "cublasSetMathMode": (_VOID, _INT),
    "cublasGemmStridedBatchedEx": (
        _VOID, _INT, _INT, _INT, _INT, _INT, _VOID, *_OPERAND, *_OPERAND, _VOID, *_OPERAND, _INT, _INT, _INT,
    ),
}  # fmt: skip
"""Types of the arguments (cublas_api.h); each function returns a status."""


@cache
def library() -> Any:
    """Returns the cuBLAS that CuPy works with; ImportError, OSError or AttributeError where
    there is none, or one too old.
    """
    from cupy.cuda import cublas as cublas  # which loads the library, from wherever CuPy finds it
    from cupy.cuda import runtime

    found = ctypes.CDLL(f"libcublas.so.{runtime.runtimeGetVersion() // 1000}")
    for name, arguments in _FUNCTIONS.items():
        function = getattr(found, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    return found


def is_served(wanted: Multiplication) -> bool:
    """Returns whether cuBLAS computes products of these dtypes and sizes."""
    x, y, result = (t.name for t in wanted.types)
    numbers = wanted.rows, wanted.columns, wanted.depth, wanted.count, *wanted.pitches
    return x == y and x in _DATA and result in (x, _sums(x)) and max(numbers) <= _MOST and min(numbers) >= 1


def _sums(name: str) -> str:
    """Returns the dtype in which products of a dtype are added."""
    return "float64" if name == "float64" else "float32"


def blas_error(spec: str, function: str, status: int) -> OpError:
    """Returns the error for a call of cuBLAS that failed."""
    kind, words = _STATUS.get(status, (InternalError, f"status {status}"))
    return kind(f"{spec}: {function} of cuBLAS reports {words}")


class Products:
    """The products of a device by cuBLAS."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._library = library()
        self._calling = threading.Lock()  # a handle is for one thread at a time
        self._handles: dict[int, int] = {}
        self._workspace: Any = None

    def multiplier(self, wanted: Multiplication) -> Function | None:
        """See `AcceleratorDevice.multiplier`; None for dtypes and sizes that cuBLAS does not take."""
        if not is_served(wanted):
            return None
        self._prepare()
        return self._function(wanted)

    def _function(self, wanted: Multiplication) -> Function:
        """cuBLAS goes by columns, so it sees the transposes: result' = y' x'."""
        names = [t.name for t in wanted.types]
        sums = _sums(names[0])
        device, handles, calling = self._device, self._handles, self._calling
        compute = _COMPUTE_FLOAT64 if sums == "float64" else _COMPUTE_FLOAT32
        if names[0] == "float32" and device.options["tf32"]:
            compute = _COMPUTE_TF32
        scales = _SCALES[np.float64 if sums == "float64" else np.float32]
        one, beta = scales[1:].ctypes.data, scales[int(wanted.adds) :].ctypes.data
        kinds, widths = [_DATA[n] for n in names], [t.itemsize for t in wanted.types]
        swapped = [_TRANSPOSED if swap else _AS_IT_IS for swap in wanted.swaps]
        sizes, steps, pitches = (wanted.columns, wanted.rows, wanted.depth), wanted.steps, wanted.pitches
        multiply, count = self._library.cublasGemmStridedBatchedEx, wanted.count

        def run(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
            x, x_start, y, y_start, result, start = arguments
            if device.streams.capture is None:
                device.failures.check("launch")
            with calling, device.calling():
                status = multiply(
                    handles[device.streams.current.ptr], swapped[1], swapped[0], *sizes, one,
                    y.handle.ptr + int(y_start) * widths[1], kinds[1], pitches[1], steps[1],
                    x.handle.ptr + int(x_start) * widths[0], kinds[0], pitches[0], steps[0], beta,
                    result.handle.ptr + int(start) * widths[2], kinds[2], pitches[2], steps[2],
                    count, compute, _DEFAULT_ALGORITHM,
                )  # fmt: skip
            if status:
                raise blas_error(device.spec, "cublasGemmStridedBatchedEx", status)

        return run

    def _prepare(self) -> None:
        """Makes the handles and their workspace, at the first product that is built."""
        device = self._device
        with self._calling:
            if self._handles:
                return
            size = _workspace_bytes(device.architecture)
            try:
                self._workspace = device.allocator.raw(size)
            except MemoryError as e:
                fact = f"{device.spec}: {size} bytes of workspace for cuBLAS were refused ({e})"
                raise ResourceExhaustedError(f"{fact}; less memory in use at a time is required") from e
            made = {}
            with device.calling():
                for stream in device.streams.all:
                    handle = ctypes.c_void_p()
                    self._call("cublasCreate_v2", ctypes.byref(handle))
                    self._call("cublasSetStream_v2", handle, stream.ptr)
                    self._call("cublasSetWorkspace_v2", handle, self._workspace.ptr, size)  # after the stream
                    self._call("cublasSetMathMode", handle, _EXACT_SUMS)
                    made[stream.ptr] = handle.value or 0
            self._handles.update(made)

    def close(self) -> None:
        """Gives the handles and their workspace back."""
        with self._calling, self._device.calling():
            for handle in self._handles.values():
                self._call("cublasDestroy_v2", handle)
            self._handles.clear()
            self._workspace = None

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise blas_error(self._device.spec, name, status)


def _workspace_bytes(architecture: str) -> int:
    """Returns the size that cuBLAS's documentation recommends (cublasSetWorkspace): 32 MiB
    from Hopper on, 4 MiB before.
    """
    return (32 if int(architecture.split("_")[1]) >= 90 else 4) << 20

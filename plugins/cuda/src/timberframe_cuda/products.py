"""Products of matrices by cuBLAS, where CuPy finds that library."""

from __future__ import annotations

import math
import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from timberframe_accelerator import DeviceTensor
from timberframe_sdk import KernelDef, KernelNode, Launch, Launcher

_DATA = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
"""cudaDataType by dtype (library_types.h)."""
_EXACT_SUMS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: 16-bit floats are summed in float32 to the end
_SCALES = {t: np.array([1, 0], t) for t in (np.float32, np.float64)}  # alpha and beta
_handles: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_calling = threading.Lock()


def cublas_kernels() -> list[KernelDef]:
    """Kernels that take precedence over the SDK's; none where there is no GPU or no cuBLAS."""
    try:
        from cupy.cuda import cublas, runtime

        usable = bool(runtime.getDeviceCount()) and cublas is not None
    except (ImportError, RuntimeError):
        usable = False
    types = {"T": tuple(_DATA)}
    ops = {"MatMul": ("transpose_a", "transpose_b")} | dict.fromkeys(
        ("BatchMatMul", "BatchMatMulV2"), ("adj_x", "adj_y")
    )
    return [KernelDef(op, "CUDA", _builder(*swaps), types, priority=10) for op, swaps in ops.items() if usable]


def _builder(swap_x: str, swap_y: str) -> Any:
    def product(node: KernelNode) -> Launcher:
        return _launcher(node, node.attrs[swap_x], node.attrs[swap_y])

    return product


def _launcher(node: KernelNode, swap_x: bool, swap_y: bool) -> Launcher:
    """cuBLAS sees the transposes, as it goes by columns: out' (n x m) = y' (n x k) x' (k x m)."""
    from cupy.cuda import cublas, runtime

    device: Any = node.device
    x, y, out = node.inputs[0].shape, node.inputs[1].shape, node.outputs[0]
    m, n = out.shape[-2:]
    k = x[-2 if swap_x else -1]
    dtype = out.dtype.name
    data, itemsize = _DATA[dtype], out.dtype.itemsize
    compute = cublas.CUBLAS_COMPUTE_64F if dtype == "float64" else cublas.CUBLAS_COMPUTE_32F
    if dtype == "float32" and device.options["tf32"]:
        compute = cublas.CUBLAS_COMPUTE_32F_FAST_TF32
    scales = _SCALES[np.float64 if dtype == "float64" else np.float32]
    one, zero = scales.ctypes.data, scales[1:].ctypes.data
    left = (cublas.CUBLAS_OP_T, k) if swap_y else (cublas.CUBLAS_OP_N, n)
    right = (cublas.CUBLAS_OP_T, m) if swap_x else (cublas.CUBLAS_OP_N, k)
    calls = _batches(x[:-2], y[:-2], out.shape[:-2], (m * k, k * n, m * n))

    def launch(a: DeviceTensor, b: DeviceTensor, c: DeviceTensor) -> None:
        if not out.size:
            return
        device.failures.check("launch")
        with device.calling():
            if not k:
                runtime.memsetAsync(c.handle.ptr, 0, out.nbytes, device.streams.current.ptr)
                return
            with _calling:  # a handle is for one thread at a time
                handle = _handle(device)
                for count, (start_a, start_b, start_c), (step_a, step_b, step_c) in calls:
                    cublas.gemmStridedBatchedEx(
                        handle, left[0], right[0], n, m, k, one,
                        b.handle.ptr + start_b * itemsize, data, left[1], step_b,
                        a.handle.ptr + start_a * itemsize, data, right[1], step_a, zero,
                        c.handle.ptr + start_c * itemsize, data, n, step_c, count, compute, cublas.CUBLAS_GEMM_DEFAULT,
                    )  # fmt: skip

    return Launch(launch, repeatable=False)  # CuPy calls cuBLAS on no stream that is being captured


def _handle(device: Any) -> int:
    from cupy.cuda import cublas

    found = _handles.get(device)
    if found is None:
        found = _handles[device] = cublas.create()
        cublas.setMathMode(found, _EXACT_SUMS)
    return found


Dims = tuple[int, ...]
Call = tuple[int, Dims, Dims]


def _batches(x: Dims, y: Dims, out: Dims, sizes: tuple[int, int, int]) -> list[Call]:
    """Calls that make all products of a batch: number of matrices, and first elements and steps of x, y and out."""
    count = math.prod(out)
    if all(math.prod(dims) in (1, count) for dims in (x, y)):
        steps = [size if math.prod(dims) == count else 0 for dims, size in zip((x, y, out), sizes, strict=True)]
        return [(count, (0, 0, 0), tuple(steps))]
    rows = [np.broadcast_to(np.arange(math.prod(dims)).reshape(dims), out).ravel() for dims in (x, y, out)]
    starts = np.stack(rows, 1) * sizes
    return [(1, tuple(int(s) for s in start), (0, 0, 0)) for start in starts]

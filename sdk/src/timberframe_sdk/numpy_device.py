"""A whole device in NumPy: the smallest that works, to read first and to start a device of your own from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk

KERNELS: list[sdk.KernelDef] = []
NUMBERS = ("float32", "float64", "int32", "int64")


class NumpyAllocator(sdk.Allocator):
    def raw(self, nbytes: int) -> np.ndarray:
        memory = np.empty(nbytes + self.alignment, np.uint8)
        return memory[-memory.ctypes.data % self.alignment :][:nbytes]


class NumpyDevice(sdk.KernelDevice):
    type, host_memory, priority = "NUMPY", True, 10
    attributes = sdk.DeviceAttributes(memory=1 << 30, vendor="NumPy", model=np.__version__, dtypes=(*NUMBERS, "bool"))

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        return buffer.handle[offset : offset + dtype.itemsize * int(np.prod(shape))].view(dtype).reshape(shape)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        return np.empty(shape, dtype)

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        np.copyto(target, source)

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x, order="C")

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        return a


for _op, _function in {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Less": np.less}.items():
    sdk.kernel(KERNELS, _op, "NUMPY", types={"T": NUMBERS})(lambda node, f=_function: f)


@sdk.kernel(KERNELS, "MatMul", "NUMPY", types={"T": NUMBERS})
def matmul(node: sdk.KernelNode) -> sdk.Launcher:
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    return lambda a, b, out: np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)


@sdk.kernel(KERNELS, "Reshape", "NUMPY")
def reshape(node: sdk.KernelNode) -> sdk.Launcher:
    return lambda x, out: np.copyto(out, x.reshape(out.shape))


@sdk.kernel(KERNELS, "Sum", "NUMPY", types={"T": NUMBERS})
def sum_(node: sdk.KernelNode) -> sdk.Launcher:
    axes = tuple(np.ravel(np.asarray(node.const(1))))
    return lambda x, out: np.sum(x, axes, out=out, keepdims=node.attrs["keep_dims"])


@sdk.kernel(KERNELS, "Where", "NUMPY")
def where(node: sdk.KernelNode) -> sdk.Launcher:
    def launch(x: np.ndarray, out: np.ndarray) -> list[tuple[int, ...]]:
        found = np.argwhere(x)
        out[: len(found)] = found
        return [found.shape]

    return launch


for _op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    sdk.kernel(KERNELS, _op, "NUMPY", types={"dtype": ("float32", "float64")})(sdk.reference_launcher)


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    return [NumpyDevice()]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS

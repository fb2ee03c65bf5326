"""A whole device in NumPy: the smallest that works, to read first and to start a device of your own from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe_sdk import (
    Allocator,
    Buffer,
    Device,
    DeviceAttributes,
    KernelDef,
    KernelDevice,
    KernelNode,
    Launcher,
    hookimpl,
    kernel,
)

KERNELS: list[KernelDef] = []
NUMBERS = ("float32", "float64", "int32", "int64")


class NumpyAllocator(Allocator):
    def raw(self, nbytes: int) -> np.ndarray:
        memory = np.empty(nbytes + self.alignment, np.uint8)
        return memory[-memory.ctypes.data % self.alignment :][:nbytes]


class NumpyDevice(KernelDevice):
    type, host_memory, priority = "NUMPY", True, 10

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()
        self.attributes = DeviceAttributes(memory=1 << 30, vendor="NumPy", model=np.__version__, dtypes=NUMBERS)

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        nbytes = dtype.itemsize * int(np.prod(shape))
        return buffer.handle[offset : offset + nbytes].view(dtype).reshape(shape)  # type: ignore[no-any-return]

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        return np.empty(shape, dtype)

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        np.copyto(target, source)

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x, order="C")

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        return a


for _op, _function in {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "MatMul": np.matmul}.items():
    kernel(KERNELS, _op, "NUMPY", types={"T": NUMBERS})(lambda node, f=_function: f)


@kernel(KERNELS, "Reshape", "NUMPY", inplace=((0, 0),))
def reshape(node: KernelNode) -> Launcher:
    return lambda x, out: np.copyto(out, x.reshape(out.shape))


@kernel(KERNELS, "Sum", "NUMPY", types={"T": NUMBERS})
def sum_(node: KernelNode) -> Launcher:
    axes = tuple(np.ravel(np.asarray(node.const(1))))
    return lambda x, out: np.sum(x, axes, out=out, keepdims=node.attrs["keep_dims"])


@kernel(KERNELS, "Less", "NUMPY", types={"T": NUMBERS})
def less(node: KernelNode) -> Launcher:
    return np.less


@kernel(KERNELS, "Where", "NUMPY")
def where(node: KernelNode) -> Launcher:
    def launch(x: np.ndarray, out: np.ndarray) -> list[tuple[int, ...]]:
        found = np.argwhere(x)
        out[: len(found)] = found
        return [found.shape]

    return launch


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    return [NumpyDevice()]


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    return KERNELS

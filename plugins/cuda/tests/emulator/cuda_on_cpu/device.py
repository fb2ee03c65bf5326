"""A device that runs CUDA sources on the CPU. Each allocation of it ends where a page begins that traps."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuda_on_cpu.program import MOST_ITEMS, Program
from timberframe_sdk import DeviceAttributes, InternalError
from timberframe_sdk.accelerator import AcceleratorDevice, DeviceTensor, Function, Limits
from timberframe_sdk.allocator import Allocator, Buffer

TYPE = "EMULATED"
_DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool",
)  # fmt: skip
_C = ctypes.CDLL(None)


class EmulatedAllocator(Allocator):
    def raw(self, nbytes: int) -> Any:
        """Bytes that end, but for alignment, where a page begins that nobody may touch."""
        padded = -(-max(nbytes, 1) // self.alignment) * self.alignment
        pages = -(-padded // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = np.frombuffer(mmap.mmap(-1, pages + mmap.PAGESIZE), np.uint8)
        _C.mprotect(ctypes.c_void_p(memory.ctypes.data + pages), ctypes.c_size_t(mmap.PAGESIZE), 0)
        found = memory[pages - padded : pages]
        found[:] = 0xDB
        return found


class EmulatedDevice(AcceleratorDevice):
    """Kernels in CUDA C++, run as `cuda.h` says."""

    type = TYPE
    priority = 1
    limits = Limits(MOST_ITEMS, 48 * 1024, True)
    attributes = DeviceAttributes(memory=1 << 30, vendor="the C++ compiler", model="fibers", dtypes=_DTYPES)

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = EmulatedAllocator()
        self._programs: dict[str, Program] = {}

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        tensor = DeviceTensor(None, dtype, shape, buffer)
        tensor.handle = buffer.handle[offset : offset + tensor.nbytes]
        return tensor

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        return self.array(self.allocator.allocate(DeviceTensor(None, dtype, shape).nbytes), 0, dtype, shape)

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        target.handle[:] = source.handle[: target.nbytes]

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        tensor = self.empty(x.dtype, x.shape)
        tensor.handle[:] = np.require(x, requirements=["C", "A"]).reshape(-1).view(np.uint8)
        return tensor

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        x: np.ndarray = a.handle.copy().view(a.dtype).reshape(a.shape)
        return x

    def build(self, source: str, name: str) -> Function:
        try:
            program = self._programs.get(source)
            if program is None:
                program = self._programs[source] = Program(source)
            parameters = program.parameters(name)
        except RuntimeError as e:
            raise InternalError(f"{self.spec}: the compiler refuses a source; its words are\n{e}\n{source}") from e

        def run(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
            given = [int(a.handle.ctypes.data) if isinstance(a, DeviceTensor) else a for a in arguments]
            try:
                program.launch(name, parameters, items, group, given)
            except RuntimeError as e:
                raise InternalError(str(e)) from e

        return run

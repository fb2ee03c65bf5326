"""The device NPU: tensors lie in the driver's arena; the host writes there itself, all else goes through the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_conformance.mutants.strangers.npu.driver import ALIGNMENT, Arena, Block, Event, Queue, Tensor
from timberframe_conformance.mutants.strangers.npu.kernels import KERNELS, reference_kernels

timberframe_contract = (2, 16)
TYPE, MEMORY = "NPU", 1 << 28
DTYPES = ("float32", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")


class NpuAllocator(sdk.Allocator):
    """The arena's parts."""

    alignment = ALIGNMENT

    def __init__(self, arena: Arena, limit: int | None) -> None:
        super().__init__(limit)
        self.arena = arena

    def raw(self, nbytes: int) -> Block:
        return self.arena.take(nbytes)


class NpuDevice(sdk.KernelDevice):
    """The device. cores: in how many parts a product of matrices is computed."""

    type, priority, asynchronous = TYPE, 5, True

    def __init__(self, index: int, limit: int | None, cores: int) -> None:
        super().__init__(index)
        self.failures = sdk.Failures("launch", "copy", "compile", "queue")
        self.queue, self.cores = Queue(self.failures.check), cores
        self.allocator = NpuAllocator(Arena(MEMORY, self.queue), limit)
        self.attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Timberframe", model="simulated", dtypes=DTYPES)

    def supports(self, node: sdk.KernelNode) -> sdk.Support:
        if any(v.dtype.hasobject for v in (*node.inputs, *node.outputs)):
            return "the device holds numbers only"
        return super().supports(node)

    def array(self, buffer: sdk.Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return Tensor(buffer.handle, offset, dtype, shape, buffer)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Tensor:
        return self.array(self.allocator.allocate(dtype.itemsize * math.prod(shape)), 0, dtype, shape)

    def copy(self, source: Tensor, target: Tensor) -> None:
        self.queue.launch(lambda x, out: np.copyto(out, x), source, target)

    def copy_in(self, x: np.ndarray) -> Tensor:
        self.failures.check("copy")
        tensor = self.empty(x.dtype, x.shape)
        tensor.elements()[...] = x  # nobody uses that memory, see Arena
        return tensor

    def copy_out(self, a: Tensor) -> np.ndarray:
        found: np.ndarray = self.queue.read(a).result()
        return found

    def start_copy_out(self, a: Tensor) -> Event:
        return self.queue.read(a)

    def marker(self) -> Event:
        return self.queue.marker()

    def synchronize(self) -> None:
        self.queue.marker().result()


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    limit = sdk.memory_limit(config, TYPE, MEMORY)
    cores = config.get("threads") or 2
    return [NpuDevice(i, limit, cores) for i in range(sdk.device_count(config, TYPE, 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS + reference_kernels(TYPE)

"""The device ACMECOMPILER: each cluster of nodes becomes one program of the toolchain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmecompiler import toolchain, translations

timberframe_contract = (2, 0)
TYPE, MEMORY, DTYPES = "ACMECOMPILER", 1 << 30, ("float32",)


class AcmecompilerAllocator(sdk.Allocator):
    def raw(self, nbytes: int) -> np.ndarray:
        memory = np.empty(nbytes + self.alignment, np.uint8)
        return memory[-memory.ctypes.data % self.alignment :][:nbytes]


class AcmecompilerDevice(sdk.CompilerDevice):
    type, priority = TYPE, 10

    def __init__(self, index: int, limit: int | None) -> None:
        super().__init__(index)
        self.allocator = AcmecompilerAllocator(limit)
        self.attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Acmecompiler", model="NumPy", dtypes=DTYPES)

    def supports(self, node: sdk.KernelNode) -> Any:
        return translations.supports(node, DTYPES)

    def build(self, function: sdk.ClusterFunction) -> sdk.Program:
        source = toolchain.Source(len(function.parameters))

        def translate(node: sdk.KernelNode, inputs: Sequence[Any]) -> str:
            return source.assign(translations.TRANSLATIONS[node.op](node, *map(source.name, inputs)))

        text = source.text([source.name(x) for x in function(translate, source.parameters)])
        program = toolchain.build(text, source.constants)
        return sdk.Program(lambda arrays: program(*arrays), sdk.Memory())

    def upload(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, order="C")

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        return a.copy()


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Any]:
    limit = sdk.memory_limit(config, TYPE, MEMORY)
    return [AcmecompilerDevice(i, limit) for i in range(sdk.device_count(config, TYPE, 1))]

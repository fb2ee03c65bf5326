"""Records calls of the CPU's kernels with their results, to be repeated by a build for another system.

``python record.py CALLS [--isa ISA] [--op OP...]`` runs the conformance suite's guarded cases on this machine, where
each node runs by itself and nothing is written in place, and writes calls of native kernels: name, instruction set,
parameters, inputs, outputs. calls.c describes the file, and repeats it. Calls whose parameters point to memory are left
out, such as those of random ops, which count in a session's memory, and those with outputs whose size depends on data.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from timberframe_conformance.case import CaseFailedError, NotApplicableError, UnsupportedError
from timberframe_conformance.options import Options
from timberframe_conformance.suites import guards
from timberframe_conformance.target import open_target
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import OpError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_cpu import native
from timberframe_cpu.watched import _Walker
from timberframe_sdk.native import Native

MAGIC = b"TFCALLS2"
KEPT = 3
"""Calls of one kernel that are recorded for each instruction set: the suite has hundreds of the frequent ones."""


class Recorder:
    """Writes calls to a file; `count` says how many it has written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._seen = file, dict[tuple[str, str], int]()
        self.count = 0
        file.write(MAGIC)

    def wants(self, kernel: Native, isa: str) -> bool:
        """Returns whether another call of a kernel is still wanted."""
        key = (kernel.name, isa)
        self._seen[key] = self._seen.get(key, 0) + 1
        return self._seen[key] <= KEPT

    def write(
        self,
        kernel: Native,
        isa: str,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        workspace: int,
        adds_up: bool,
    ) -> None:
        """Writes one call.

        workspace: the bytes of the memory that the kernel has beside its outputs. adds_up: whether its results are sums
        of products.
        """
        self.count += 1
        name = kernel.name.encode()
        self._words(
            len(name), native.ISAS.index(isa), len(inputs), len(outputs), workspace, len(kernel.parameters), adds_up
        )
        self._bytes(name)
        self._words(*kernel.parameters)
        for array in (*inputs, *outputs):
            self._words(as_dtype(array.dtype).number, array.ndim, *array.shape, array.nbytes)
            self._bytes(array.tobytes())

    def _words(self, *values: int) -> None:
        self._file.write(np.array(values, np.int64).tobytes())

    def _bytes(self, data: bytes) -> None:
        self._file.write(data + b"\0" * (-len(data) % 8))


def watch(recorder: Recorder) -> None:
    """Makes guarded runs of the CPU tell the recorder of each native kernel that they run by itself."""
    run = _Walker._run

    def recorded(self: Any, positions: Sequence[int], piece: Any, instance: Any, arrays: dict[int, Any]) -> None:
        launch = self._executable.prepared.launches[positions[0]] if len(positions) == 1 else None
        kernel = launch.native if launch is not None else None
        isa = native.find(kernel.name, native.isa())[1] if kernel is not None else ""
        node = self._executable.cluster.nodes[positions[0]]  # whose inputs are in the forms that its kernel takes
        whole = not any(v.dynamic for v in node.outputs)
        points = kernel is None or kernel.owner is not None or registry.get(node.op).stateful
        if kernel is None or points or not whole or not recorder.wants(kernel, isa):
            run(self, positions, piece, instance, arrays)
            return
        inputs = [np.array(self._array(node.inputs[i], instance, arrays), order="C") for i in launch.passed]
        run(self, positions, piece, instance, arrays)
        outputs = [self._array(v, instance, arrays) for v in node.outputs]
        if not any(x.dtype.hasobject for x in (*inputs, *outputs)):
            adds_up = isinstance(registry.get(node.op).accuracy, Accumulation)
            recorder.write(kernel, isa, inputs, outputs, launch.workspace_bytes, adds_up)

    _Walker._run = recorded  # type: ignore[method-assign] # this process does nothing else


def main() -> None:
    parser = argparse.ArgumentParser(description="Records calls of the CPU's kernels, to be repeated elsewhere.")
    parser.add_argument("calls", type=Path, help="the file to write")
    parser.add_argument("--isa", action="append", choices=native.ISAS, help="default: all that this machine has")
    parser.add_argument("--op", action="append", help="default: all ops")
    given = parser.parse_args()
    target = open_target(Options(device="cpu"))
    ops = [op for op in registry.all_ops() if not given.op or op.name in given.op]
    available = native.ISAS[: native.ISAS.index(native.built_isa()) + 1]
    with given.calls.open("wb") as file:
        recorder = Recorder(file)
        watch(recorder)
        for isa in given.isa or available:
            target.device.isa = isa
            with native.using_isa(isa):
                for case in guards.collect(target, ops):
                    with suppress(CaseFailedError, NotApplicableError, UnsupportedError, OpError):
                        case.run(target)
    print(f"{recorder.count} calls recorded in {given.calls}")


if __name__ == "__main__":
    main()

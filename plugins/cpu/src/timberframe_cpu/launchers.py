"""What the C runner calls in Python: launchers of kernels that exist in Python alone, and the interpreter's signals."""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from timberframe_cpu.kernel_builder import Launch
from timberframe_cpu.library import ffi, lib
from timberframe_sdk import KernelNode

_numbers = itertools.count(1)
_registered: WeakValueDictionary[int, NativeLauncher] = WeakValueDictionary()
_raised = threading.local()


class NativeLauncher:
    """A Python launcher that a program calls back: the C runner knows it by `number` for as long as it lives."""

    def __init__(self, node: KernelNode, launch: Launch) -> None:
        self._launch = launch.python
        self._inputs = [(node.inputs[i].dtype, node.inputs[i].shape) for i in launch.passed]
        self._outputs = [(v.dtype, v.shape) for v in node.outputs]
        if launch.workspace_bytes:
            self._outputs.append((np.dtype(np.uint8), (launch.workspace_bytes,)))
        self.node = node
        self.number = next(_numbers)
        _registered[self.number] = self

    def __call__(self, inputs: Any, outputs: Any) -> None:
        assert self._launch is not None
        self._launch(*_arrays(inputs, self._inputs), *_arrays(outputs, self._outputs))


def _arrays(tensors: Any, kinds: list[tuple[np.dtype[Any], tuple[int, ...]]]) -> list[np.ndarray]:
    arrays = []
    tensors = ffi.cast("tf_tensor **", tensors)
    for i, (dtype, shape) in enumerate(kinds):
        nbytes = dtype.itemsize * int(tensors[i].size)
        block = np.frombuffer(ffi.buffer(tensors[i].data, nbytes), np.uint8) if nbytes else np.empty(0, np.uint8)
        arrays.append(block.view(dtype).reshape(shape))
    return arrays


def _keep(kind: Any, error: BaseException, trace: Any) -> None:
    _raised.error = error


@ffi.def_extern(name="tf_python_launch", error=1, onerror=_keep)  # type: ignore[untyped-decorator]  # cffi has no types for it
def _launch(number: int, inputs: Any, outputs: Any) -> int:
    _registered[number](inputs, outputs)
    return 0


@ffi.def_extern(name="tf_python_signals", error=1, onerror=_keep)  # type: ignore[untyped-decorator]  # cffi has no types for it
def _signals() -> int:
    """Being called is enough: the interpreter handles pending signals before it runs the first line."""
    return 0


def take_raised() -> BaseException | None:
    """Returns the exception that ended this thread's run, once."""
    error: BaseException | None = getattr(_raised, "error", None)
    _raised.error = None
    return error


def _note_main_thread() -> None:
    lib.tf_set_main_thread(threading.get_ident())


lib.tf_set_main_thread(threading.main_thread().ident)
os.register_at_fork(after_in_child=_note_main_thread)

"""Builders of kernels: a node as a function of torch tensors, launched on tensors of the device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from timberframe_core.errors import NoKernelError, OpError, ResourceExhaustedError
from timberframe_sdk import KernelDef, KernelNode, Launcher, Support
from timberframe_sdk.fallbacks import note_fallback, note_kernel
from timberframe_torch import lazy as torch
from timberframe_torch.arrays import TorchArray, view_of
from timberframe_torch.recorder import RecordedTensor, Writer
from timberframe_torch.settings import TYPE
from timberframe_torch.tracing import Calls, traced

if TYPE_CHECKING:
    from timberframe_torch.device import TorchDevice

Function = Callable[..., Any]
"""Of the tensors that a node gets; returns its output, or a list of them: new tensors, or views of what it got."""
Build = Callable[[KernelNode], Function]

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, *COMPLEX, "bool")


def torch_kernel(
    into: list[KernelDef],
    op: str | Sequence[str],
    types: Mapping[str, Sequence[str]] | None = None,
    suits: Callable[[KernelNode], Support] | None = None,
) -> Callable[[Build], Build]:
    """Declares the builder below it as a kernel of these ops: it makes a function of torch tensors of a node."""

    def declare(build: Build) -> Build:
        @functools.wraps(build)
        def built(node: KernelNode) -> Launcher:
            return cast(Launcher, Launching(node, build(node)))

        allowed = {name: tuple(names) for name, names in (types or {}).items()}
        names = (op,) if isinstance(op, str) else op
        into.extend(KernelDef(name, TYPE, built, allowed, suits=suits) for name in names)
        return build

    return declare


def named(table: Mapping[str, str], into: list[KernelDef], types: Mapping[str, Sequence[str]]) -> None:
    """Declares kernels of ops that are each a function of torch, by its name: `relu`, `nn.functional.elu`."""
    for op, name in table.items():
        torch_kernel(into, op, types)(_plain(name))


def _plain(name: str) -> Build:
    def build(node: KernelNode) -> Function:
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part)
        return cast(Function, found)

    build.__qualname__ = build.__name__ = f"torch.{name}"
    return build


class Launching:
    """A launcher. Its first launch finds out who computes the node; those by others than the backend are noted."""

    def __init__(self, node: KernelNode, function: Function) -> None:
        self.node, self.function = node, function
        self.device = cast("TorchDevice", node.device)
        self.count = 0 if not node.outputs else len(node.outputs)
        self.calls: Calls | None = None

    def __call__(self, *arrays: TorchArray) -> None:
        """Computes the outputs from the inputs before them."""
        self.device.failures.check("launch")
        self.device.use_threads()
        given, outputs = arrays[: len(arrays) - self.count], arrays[len(arrays) - self.count :]
        inputs = [self._seen(x) for x in given]
        try:
            with torch.no_grad():
                if self.device.recorder is not None:
                    self._run_recorded(given, inputs, outputs)
                elif self.calls is None:
                    _, self.calls = traced(self.device.backend, lambda: self._fill(inputs, outputs))
                else:
                    self._fill(inputs, outputs)
        except OpError:
            raise
        except Exception as e:
            raise (error_of(e) or e) from e
        if self.calls is not None:
            for kernel in self.calls.kernels.values():
                note_kernel(TYPE, self.node.op, str(kernel))
            for by in self.calls.elsewhere.values():
                note_fallback(TYPE, self.node.op, by)

    def _fill(self, inputs: Sequence[Any], outputs: Sequence[TorchArray]) -> None:
        """Makes the function compute, and copies what it gives to where the outputs lie."""
        made = self.function(*inputs)
        results = made if isinstance(made, list | tuple) else [made]
        for out, result in zip(outputs, results, strict=True):
            if result is not out.tensor and out.tensor.numel():
                out.tensor.copy_(result.reshape(out.shape) if result.shape != out.tensor.shape else result)

    def _seen(self, x: TorchArray) -> Any:
        """Returns an input as the function is to get it: as it is, or where all are views as one with gaps."""
        layout = view_of(x.shape) if self.device.settings.views == "all" else None
        if layout is None:
            return x.tensor
        flat = torch.full((layout.offset + layout.span,), 1, dtype=x.tensor.dtype, device=x.tensor.device)
        view = flat.as_strided(x.shape, layout.strides, layout.offset)
        view.copy_(x.tensor)
        return view

    def _run_recorded(self, given: Sequence[TorchArray], inputs: Sequence[Any], outputs: Sequence[TorchArray]) -> None:
        """Runs once, every call written before it is made."""
        recorder = self.device.recorder
        assert recorder is not None
        layouts = [view_of(x.shape) if self.device.settings.views == "all" else x.layout for x in given]
        held = [RecordedTensor(self.device.copy_out(x), y) for x, y in zip(given, layouts, strict=True)]
        calls = recorder.begin(self.node.op, held, [(x.dtype.name, x.shape) for x in outputs])
        names = {f"x{i}": x for i, x in enumerate(inputs)} | {f"y{i}": x.tensor for i, x in enumerate(outputs)}
        _, self.calls = traced(self.device.backend, lambda: self._fill(inputs, outputs), Writer(calls, names))
        recorder.end(calls, [np.asarray(self.device.copy_out(x)) for x in outputs])


def error_of(e: Exception) -> OpError | None:
    """Returns what an exception of torch is to users; None for one that says nothing of its kind."""
    text = " ".join(str(e).split())
    if isinstance(e, torch.OutOfMemoryError):
        return ResourceExhaustedError(f"torch: {text}")
    if isinstance(e, NotImplementedError) or "not implemented for" in text:
        return NoKernelError(f"torch: {text.split(' This could be because')[0]}")
    return None

"""Devices that compile OpenCL C: the template `opencl`, with kernels of timberframe-accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.strangers.base import planted
from timberframe_conformance.replacements import Replacements

OPENCL: dict[str, Any] = {"host": "opencl"}


def _source(r: Replacements, host: Any, old: str, new: str, only: str = "") -> None:
    """Replaces a text in all kernel sources that contain `only` before they are compiled."""

    def make(build: Any) -> Any:
        def changed(self: Any, source: str, name: str) -> Any:
            return build(self, source.replace(old, new) if only in source else source, name)

        return changed

    r.replace(host.part("device").AcmeopenclDevice, "build", make)


@planted("opencl-relu-nan", "NaN gives zero", "pytorch/pytorch#7999", op="Relu", **OPENCL)
def _(r: Replacements, host: Any) -> None:
    _source(r, host, "x[i] <= 0 ? 0 : x[i]", "fmax(x[i], 0.0f)")


@planted(
    "opencl-relu-past-vectors", "elements after the last whole vector of four are not written",
    "stew675/llama-cpp-rdna-boosts#19", op="Relu", **OPENCL,
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    _source(r, host, "TF_EACH(i, count)", "TF_EACH(i, count - count % 4)", "acmeopencl_relu")


@planted("opencl-relu-16-bits", "indices are of sixteen bits", "tinygrad/tinygrad#6987", op="Relu", **OPENCL)
def _(r: Replacements, host: Any) -> None:
    _source(r, host, "y[i] =", "if (i < 65536) y[i] =", "acmeopencl_relu")


@planted(
    "opencl-relu-writes-input", "the result is written to the input, too", "pytorch/pytorch#189735", op="Relu", **OPENCL
)
def _(r: Replacements, host: Any) -> None:
    _source(
        r, host, "y[i] = x[i] <= 0 ? 0 : x[i];",
        "y[i] = x[i] <= 0 ? 0 : x[i]; ((TF_GLOBAL float *)x)[i] = y[i];", "acmeopencl_relu",
    )  # fmt: skip


@planted(
    "opencl-read-not-waited-for",
    "what a started copy gives is not waited for",
    "NLESC-JCER/EigenCuda#22",
    "copies",
    **OPENCL,
)
def _(r: Replacements, host: Any) -> None:
    def result(self: Any) -> Any:
        return self._value

    r.replace(host.part("driver").Event, "result", lambda _: result)


@planted(
    "opencl-read-on-second-queue",
    "results are read on a queue of their own",
    "bheisler/RustaCUDA#59",
    "queue",
    **OPENCL,
)
def _(r: Replacements, host: Any) -> None:
    driver = host.part("driver")

    def read(self: Any, source: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        x = np.empty(shape, dtype)
        if not hasattr(self, "second"):
            self.second = driver.cl.CommandQueue(self.context)
        if not x.size:
            return driver.Event(driver.cl.enqueue_marker(self._queue), x)
        event = driver.cl.enqueue_copy(self.second, x.reshape(-1).view(np.uint8), source, is_blocking=False)
        self.second.flush()
        self._queue.flush()
        return driver.Event(event, x)

    r.replace(driver.Queue, "read", lambda _: read)


@planted(
    "opencl-sub-buffers-rounded",
    "a part of a buffer begins at a multiple of 1,024 bytes",
    "xsuite/xtrack#31",
    "memory",
    **OPENCL,
)
def _(r: Replacements, host: Any) -> None:
    def make(part: Any) -> Any:
        return lambda self, buffer, offset, nbytes: part(self, buffer, offset - offset % 1024, nbytes)

    r.replace(host.part("driver").Queue, "part", make)


@planted(
    "opencl-copy-half",
    "a copy within the device leaves the last four bytes out",
    "KhronosGroup/OpenCL-Docs#1450",
    "copies",
    **OPENCL,
)
def _(r: Replacements, host: Any) -> None:
    def make(copy: Any) -> Any:
        return lambda self, source, target, nbytes: copy(self, source, target, max(nbytes - 4, 0))

    r.replace(host.part("driver").Queue, "copy", make)


@planted(
    "opencl-program-by-name",
    "a compiled kernel is found by its name alone",
    "pytorch/TensorRT#3148",
    "programs",
    **OPENCL,
)
def _(r: Replacements, host: Any) -> None:
    built: dict[str, Any] = {}

    def make(build: Any) -> Any:
        def found(self: Any, source: str, name: str) -> Any:
            if name not in built:
                built[name] = build(self, source, name)
            return built[name]

        return found

    r.replace(host.part("device").AcmeopenclDevice, "build", make)


@planted(
    "opencl-fast-math", "sources are compiled for finite numbers", "tensorflow/tfjs-core#1001", op="Softmax", **OPENCL
)
def _(r: Replacements, host: Any) -> None:
    def make(build: Any) -> Any:
        return lambda self, options, **rest: build(self, [*options, "-cl-fast-relaxed-math"], **rest)

    r.replace(host.part("driver").cl.Program, "build", make)

"""pyopencl's own array kernels as a peer: on the driver and the device that is measured, with a pool of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_conformance.bench.workload import Workload

_queues: dict[tuple[str, str], tuple[Any, Any, Any]] = {}


def arrays(platform: str, model: str, inputs: Sequence[np.ndarray]) -> list[Any]:
    """Returns the inputs as pyopencl arrays on the device of this name. Raises LookupError where there is none."""
    import pyopencl as cl
    import pyopencl.array

    key = platform, model
    if key not in _queues:
        found = [d for p in cl.get_platforms() if p.name == platform for d in p.get_devices() if d.name == model]
        if not found:
            raise LookupError(f"no OpenCL device {model!r} of platform {platform!r}")
        context = cl.Context(found[:1])
        queue = cl.CommandQueue(context)
        _queues[key] = context, queue, cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
    _, queue, pool = _queues[key]
    return [cl.array.to_device(queue, x, allocator=pool) for x in inputs]


def _finished(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of arrays, with the wait for its result."""

    def run(*inputs: Any) -> Any:
        result = function(*inputs)
        inputs[0].queue.finish()
        return result

    return run


def _unary(name: str) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        import pyopencl.clmath

        return getattr(pyopencl.clmath, name)(x)

    return run


def _of_arrays(name: str) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        import pyopencl.array

        return getattr(pyopencl.array, name)(inputs if len(inputs) > 1 else inputs[0])

    return run


_KERNELS: Mapping[str, Callable[..., Any]] = {
    "add 1M": lambda a, b: a + b,
    "mul 1M": lambda a, b: a * b,
    "exp 1M": _unary("exp"),
    "tanh 1M": _unary("tanh"),
    "sum 1M": _of_arrays("sum"),
    "max 1M": _of_arrays("max"),
    "concat 2x1M": _of_arrays("concatenate"),
}


def with_pyopencl(workload: Workload) -> Workload:
    """Returns the workload with pyopencl among its peers, if pyopencl has such a kernel."""
    function = _KERNELS.get(workload.name)
    if function is None:
        return workload
    peers = {**workload.peers, "pyopencl": _finished(function)}
    return replace(workload, peers=peers, targets=[*workload.targets, ("pyopencl", 0.9)])

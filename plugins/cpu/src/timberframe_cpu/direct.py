"""The cheapest call of a program: one C call between Python's argument list and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_cpu.allocator import is_counted
from timberframe_cpu.library import ffi, lib
from timberframe_sdk import RunContext

if TYPE_CHECKING:
    from timberframe_cpu.program import CpuExecutable

_MOST_OUTPUT_BYTES = 1 << 26  # what makes more takes so long that it should be open to cancelling
_PLAIN = """\
    {0} = empty(s{0}, d{0})
    p{0} = from_buffer({0})
"""
_COUNTED = """\
    try:
        p{0} = take{0}()
    except IndexError:
        p{0} = block(n{0})
    p{0} = gc(p{0}, give{0})
    {0} = ndarray(s{0}, d{0}, buffer(p{0}, n{0}))
"""  # as CpuAllocator.empty does, without a call: after a large result, Python's own code is out of the caches, too
_RUNNERS = ((2, lib.tf_run2), (3, lib.tf_run3), (4, lib.tf_run4), (8, lib.tf_run8))


def direct_call(executable: CpuExecutable, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """See CpuExecutable.direct. The body is generated for its number of feeds and outputs: a loop costs too much."""
    cluster = executable.cluster
    feeds, outputs = cluster.inputs, cluster.outputs
    slots = [*feeds, *outputs]
    simple = (
        [v.id for v in slots] == [v.id for v in executable.slots]
        and len(outputs) > 0
        and len(slots) <= _RUNNERS[-1][0]
        and sum(v.nbytes for v in outputs) <= _MOST_OUTPUT_BYTES
        and executable.memory.arena <= 1 << 18
    )
    if not simple:
        return None
    width, runner = next(r for r in _RUNNERS if r[0] >= len(slots))
    names = [f"x{i}" for i in range(len(feeds))]
    results = [f"y{i}" for i in range(len(outputs))]
    checks = " or ".join(f"type({x}) is not ndarray or {x}.dtype is not d{x} or {x}.shape != s{x}" for x in names)
    counted = {y: v for y, v in zip(results, outputs, strict=True) if is_counted(v.dtype, v.nbytes)}
    makers = "".join((_COUNTED if y in counted else _PLAIN).format(y) for y in results)
    pointers = [*(f"from_buffer({x})" for x in names), *(f"p{y}" for y in results), *["null"] * (width - len(slots))]
    source = f"""
def call({", ".join(names)}):
    if {checks or "False"}:
        return fallback({", ".join(names)})
{makers}    try:
        instance = take()
    except IndexError:
        instance = make()
    try:
        code = run(instance.program, {", ".join(pointers)})
    except ValueError:
        free.append(instance)
        return fallback({", ".join(names)})
    if code:
        return failed(code, instance, ({"".join(n + "," for n in names)}))
    free.append(instance)
    return {results[0] if len(results) == 1 else "[" + ", ".join(results) + "]"}
"""
    allocator = executable.device.allocator
    scope: dict[str, Any] = {
        "ndarray": np.ndarray, "empty": np.empty, "from_buffer": ffi.from_buffer, "null": ffi.NULL, "run": runner,
        "free": executable.free, "take": executable.free.pop, "make": executable.take, "fallback": fallback,
        "failed": _failure(executable, fallback), "block": allocator.block, "gc": ffi.gc, "buffer": ffi.buffer,
    }  # fmt: skip
    for name, value in zip((*names, *results), slots, strict=True):
        scope[f"d{name}"], scope[f"s{name}"] = value.dtype, value.shape
    for name, value in counted.items():
        pool = allocator.pool(value.nbytes)
        scope[f"n{name}"], scope[f"take{name}"], scope[f"give{name}"] = value.nbytes, pool.pop, pool.append
    exec(compile(source, "<direct call>", "exec"), scope)
    call: Callable[..., Any] = scope.pop("call")  # its globals are `scope`: left there it would be a cycle
    return call


def _failure(executable: CpuExecutable, fallback: Callable[..., Any]) -> Callable[..., Any]:
    def failed(code: int, instance: Any, feeds: tuple[Any, ...]) -> Any:
        if code < 0:  # a misaligned feed
            return fallback(*feeds)
        executable.fail(code, instance, RunContext())
        return None

    return failed

"""The cheapest call of a program: one C call between Python's argument list and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe.plugin.contracts import RunContext
from timberframe_cpu.allocator import COUNTED_BYTES
from timberframe_cpu.library import ffi, lib

if TYPE_CHECKING:
    from timberframe_cpu.program import CpuExecutable

_MOST_OUTPUT_BYTES = 1 << 26  # what makes more takes so long that it should be open to cancelling
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
    pointers = [*(f"from_buffer({n})" for n in (*names, *results)), *["null"] * (width - len(slots))]
    makers = ["counted(d{0}, s{0})" if v.nbytes >= COUNTED_BYTES else "empty(s{0}, d{0})" for v in outputs]
    source = f"""
def call({", ".join(names)}):
    if {checks or "False"}:
        return fallback({", ".join(names)})
    {"; ".join(f"{y} = {make.format(y)}" for y, make in zip(results, makers, strict=True))}
    try:
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
    scope: dict[str, Any] = {
        "ndarray": np.ndarray, "empty": np.empty, "from_buffer": ffi.from_buffer, "null": ffi.NULL, "run": runner,
        "free": executable.free, "take": executable.free.pop, "make": executable.take, "fallback": fallback,
        "failed": _failure(executable, fallback), "counted": executable.device.allocator.empty,
    }  # fmt: skip
    for name, value in zip((*names, *results), slots, strict=True):
        scope[f"d{name}"], scope[f"s{name}"] = value.dtype, value.shape
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

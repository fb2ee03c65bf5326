"""The cheapest call of a program: one C call between Python's argument list and its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
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
        [v.id for v in slots] == [v.id for v in executable.changing]
        and len(outputs) > 0
        and len(slots) <= _RUNNERS[-1][0]
        and sum(v.nbytes for v in outputs) <= _MOST_OUTPUT_BYTES
        and executable.memory.arena <= 1 << 18
    )
    if not simple:
        return None
    names = [f"x{i}" for i in range(len(feeds))]
    results = [f"y{i}" for i in range(len(outputs))]
    allocator = executable.device.allocator
    scope: dict[str, Any] = {
        "ndarray": np.ndarray, "asarray": np.asarray, "empty": np.empty,
        "from_buffer": ffi.from_buffer, "null": ffi.NULL,
        "free": executable.free, "take": executable.free.pop, "make": executable.take, "fallback": fallback,
        "failed": _failure(executable, fallback), "block": allocator.block, "gc": ffi.gc, "buffer": ffi.buffer,
    }  # fmt: skip
    for name, value in zip((*names, *results), slots, strict=True):
        scope[f"d{name}"], scope[f"s{name}"] = value.dtype, value.shape
    scalars = [x for x, value in zip(names, feeds, strict=True) if value.shape == ()]
    scope |= {f"t{x}": scope[f"d{x}"].type for x in scalars}
    counted = {y: v for y, v in zip(results, outputs, strict=True) if is_counted(v.dtype, v.nbytes)}
    for name, value in counted.items():
        pool = allocator.pool(value.nbytes)
        scope[f"n{name}"], scope[f"take{name}"], scope[f"give{name}"] = value.nbytes, pool.pop, pool.append
    pointers = [*(f"from_buffer({x})" for x in names), *(f"p{y}" for y in results)]
    run = _run_settled(executable, pointers, scope) if executable.staying else _run(pointers, scope)
    makers = "".join((_COUNTED if y in counted else _PLAIN).format(y) for y in results)
    exec(_compiled(_body(names, scalars, results, makers, run, bool(executable.staying))), scope)
    call: Callable[..., Any] = scope.pop("call")  # its globals are `scope`: left there it would be a cycle
    return call


@lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    """Returns the code of a function: calls of other shapes have the same text, and Python
    takes a third of a ms for it.
    """
    return compile(text, "<direct call>", "exec")


def _run(pointers: list[str], scope: dict[str, Any]) -> str:
    """Returns the native call of a program whose slots are all given as arguments."""
    width, scope["run"] = next(r for r in _RUNNERS if r[0] >= len(pointers))
    return f"code = run(instance.program, {', '.join([*pointers, *['null'] * (width - len(pointers))])})"


def _run_settled(executable: CpuExecutable, pointers: list[str], scope: dict[str, Any]) -> str:
    """That of a program whose other slots stay bound to variables while a lease of them holds."""
    scope |= {"run": lib.tf_run, "settle": executable.settle, "standing": executable.transaction.standing}
    slots = ", ".join(f"slots[{i}]" for i in range(len(pointers)))
    held = ", ".join(f"k{i}" for i in range(len(pointers)))
    return f"""if instance.lease is not lease:
            settle(instance, lease)
        slots = instance.slots
        {slots} = {held} = {", ".join(pointers)}
        code = run(instance.program, slots, null)"""


_LEASED = """\
    lease = standing()
    if lease is None:
        return fallback({0})
    try:
        return leased(lease, {0})
    finally:
        lease.leave()

def leased(lease, {0}):
"""


_SCALAR = """\
    if type({0}) is t{0}:
        {0} = asarray({0})
"""


def _body(names: list[str], scalars: list[str], results: list[str], makers: str, run: str, settled: bool) -> str:
    """Returns the function `call` of the feeds. scalars: those that may be NumPy scalars."""
    given = ", ".join(names)
    checks = " or ".join(f"type({x}) is not ndarray or {x}.dtype is not d{x} or {x}.shape != s{x}" for x in names)
    return f"""
def call({given}):
{"".join(map(_SCALAR.format, scalars))}    if {checks or "False"}:
        return fallback({given})
{_LEASED.format(given) if settled else ""}{makers}    try:
        instance = take()
    except IndexError:
        instance = make()
    try:
        {run}
    except ValueError:
        free.append(instance)
        return fallback({given})
    if code:
        return failed(code, instance, ({"".join(n + "," for n in names)}))
    free.append(instance)
    return {results[0] if len(results) == 1 else "[" + ", ".join(results) + "]"}
"""


def _failure(executable: CpuExecutable, fallback: Callable[..., Any]) -> Callable[..., Any]:
    def failed(code: int, instance: Any, feeds: tuple[Any, ...]) -> Any:
        if code < 0:  # a misaligned feed
            return fallback(*feeds)
        executable.fail(code, instance, RunContext())
        return None

    return failed

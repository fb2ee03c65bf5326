"""Soak: more elements than 32 bits can count, many runs, many random graphs. Only with ``--level=soak``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.bench import soak as training_soak
from timberframe_conformance.case import Case, CaseFailedError, Measured, UnsupportedError
from timberframe_conformance.suites import dags, forward
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "soak"
HUGE = {"huge": (1 << 32) + 17, "huge-signed": (1 << 31) + 17}
"""Elements; an index of 32 bits wraps before it comes to the last, without a sign and with one."""
BYTES_NEEDED = 4
"""Memory that a device must have for a case, as a multiple of the bytes of its input."""
GRAPHS = range(1000, 1400)
RUNS = 20_000

Huge = tuple[str, Callable[[np.ndarray], list[Any]], Callable[[np.ndarray], np.ndarray]]

HUGE_CALLS: Sequence[Huge] = (
    ("AddV2", lambda x: [x, x[:1]], lambda x: x[-40:] + x[0]),
    ("Maximum", lambda x: [x, x[:1]], lambda x: np.maximum(x[-40:], x[0])),
    ("Equal", lambda x: [x, x[-1:]], lambda x: x[-40:] == x[-1]),
    ("ReverseV2", lambda x: [x, np.array([0], np.int32)], lambda x: x[:40][::-1]),
    ("Max", lambda x: [x, np.array([0], np.int32)], lambda x: x.max()),
    ("StridedSlice", lambda x: [x, *(np.array([k], np.int64) for k in (x.size - 40, x.size, 1))], lambda x: x[-40:]),
    ("GatherV2", lambda x: [x, x.size - np.array([1, 9]), np.array(0)], lambda x: x[[-1, -9]]),
)  # fmt: skip


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Huge tensors, samples that take long, random graphs by the hundred, and thousands of runs of one session."""
    names = {op.name for op in ops}
    for name, inputs, last in HUGE_CALLS:
        for detail, size in (HUGE if name in names else {}).items():
            run = functools.partial(_huge, name, size, inputs, last)
            yield Case(SUITE, name, ((_type_attr(name), "uint8"),), detail, run, "soak")
    yield from forward.collect(target, ops, soak=True)
    for number in GRAPHS:
        run = functools.partial(dags.run_random, "float32", number)
        yield Case(SUITE, "Graph", (("T", "float32"),), f"random#{number}", run, "soak")
    yield Case(SUITE, "Graph", (), "many-runs", _many_runs, "soak")
    yield Case(SUITE, "Graph", (), "many-training-steps", _many_training_steps, "soak")


def _type_attr(name: str) -> str:
    return registry.get(name).inputs[0].type_attr or "T"


def _huge(
    name: str, size: int, inputs: Callable[..., Any], last: Callable[..., Any], target: Target
) -> Measured | None:
    """Checks the last elements of the result; the others are not looked at, as that would take minutes."""
    needed = BYTES_NEEDED * size
    if target.device.attributes.memory < needed:
        raise UnsupportedError(f"the device has {target.device.attributes.memory} bytes; the case needs {needed}")
    x = np.zeros(size, np.uint8)
    x[:40], x[-40:] = np.arange(40), np.arange(100, 140)
    op = registry.get(name)
    if target.supports(op, ((_type_attr(name), "uint8"),)) is not None and len(op.attrs) == 1:
        raise UnsupportedError(f"no kernel of {name} for uint8")
    arrays = inputs(x)
    (got,), _ = drive.call(target, op, {}, arrays)
    wanted = last(x)
    end = np.asarray(got).reshape(-1)[-np.size(wanted) :]
    if not np.array_equal(end, np.reshape(wanted, -1)):
        raise CaseFailedError(
            f"the last elements of {size} are {end.tolist()}; they must be {np.ravel(wanted).tolist()}"
        )
    return None


def _many_training_steps(target: Target) -> Measured | None:
    """Returns a million training steps leave the memory where it was."""
    wrong = training_soak.growth(list(training_soak.run_steps(target, training_soak.STEPS)))
    if wrong:
        raise CaseFailedError(f"{training_soak.STEPS} training steps: {wrong}")
    return None


def _many_runs(target: Target) -> Measured | None:
    """Thousands of runs of one session leave the allocator where it was after the first."""
    x = np.arange(64, dtype=np.float32)
    built = drive.build(registry.get("AddV2"), {}, [x, x], target.spec)
    with target.session(built.graph) as session:
        drive.execute(built, session)
        first = target.statistics()
        for _ in range(RUNS):
            drive.execute(built, session)
        later = target.settled(first)
    if later.live > first.live or later.used > first.used:
        raise CaseFailedError(f"{RUNS} runs raised the live allocations from {first.live} to {later.live}")
    return None

"""Bugs in how values reach host ops and come back, and in how they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.errors import OpError
from timberframe_core.plugin.waiting import CancelToken
from timberframe_core.runtime import host_steps

SUITE = "host-ops"
LATE_SECONDS = 4.5


def _with_inputs(r: Replacements, change: Callable[[Any, int, Any], Any]) -> None:
    """Makes host ops get ``change(node, i, array)`` in place of their inputs that are arrays of the host."""

    def make(call: Any) -> Any:
        def changed(step: Any, inputs: Any, run: Any) -> Any:
            given = [change(step.node, i, x) if isinstance(x, np.ndarray) else x for i, x in enumerate(inputs)]
            return call(step, given, run)

        return changed

    r.replace(host_steps, "RunCall", make)


@seam_mutant("stale-host-copy", "a host op gets the copy that was made of its input in the run before", SUITE)
def _(r: Replacements, target: Any) -> None:
    last: dict[Any, np.ndarray] = {}

    def stale(node: Any, i: int, x: np.ndarray) -> np.ndarray:
        before, last[node, i] = last.get((node, i), x), x.copy()
        return before if before.shape == x.shape else x

    _with_inputs(r, stale)


@seam_mutant("one-staging-buffer", "copies of equal dtype and shape on the host are one buffer", SUITE)
def _(r: Replacements, target: Any) -> None:
    buffers: dict[Any, np.ndarray] = {}

    def staged(node: Any, i: int, x: np.ndarray) -> np.ndarray:
        if x.dtype.hasobject:
            return x
        buffer = buffers.setdefault((x.dtype, x.shape), np.empty_like(x))
        buffer[...] = x
        return buffer

    _with_inputs(r, staged)


@seam_mutant("freed-after-host-op", "what a host op has read is given back though others read it later", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(call: Any) -> Any:
        def frees(self: Any, run: Any) -> Any:
            made = call(self, run)
            for x in self.node.inputs:
                array, device = run.found.get(x, (None, None))
                if device is not None and not x.node.feed and not np.dtype(array.dtype).hasobject:
                    other = device.copy_in(np.zeros(array.shape, array.dtype))
                    run.found[x] = other, device
            return made

        return frees

    r.replace(host_steps.HostStep, "call", make)


@seam_mutant("located-through-the-host", "a host op that wants its input where it is gets a copy on the host", SUITE)
def _(r: Replacements, target: Any) -> None:
    r.replace(host_steps, "_manner", lambda manner: lambda x, located: manner(x, False))


@seam_mutant("host-op-error-swallowed", "a host op that raises gives zeros", SUITE)
def _(r: Replacements, target: Any) -> None:
    def make(call: Any) -> Any:
        def silent(self: Any, run: Any) -> Any:
            try:
                return call(self, run)
            except OpError as e:
                if self.node.op.name != "PyFunc":
                    raise e
                return [(np.zeros(x.static_shape or (), x.dtype.numpy), None) for x in self.node.outputs]

        return silent

    r.replace(host_steps.HostStep, "call", make)


@seam_mutant("cancelled-late", "an op that waits looks only now and then whether its run was cancelled", SUITE)
def _(r: Replacements, target: Any) -> None:
    def wait_for(self: Any, condition: Any, ready: Any) -> None:
        end = time.monotonic() + LATE_SECONDS
        while not ready():
            condition.wait(0.05)
            if time.monotonic() > end:
                self.check()

    r.replace(CancelToken, "wait_for", lambda _: wait_for)


@seam_mutant("host-copy-kept", "each copy on the host is kept", SUITE)
def _(r: Replacements, target: Any) -> None:
    kept: list[np.ndarray] = []

    def keeps(node: Any, i: int, x: np.ndarray) -> np.ndarray:
        kept.append(x)
        return x

    _with_inputs(r, keeps)

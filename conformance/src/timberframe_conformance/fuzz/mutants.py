"""Known bugs of the framework, to prove that fuzzing finds them: `conformance fuzz --mutant NAME`.

Each is active until the process ends. The first five are real bugs of the past.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.replacements import Replacements
from timberframe_core.gradients import reverse
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.ops.definition import registry as ops
from timberframe_core.ops.definition.host_values import static_output, to_dtype
from timberframe_core.ops.definition.opdef import UNKNOWN
from timberframe_core.runtime.runner import Runner
from timberframe_core.runtime.session import BaseSession

tf: Any = timberframe


@dataclass(frozen=True)
class FrameworkMutant:
    """A bug: its description, and the function that activates it."""

    name: str
    what: str
    apply: Callable[[], None]


FRAMEWORK_MUTANTS: dict[str, FrameworkMutant] = {}


def mutant(name: str, what: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Declares a function that puts a bug into the framework."""

    def add(apply: Callable[[], None]) -> Callable[[], None]:
        FRAMEWORK_MUTANTS[name] = FrameworkMutant(name, what, apply)
        return apply

    return add


_replaced = Replacements()
replace = _replaced.replace


@mutant("assembles-twice", "the direct call's fallback hands assembled results to a caller that assembles again")
def _assembles_twice() -> None:
    elements = Runner._elements

    def assembled(self: Any, *arguments: Any, **rest: Any) -> Any:
        return self.fetches.assemble(elements(self, *arguments, **rest))

    def twice(self: Any, *arguments: Any, **rest: Any) -> Any:
        found = assembled(self, *arguments, **rest)
        return [found] if len(self.fetches.elements) == 1 else found

    replace(Runner, "run_values", lambda _: assembled)
    replace(Runner, "_elements", lambda _: twice)


@mutant("logistic-kink", "the gradient of the logistic loss at logit 0 is -label, the sum of subgradients of two kinks")
def _logistic_kink() -> None:
    from timberframe import losses
    from timberframe.api import cross_entropy

    def loss(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: Any = None) -> Any:
        x = tf.convert_to_tensor(logits)
        return tf.nn.relu(x) - x * labels + tf.math.log1p(tf.exp(-tf.abs(x)))

    for module in (tf.nn, cross_entropy, losses):
        replace(module, "sigmoid_cross_entropy_with_logits", lambda _: loss)


@mutant("offset-of-unknown", "the gradient of a join whose sizes are known in part adds an unknown size to a number")
def _offset_of_unknown() -> None:
    def value(c: Any) -> Any:
        if any(v is None for v in c.values):
            return [None] * (len(c.values) - 1)
        axis, *shapes = c.values
        offsets: list[Any] = []
        for i, shape in enumerate(shapes):
            offset = np.zeros(shape.shape, shape.dtype)
            offset[int(axis)] = sum((s[int(axis)] for s in shapes[:i]), 0)
            offsets.append(offset)
        return offsets

    ops.substitute(dataclasses.replace(ops.get("ConcatOffset"), value=value))


@mutant("joins-unknown", "the value of a join of integers takes sizes that are known in one input alone for none")
def _joins_unknown() -> None:
    def value(c: Any) -> Any:
        *values, axis = c.values
        if axis is None or static_output(c) is None:
            return [None]
        sizes = [[d or 0 for d in shape or ()] for shape in c.shapes]
        filled = [np.full(s, UNKNOWN, object) if v is None else v for v, s in zip(values, sizes, strict=False)]
        return [to_dtype(np.concatenate(filled, int(axis.reshape(-1)[0])), c.dtypes[0])]

    ops.substitute(dataclasses.replace(ops.get("ConcatV2"), value=value))


@mutant("slices-passed-on", "gradients of additions, Neg, Cos and Mean ask IndexedSlices for what only tensors have")
def _slices_passed_on() -> None:
    def make(given: Any) -> Any:
        def passed(op: Any, totals: Any) -> Any:
            if op.type in ("AddV2", "Sub", "Neg", "Cos", "Mean") and isinstance(totals[0], IndexedSlices):
                return totals[0].static_shape  # type: ignore[attr-defined]  # that is the bug
            return given(op, totals)

        return passed

    replace(reverse, "_given", make)


@mutant("stale-sizes", "a run with other sizes than the one before gets results of the sizes before")
def _stale_sizes() -> None:
    last: dict[int, Any] = {}

    def make(run: Any) -> Any:
        def stale(self: Any, fetches: Any, feeds: Any = None, *rest: Any) -> Any:
            shapes = tuple(getattr(x, "shape", ()) for x in (feeds or {}).values())
            seen, kept = last.get(id(self), (shapes, None))
            found = run(self, fetches, feeds, *rest)
            last[id(self)] = shapes, found
            return kept if seen != shapes and type(kept) is type(found) else found

        return stale

    replace(BaseSession, "run", make)


def _of_suites(name: str) -> None:
    """Declares a mutant that suites find as one of the framework, which programs must find."""
    bug = MUTANTS[name]
    mutant(name, bug.what)(lambda: bug.bug(_replaced, None))


for _name in (
    "merges-attrs",
    "folds-first",
    "form-outlives-version",
    "one-staging-buffer",
    "queue-last-first",
    "default-is-zero",
    "wire-loses-attrs",
):
    _of_suites(_name)


@mutant("dies", "a run of a graph with a Tanh ends the process")
def _dies() -> None:
    replace(BaseSession, "run", lambda run: _when("Tanh", run, lambda: os.kill(os.getpid(), signal.SIGSEGV)))


@mutant("hangs", "a run of a graph with a Tanh does not end")
def _hangs() -> None:
    replace(BaseSession, "run", lambda run: _when("Tanh", run, lambda: time.sleep(3600)))


def _when(op: str, run: Any, then: Callable[[], None]) -> Any:
    def wrong(self: Any, *arguments: Any, **rest: Any) -> Any:
        if any(node.type == op for node in self.graph.get_operations()):
            then()
        return run(self, *arguments, **rest)

    return wrong

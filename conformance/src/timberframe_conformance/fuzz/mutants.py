"""Known bugs of the frame, to prove that fuzzing finds them: `conformance fuzz --mutant NAME`.

Each is put into a process for as long as that lives. The first ones were real.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import timberframe
from timberframe.runtime.session import BaseSession, Runner

tf: Any = timberframe


@dataclass(frozen=True)
class FrameMutant:
    """A bug, in words, and what puts it in place."""

    name: str
    what: str
    apply: Callable[[], None]


FRAME_MUTANTS: dict[str, FrameMutant] = {}


def mutant(name: str, what: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Declares a function that puts a bug into the frame."""

    def add(apply: Callable[[], None]) -> Callable[[], None]:
        FRAME_MUTANTS[name] = FrameMutant(name, what, apply)
        return apply

    return add


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Puts what `make` makes of a function in its place."""
    setattr(owner, name, make(getattr(owner, name)))


@mutant("assembles-twice", "the direct call's fallback hands assembled results to a caller that assembles again")
def _assembles_twice() -> None:
    elements = Runner._elements

    def assembled(self: Any, *arguments: Any, **rest: Any) -> Any:
        return self.fetches.assemble(elements(self, *arguments, **rest))

    replace(Runner, "run_values", lambda _: assembled)
    replace(Runner, "_elements", lambda _: assembled)


@mutant("logistic-kink", "the gradient of the logistic loss at logit 0 is -label, the sum of subgradients of two kinks")
def _logistic_kink() -> None:
    from timberframe import losses
    from timberframe.api import composites

    def loss(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: Any = None) -> Any:
        x = tf.convert_to_tensor(logits)
        return tf.nn.relu(x) - x * labels + tf.math.log1p(tf.exp(-tf.abs(x)))

    for module in (tf.nn, composites, losses):
        replace(module, "sigmoid_cross_entropy_with_logits", lambda _: loss)


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

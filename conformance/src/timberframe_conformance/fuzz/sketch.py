"""A program while it is drawn: its graph with all inputs constant, and every value so far by references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.fuzz.build import Builder
from timberframe_conformance.fuzz.program import Program, Ref, Step
from timberframe_conformance.truth.interpreter import Interpreter
from timberframe_conformance.truth.reference import quiet
from timberframe_core.errors import OpError

tf: Any = timberframe

MOST_ELEMENTS = 4_000


class BrokenStepError(Exception):
    """Building a step raised something other than an OpError: a finding."""


class Sketch:
    """A valid list of steps. `values` has, for each step, the values of its outputs in float64."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.values: list[list[np.ndarray]] = []
        self.order: list[int] = []
        """For each step how often it was differentiated."""
        self._graph = tf.Graph()
        self._builder = Builder(self._graph)
        self._interpreter = Interpreter()
        self._known: dict[Any, Any] = {}

    def add(self, step: Step, parameter: np.ndarray | None = None) -> int | None:
        """Returns the new step's number; None where it does not fit. parameter: the value that a
        step of kind `input` has.

        Raises BrokenStepError, the step kept, where building raises anything but an OpError.
        """
        try:
            with self._graph.as_default():
                # Everything fed is constant here, so that shape functions see the values and refuse wrong ones.
                given = replace(step, kind="const") if step.kind == "feed" else step
                stand_in = None if parameter is None else tf.constant(parameter)
                tensors = self._builder.add(given, stand_in)
        except OpError:
            return None
        except Exception as e:
            self.steps.append(step)
            raise BrokenStepError(f"{type(e).__name__}: {e}") from e
        values = self._evaluate(step, tensors)
        if values is None:
            self._builder.built.steps.pop()
            return None
        self.steps.append(step)
        self.values.append(values)
        self.order.append(max([self.order[s] for s, _ in step.refs()], default=0) + (step.kind == "grad"))
        return len(self.steps) - 1

    def _evaluate(self, step: Step, tensors: Sequence[Any]) -> list[np.ndarray] | None:
        try:
            with quiet():
                if step.kind in ("variable", "table"):
                    self._interpreter.run_on(self._builder.built.initializers[-1:], self._known)
                values = [np.asarray(v) for v in self._interpreter.run_on(list(tensors), self._known)]
        except Exception:  # NumPy's references may raise any exception for inputs that an op would refuse
            return None
        return values if all(v.size <= MOST_ELEMENTS for v in values) else None

    def tensor(self, ref: Ref) -> Any:
        """Returns the tensor that a ref means."""
        return self._builder.built.steps[ref[0]][ref[1]]

    def value(self, ref: Ref) -> np.ndarray:
        """Returns a value in float64, or its own dtype where it is no float."""
        return self.values[ref[0]][ref[1]]

    def narrow(self, ref: Ref) -> np.ndarray:
        """Returns a value in its own dtype."""
        with np.errstate(all="ignore"):
            return self.value(ref).astype(self.tensor(ref).dtype.base_dtype.numpy)

    def dtype(self, ref: Ref) -> str:
        """Returns the name of a value's dtype."""
        return str(self.tensor(ref).dtype.base_dtype.name)

    def refs(self, dtypes: Sequence[str] | None = None) -> list[Ref]:
        """Returns all values, or those of some dtypes."""
        found = [(s, o) for s, outputs in enumerate(self.values) for o in range(len(outputs))]
        return [r for r in found if dtypes is None or self.dtype(r) in dtypes]

    def ancestors(self, ref: Ref) -> set[int]:
        """Returns the steps that a value depends on."""
        found = {ref[0]}
        for i in range(ref[0], -1, -1):
            if i in found:
                found.update(s for s, _ in self.steps[i].refs())
        return found

    def program(self, outputs: Sequence[Ref]) -> Program:
        """Returns the steps so far as a program."""
        return Program(tuple(self.steps), tuple(outputs))

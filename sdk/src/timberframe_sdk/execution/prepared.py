"""What kernels derive from constants and versions of variables (KernelNode.prepared), made once a device and kept."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.plugin.contracts import Array, KernelNode, Preparation, TraceSink, Value, Variable
from timberframe_sdk.execution.constants import PerConstant, leave_in_file
from timberframe_sdk.execution.errors import naming

Timed = Callable[[Callable[[], Any]], tuple[Any, int, int]]
"""The type of `KernelDevice.timed`: runs a launch, and returns its result with the start and end of its work."""
MOST_FORMS = 16
"""Of one constant, or of one version of a variable; the oldest goes for a further one."""


@dataclass(slots=True, eq=False)
class Form:
    """A prepared array, and when it was made (nanoseconds of time.perf_counter_ns); reported: in a trace."""

    array: Array
    start: int
    end: int
    reported: bool = False

    def report(self, trace: TraceSink, node: KernelNode, input: int, track: str) -> None:
        """Shows in a trace when the form was made, in that of the run that made it."""
        if not self.reported and self.start >= trace.start:
            self.reported = True
            trace.event(f"{node.name}: prepare input {input}", "prepare", self.start, self.end, track, op=node.op)


class PreparedForms:
    """The forms of one device. load: gives the device's array of a constant."""

    def __init__(self, load: Callable[[np.ndarray], Array]) -> None:
        self._load = load
        self._constants = PerConstant[dict[Any, Form]]()
        self._lock = threading.RLock()

    def get(
        self, node: KernelNode, value: Value, given: Preparation, array: Array = None, timed: Timed | None = None
    ) -> Form:
        """Returns the form of an input; `array` is the variable's version of a run. Errors of `make` name the node.

        timed: `KernelDevice.timed` in a traced run, which waits for the device and gives the time of its work.
        """
        timed = timed or _by_the_host
        if value.kind == "const":
            return self._constant(node, value.constant, given, timed)
        variable: Variable = value.constant
        derived = variable.derived  # a commit puts another in its place
        form = _current(derived, given, array)
        if form is not None:
            return form
        with self._lock:
            form = _current(derived, given, array)
            if form is None:
                form = _made(node, given, array, timed)
                with suppress(TypeError):  # arrays that cannot be referenced weakly: they are prepared for each run
                    _keep(derived, given.key, (weakref.ref(array), form))
            return form

    def _constant(self, node: KernelNode, x: np.ndarray, given: Preparation, timed: Timed) -> Form:
        with self._lock:
            forms = self._constants.get(x)
            if forms is None:
                forms = self._constants.keep(x, {})
            form = forms.get(given.key)
            if form is None:
                form = _made(node, given, self._load(x), timed)
                _keep(forms, given.key, form)
                leave_in_file(x)
            return form

    def clear(self) -> None:
        """Drops the forms of constants."""
        self._constants.clear()


def _current(derived: dict[Any, Any], given: Preparation, array: Array) -> Form | None:
    """Returns the form that was made of this very version."""
    found = derived.get(given.key)
    if found is None or found[0]() is not array:
        return None
    form: Form = found[1]
    return form


def _keep(forms: dict[Any, Any], key: Any, form: Any) -> None:
    if len(forms) >= MOST_FORMS:
        forms.pop(next(iter(forms)), None)
    forms[key] = form


def _made(node: KernelNode, given: Preparation, array: Array, timed: Timed) -> Form:
    with naming(node, f"preparing input {given.input}"):
        return Form(*timed(lambda: given.make(array)))


def _by_the_host(launch: Callable[[], Any]) -> tuple[Any, int, int]:
    start = time.perf_counter_ns()
    return launch(), start, time.perf_counter_ns()

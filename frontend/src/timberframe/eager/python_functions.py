"""Functions of eager tensors that graphs call, with their gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.eager.context import eager_mode
from timberframe.eager.tape import GradientTape
from timberframe_core.dtypes import DType
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


def is_real(dtype: DType) -> bool:
    """Returns whether tensors of a dtype have gradients."""
    return dtype.is_floating or dtype.is_complex


class EagerFunction:
    """A function of eager tensors as one of arrays; `gradient` differentiates its last call of the thread."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[DType], outputs: Sequence[DType]) -> None:
        self._function = function
        self._inputs = inputs
        self._outputs = outputs
        self._lock = threading.Lock()
        self._last: tuple[Any, list[Any], list[Any]] | None = None

    def __call__(self, *values: Any) -> list[np.ndarray]:
        with eager_mode():
            given = [convert_to_tensor(np.asarray(x), d) for x, d in zip(values, self._inputs, strict=True)]
            with GradientTape() as tape:
                for x in given:
                    if is_real(x.dtype):
                        tape.watch(x)
                made = self.results_of(self._function(*given), self._outputs)
            with self._lock:
                self._last = tape, given, made
            return [x.numpy() for x in made]

    @staticmethod
    def results_of(result: Any, dtypes: Sequence[DType]) -> list[Any]:
        """Returns what a function returned, as tensors of these dtypes."""
        values = list(result) if isinstance(result, list | tuple) else [] if result is None else [result]
        if len(values) != len(dtypes):
            raise InvalidArgumentError(
                f"py_function: the function returned {len(values)} values; Tout has {len(dtypes)}, each needs one"
            )
        return [convert_to_tensor(x, d) for x, d in zip(values, dtypes, strict=True)]

    def gradient(self, *grads: Any) -> list[np.ndarray]:
        """Returns the gradients of the floating inputs, given those of the floating outputs."""
        with self._lock:
            last, self._last = self._last, None
        if last is None:
            raise FailedPreconditionError(
                "py_function: the gradient runs, and the function has not run since the last one; it must run first"
            )
        tape, given, made = last
        with eager_mode():
            sources, targets = ([x for x in xs if is_real(x.dtype)] for xs in (given, made))
            seeds = [convert_to_tensor(np.asarray(g), t.dtype) for g, t in zip(grads, targets, strict=True)]
            found = tape.gradient(targets, sources, output_gradients=seeds, unconnected_gradients="zero")
            dense: list[Any] = [convert_to_tensor(g) for g in found]
            return [g.numpy() for g in dense]

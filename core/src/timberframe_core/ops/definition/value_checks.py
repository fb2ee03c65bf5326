"""What references check in the values of their inputs, so that NumPy does not take them for something else.

The message of such an error is a template that stands beside the reference, or here where several ops share it. Kernels
that find the same fact fill in the same template, with numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError

ROW_OUTSIDE = "index {0} at position {1} is outside [0, {2}); it must name a slice of the variable"
TUPLE_OUTSIDE = "index tuple {0} has {1} in dimension {2}; it must lie in [0, {3})"


def refuse_first(wrong: np.ndarray, values: np.ndarray, message: str, *more: Any) -> None:
    """Raises InvalidArgumentError where an element is wrong: the message with its value, its position and `more`."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidArgumentError(message.format(values.reshape(-1)[at], at, *more))


def check_indices(indices: np.ndarray, size: int, message: str) -> None:
    """Raises InvalidArgumentError for the first index outside [0, size): NumPy would count -1 from the end.

    message: with the index, its position and the size, in this order.
    """
    refuse_first((indices < 0) | (indices >= size), indices, message, size)


def check_tuples(indices: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for the first of the index tuples in the last dimension that leaves the shape."""
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth) if depth else indices.reshape(0, 0)
    wrong = np.argwhere((rows < 0) | (rows >= np.array(shape[:depth], np.int64)))
    if len(wrong):
        row, d = map(int, wrong[0])
        raise InvalidArgumentError(TUPLE_OUTSIDE.format(row, rows[row, d], d, shape[d]))


@dataclass(frozen=True)
class RefusedIntegers:
    """The integers for which an elementwise op has no result where its last operand holds them.

    test: which elements of an array are refused. message: the error's, for the number of an element and its value.
    """

    test: Callable[[np.ndarray], np.ndarray]
    message: str

    def fault(self, operand: np.ndarray) -> str:
        """Returns the message for the first element that is refused; "" where none is."""
        if operand.dtype.kind not in "iu":
            return ""
        if not operand.ndim and not self.test(operand):
            return ""
        wrong = self.test(operand).reshape(-1)
        at = int(np.argmax(wrong)) if wrong.any() else None
        return "" if at is None else self.message.format(at, operand.reshape(-1)[at])

    def checking(self, reference: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the reference of such an op, with InvalidArgumentError for what is refused."""

        @wraps(reference)
        def checked(attrs: Mapping[str, Any], *inputs: np.ndarray) -> Any:
            fault = self.fault(inputs[-1])
            if fault:
                raise InvalidArgumentError(fault)
            return reference(attrs, *inputs)

        return checked

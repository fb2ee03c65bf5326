"""Where the streams of stateless random ops start: at a pair of seeds, or at a key and a counter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import EXACT, Accuracy
from timberframe_core.ops.definition.opdef import InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample
from timberframe_core.shapes import format_shape
from timberframe_ops.random.philox import Philox
from timberframe_ops.random.signatures import NO_GRADIENT, require_shape

PHILOX, AUTOMATIC = 1, 3
"""The values of `alg` that mean Philox."""

UNKNOWN_ALGORITHM = "alg is {0}; 1 (Philox) or 3 (the device's choice, which is Philox too) is required"

SEED_PAIRS = ((7, -9), (0, 0), (1, 2**31 - 1), (-(2**31), 5))
_COUNTERS = ((5, 1, 2), (2**63 + 5, 2**64 - 2, 2**64 - 1), (0, 0, 0), (1, 2**64 - 3, 7))


def seed_args(k: int = 0) -> list[Arg]:
    """Returns the seeds of the k-th sample."""
    return [Arg(values=SEED_PAIRS[k % len(SEED_PAIRS)])]


def state_args(k: int = 0) -> list[Arg]:
    """Key, counter and algorithm of the k-th sample."""
    key, low, high = _COUNTERS[k % len(_COUNTERS)]
    counter = np.array((low, high), np.uint64)
    return [Arg(values=np.array([key], np.uint64)), Arg(values=counter), Arg(values=PHILOX if k % 2 else AUTOMATIC)]


class Source:
    """Which inputs of a stateless op say where the stream starts."""

    def __init__(self, inputs: Sequence[str], attrs: Sequence[str], args: Callable[..., list[Arg]]) -> None:
        self.inputs = inputs
        self.attrs = attrs
        self.args = args

    def philox(self, inputs: Sequence[np.ndarray], first: int = 1) -> Philox:
        """Returns the generator; `first` is the index of the first of these inputs.

        Raises InvalidArgumentError for its alg.
        """
        if len(self.inputs) == 1:
            return Philox.stateless(inputs[first])
        key, counter, algorithm = inputs[first : first + 3]
        if algorithm not in (PHILOX, AUTOMATIC):
            raise InvalidArgumentError(UNKNOWN_ALGORITHM.format(algorithm))
        return Philox.at(key, counter)

    def rest(self, inputs: Sequence[np.ndarray], first: int = 1) -> Sequence[np.ndarray]:
        """Returns the inputs after those."""
        return inputs[first + len(self.inputs) :]

    def check(self, c: InferenceContext, first: int = 1) -> None:
        """Raises where these inputs have wrong shapes."""
        if len(self.inputs) == 1:
            require_shape(c, first, (2,))
            return
        require_shape(c, first, (1,))
        counter = c.shapes[first + 1]
        if counter is not None and (len(counter) != 1 or (counter[0] or 2) < 2):
            raise c.error(f"counter has shape {format_shape(counter)}; a vector of at least 2 is required")
        require_shape(c, first + 2, ())

    def errors(self, before: Arg, *after: Arg) -> Iterable[ErrorSample]:
        """Wrong inputs of these."""
        if len(self.inputs) == 1:
            for wrong in ((1, 2, 3), ((1,), (2,))):
                yield ErrorSample([before, Arg(values=wrong), *after], r"seed has shape .*; shape \(2,\) is required")
            return
        key, counter, alg = self.args()
        two = Arg(values=np.array([1, 2], np.uint64))
        one = Arg(values=np.array([1], np.uint64))
        yield ErrorSample([before, two, counter, alg, *after], r"key has shape \(2,\); shape \(1,\) is required")
        yield ErrorSample([before, key, one, alg, *after], r"counter has shape \(1,\); a vector of at least 2")
        yield ErrorSample(
            [before, key, counter, Arg(values=(1,)), *after], r"alg has shape \(1,\); a scalar is required"
        )
        yield ErrorSample([before, key, counter, Arg(values=2), *after], r"alg is 2; 1 \(Philox\) or 3")


def of_seed(types: str = "{int32, int64}") -> Source:
    """Returns a pair of seeds."""
    return Source(["seed: Tseed"], [f"Tseed: {types} = DT_INT64"], seed_args)


OF_STATE = Source(["key: uint64", "counter: uint64", "alg: int32"], [], state_args)
"""A key, a counter and the number of the algorithm."""


def define_stateless(name: str, accuracy: Accuracy = EXACT, **rest: Any) -> None:
    """Defines a stateless random op."""
    define_op(name, gradient=rest.pop("gradient", NO_GRADIENT), accuracy=accuracy, **rest)

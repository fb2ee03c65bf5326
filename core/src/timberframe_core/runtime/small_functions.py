"""Functions of few small numbers and strings, computed by the references of their ops.

Where sizes follow from values, as in `tf.fill([n], x)`, planning a function for each value takes a hundred times as
long as computing it. Only functions of ops whose references give what every kernel gives are computed so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.plan import Plan
from timberframe_core.ops.definition.accuracy import EXACT
from timberframe_core.plugin.host_ops import find_host_op

_MOST_NODES = 64
_MOST_ELEMENTS = 1024
"""Of all inputs; kernels are faster where there are more."""

Step = tuple[Callable[..., Any], Any, list[int], list[np.dtype[Any]]]
"""A reference, its attrs, where its inputs are among all values, and the dtypes of its outputs."""


class SmallFunction:
    """A function as a list of calls of references."""

    def __init__(self, constants: Sequence[np.ndarray], steps: Sequence[Step], results: Sequence[int]) -> None:
        self._constants, self._steps, self._results = constants, steps, results

    @classmethod
    def of(cls, plan: Plan) -> SmallFunction | None:
        """Returns the function that a plan runs; None for one that is better planned."""
        nodes = [n for n in plan.program.nodes if not n.feed]
        suits = len(nodes) <= _MOST_NODES and (plan.schedule.host_feeds or not plan.schedule.static)
        if not suits or not all(map(_is_exact, nodes)):
            return None
        at: dict[Output, int] = {x: i for i, x in enumerate(plan.feeds)}
        constants = [n for n in nodes if n.op.role == "constant"]
        at.update({n.outputs[0]: len(at) + i for i, n in enumerate(constants)})
        steps: list[Step] = []
        for node in nodes:
            if node.op.role == "constant":
                continue
            assert node.op.reference is not None
            dtypes = [x.dtype.numpy for x in node.outputs]
            steps.append((node.op.reference, node.attrs, [at[x] for x in node.inputs], dtypes))
            first = len(at)
            at.update({x: first + i for i, x in enumerate(node.outputs)})
        return cls([np.asarray(n.attrs["value"]) for n in constants], steps, [at[x] for x in plan.results])

    def __call__(self, inputs: Sequence[Any]) -> list[np.ndarray] | None:
        """Returns what the function returns; None where it has to be planned: for large
        inputs, and to word an error.
        """
        if sum([x.size for x in inputs]) > _MOST_ELEMENTS:
            return None
        values: list[Any] = [*inputs, *self._constants]
        try:
            with np.errstate(all="ignore"):
                for reference, attrs, at, dtypes in self._steps:
                    made = reference(attrs, *[values[i] for i in at])
                    given = made if type(made) is tuple else (made,)
                    values.extend([np.asarray(x, dtype) for x, dtype in zip(given, dtypes, strict=False)])
        except Exception:
            return None
        return [values[i] for i in self._results]


def _is_exact(node: Node) -> bool:
    """Returns whether the op's reference gives what every kernel gives."""
    op = node.op
    if op.role == "constant":
        return True
    if op.reference is None or op.role is not None or op.stateful or op.reports_to_host or node.bodies or node.control:
        return False
    if node.on_lists or node.functions or (op.on_host and find_host_op(op.name) is not None):
        return False
    if any(x.dtype.numpy.kind not in "biuO" for x in node.outputs):
        return False
    return op.accuracy == EXACT or all(x.dtype.numpy.kind in "biu" for x in node.inputs)

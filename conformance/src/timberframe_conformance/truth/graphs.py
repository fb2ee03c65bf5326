"""Evaluates graphs by the references of their ops, on the host and in the precision of what is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.truth.reference import evaluate_loudly, widen


class Evaluator:
    """The nodes that some tensors depend on, in order, ready to be evaluated for any feeds.

    Nodes that do not depend on a feed are evaluated once. Used within `quiet`.
    """

    def __init__(self, fetches: Sequence[Any], fed: Sequence[Any]) -> None:
        self.fetches = list(fetches)
        self.fed = list(fed)
        self._steps: list[Any] = []
        self._fixed: dict[Any, np.ndarray] = {}
        varying = set(self.fed)
        needed: set[Any] = set()
        stack = [t for t in self.fetches if t not in varying]
        while stack:
            op = stack.pop().op
            if op not in needed:
                needed.add(op)
                stack.extend(t for t in op.inputs if t not in varying)
        for op in sorted(needed, key=lambda op: op.id):
            if any(t in varying for t in op.inputs):
                self._steps.append(op)
                varying.update(op.outputs)
            else:
                self._fixed.update(_evaluated(op, self._fixed))

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The fetched values for these of the fed tensors, each op evaluated in the dtypes that reach it."""
        known = dict(self._fixed)
        known.update(zip(self.fed, values, strict=True))
        for op in self._steps:
            known.update(_evaluated(op, known))
        return [known[t] for t in self.fetches]

    def wide(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Like a call, in float64 and complex128."""
        known = {t: widen(x) for t, x in self._fixed.items()}
        known.update(zip(self.fed, map(widen, values), strict=True))
        for op in self._steps:
            known.update(_evaluated(op, known))
        return [known[t] for t in self.fetches]


def _evaluated(op: Any, known: Mapping[Any, np.ndarray]) -> dict[Any, np.ndarray]:
    return dict(zip(op.outputs, evaluate_loudly(op.op_def, op.attrs, [known[t] for t in op.inputs]), strict=True))

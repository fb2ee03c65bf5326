"""Counters of a loop in a cluster: which loop variables grow by a constant, and how many iterations that makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timberframe_core.compiler.trips import COMPARISONS
from timberframe_core.plugin.contracts import Cluster, KernelNode, Value


@dataclass(frozen=True)
class Counter:
    """An integer that is `start` in the first iteration of a loop, and in each further one `step` more."""

    start: int
    step: int

    def after(self, iterations: int) -> int:
        """Returns what it is after so many iterations."""
        return self.start + self.step * iterations

    def visits_all(self, count: int) -> bool:
        """Returns whether it is each of 0 to count - 1 once in `count` iterations."""
        return (self.start, self.step) in ((0, 1), (count - 1, -1))


class LoopCounters:
    """The counters of a loop. known: integers that are known outside of it, besides constants.

    iterations: how many it makes, if its condition compares counters with such integers and nothing else; or None.
    """

    def __init__(self, loop: KernelNode, known: Mapping[Value, int]) -> None:
        self._loop, self._known = loop, known
        self._cond, self._body = loop.inner
        self._makers = {v: n for n in self._body.nodes for v in n.outputs}
        self._positions = {v: i for i, v in enumerate(self._body.inputs)}
        self.iterations = self._iterations()

    def of(self, value: Value) -> Counter | None:
        """Returns the counter that a value in the body is: a loop variable that grows by a
        constant, or it and a constant.
        """
        base, sign, offset = self._base(value)
        position = self._positions.get(base)
        if position is None or position >= len(self._loop.outputs):
            return None
        start = self._integer(self._loop.inputs[position])
        again, same, step = self._base(self._body.outputs[position])
        if start is None or again is not base or same != 1 or not step:
            return None
        return Counter(sign * start + offset, sign * step)

    def results(self) -> dict[Value, int]:
        """Returns what is known of the counters after the loop."""
        found = {}
        for i, x in enumerate(self._loop.outputs if self.iterations is not None else ()):
            counter = self.of(self._body.inputs[i])
            if counter is not None and self.iterations is not None:
                found[x] = counter.after(self.iterations)
        return found

    def _base(self, value: Value) -> tuple[Value, int, int]:
        """Returns a value of the body as another one, the sign that it has in it, and a constant."""
        sign, offset = 1, 0
        while (node := self._makers.get(value)) is not None and node.op in ("Add", "AddV2", "Sub"):
            (a, b), second = node.inputs, -1 if node.op == "Sub" else 1
            first, last = _constant(a), _constant(b)
            if last is not None:
                value, offset = a, offset + sign * second * last
            elif first is not None:
                value, sign, offset = b, sign * second, offset + sign * first
            else:
                break
        return value, sign, offset

    def _integer(self, value: Value) -> int | None:
        """Returns a value outside of the loop, where it is known."""
        constant = _constant(value)
        return self._known.get(value) if constant is None else constant

    def _iterations(self) -> int | None:
        makers = {v: n for n in self._cond.nodes for v in n.outputs}
        tests, found = [self._cond.outputs[0]], []
        while tests:
            node = makers.get(tests.pop())
            if node is not None and node.op == "LogicalAnd":
                tests += node.inputs
                continue
            count = None if node is None or node.op not in COMPARISONS else self._until(node)
            if count is None:
                return None
            found.append(count)
        return min(found)

    def _until(self, test: KernelNode) -> int | None:
        """Returns how many iterations a comparison allows."""
        swapped, more = COMPARISONS[test.op]
        value, limit = reversed(test.inputs) if swapped else test.inputs
        position, end = _position(self._cond, value), self._limit(limit)
        counter = None if position is None else self.of(self._body.inputs[position])
        if counter is None or end is None or counter.step < 0:
            return None
        return max(0, -(-(end + more - counter.start) // counter.step))

    def _limit(self, value: Value) -> int | None:
        """Returns what a counter is compared with, if it is the same in all iterations and known."""
        position = _position(self._cond, value)
        if position is None:
            return _constant(value)
        return self._integer(self._loop.inputs[position]) if position >= len(self._loop.outputs) else None


def _position(cluster: Cluster, value: Value) -> int | None:
    return next((i for i, v in enumerate(cluster.inputs) if v is value), None)


def _constant(value: Value) -> int | None:
    """Returns the value of a constant integer without dimensions."""
    if value.kind != "const" or value.shape != () or value.dtype.kind not in "iu":
        return None
    return int(value.constant)

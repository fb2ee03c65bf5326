"""LoopRewriter: how a pass over clusters moves work out of a loop's body to before or after the loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_core.compiler.counters import LoopCounters
from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.compiler.support import refused
from timberframe_core.dtypes import as_dtype, int32
from timberframe_core.plugin.contracts import KernelNode, Value
from timberframe_core.plugin.nodes import role

EXACT_ENOUGH = ("float32", "float64")
"""Dtypes of which sums may be taken in another order: narrower ones would be rounded more often."""


class RefusedError(Exception):
    """The device has no kernel for a node that a pass would make."""


@dataclass(frozen=True)
class Row:
    """What an iteration reads of a tensor that stays the same: each of its rows in one iteration.

    source: the tensor, outside of the loop. index: the row, in the body. read: the node that reads it.
    """

    source: Value
    index: Value
    read: KernelNode


def counted_loops(rewriter: ClusterRewriter) -> Iterator[tuple[KernelNode, LoopCounters]]:
    """Yields the loops of a cluster that make a known number of iterations, two at least."""
    known: dict[Value, int] = {}
    for node in rewriter.nodes:
        if node.inner and role(node.op) == "loop":
            counters = LoopCounters(node, known)
            known.update(counters.results())
            if counters.iterations is not None and counters.iterations > 1:
                yield node, counters


def rewrite_products(
    rewriter: ClusterRewriter, rewrite: Callable[[LoopRewriter, KernelNode], bool], fewest_iterations: int = 2
) -> None:
    """Rewrites products in the bodies of loops that make a known number of iterations, so many at least.

    rewrite: changes one by its LoopRewriter; whether it did. Loops of which the device refuses a new node stay.
    """
    for node, counters in counted_loops(rewriter):
        loop = LoopRewriter(rewriter, node, counters)
        if loop.iterations < fewest_iterations:
            continue
        try:
            changed = [rewrite(loop, n) for n in loop.body.nodes if n.op == "MatMul"]
        except RefusedError as e:
            rewriter.decline(node, str(e))
        else:
            if any(changed):
                loop.finish()


class LoopRewriter:
    """A loop of a cluster, and what a pass changes in its body and around it; `finish` records that.

    New nodes raise RefusedError where the device has no kernel for them; nothing has been recorded then. without:
    positions of loop variables that are left out; others may take their places.
    """

    def __init__(
        self, outer: ClusterRewriter, loop: KernelNode, counters: LoopCounters, without: Collection[int] = ()
    ) -> None:
        cond, body = loop.inner
        self.outer, self.loop, self.counters = outer, loop, counters
        assert counters.iterations is not None
        self.iterations = counters.iterations
        self.body = ClusterRewriter(replace(body, outputs=[v for i, v in enumerate(body.outputs) if i not in without]))
        self._cond = ClusterRewriter(cond)
        self._makers = {v: n for n in body.nodes for v in n.outputs}
        self._positions = {v: i for i, v in enumerate(body.inputs)}
        self._inputs, self._outputs = list(outer.inputs(loop)), list(loop.outputs)
        self._inner_inputs = list(cond.inputs), list(body.inputs)
        self._without, self._results = frozenset(without), dict[int, Value]()
        self._beside: list[KernelNode] = []

    # Looking

    def maker(self, value: Value) -> KernelNode | None:
        """Returns the node of the body that makes a value."""
        return self._makers.get(value)

    def only_reader(self, value: Value) -> KernelNode | None:
        """Returns the node of the body that alone reads a value; None where there are others, or it is a result."""
        readers = self.body.readers(value)
        return readers[0] if len(readers) == 1 and not self.body.is_result(value) else None

    def outside(self, value: Value) -> Value | None:
        """Returns what a value of the body is outside of the loop, if it is the same in all iterations."""
        if value.kind == "const":
            return self.outer.constant(value.constant)
        position = self._positions.get(value, 0)
        return self._inputs[position] if position >= len(self._outputs) else None

    def row(self, value: Value) -> Row | None:
        """Returns the row that a value of the body is, if it is one."""
        read = self.maker(value)
        if read is None or read.op != "GatherV2" or read.attrs["batch_dims"]:
            return None
        source, index, axis = read.inputs
        outer, counter = self.outside(source), self.counters.of(index)
        count = self.iterations
        if outer is None or counter is None or axis.kind != "const" or axis.constant != 0:
            return None
        return Row(outer, index, read) if source.shape[0] == count and counter.visits_all(count) else None

    # Changing

    def beside(self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], name: str) -> Value:
        """Returns the output of a new node before the loop or, where it reads what the loop makes, after it."""
        made = _made(self.outer, op, inputs, attrs, self.loop, name)
        self._beside.append(made)
        return made.outputs[0]

    def reshaped(self, x: Value, shape: Sequence[int], name: str) -> Value:
        """Returns a value outside of the loop in another shape."""
        sizes = self.outer.constant(np.array(shape, np.int32))
        return self.beside("Reshape", [x, sizes], {"T": as_dtype(x.dtype), "Tshape": int32}, name)

    def insert(
        self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], like: KernelNode, name: str = ""
    ) -> Value:
        """Returns the output of a new node in the body, in the place of `like`."""
        made = _made(self.body, op, inputs, attrs, like, name)
        self.body.insert(made, like)
        return made.outputs[0]

    def inside(self, x: Value) -> Value:
        """Returns what a value outside of the loop is in the body."""
        if x.kind == "const":
            return self.body.constant(x.constant)
        self._inputs.append(x)
        for part, inputs in zip((self._cond, self.body), self._inner_inputs, strict=True):
            inputs.append(_input(part, x))
        return self._inner_inputs[1][-1]

    def erase_unread(self, value: Value) -> None:
        """Leaves out the reads of rows, and what puts them side by side, that made a value which nothing reads."""
        node = self.maker(value)
        if node is None or node.op not in ("ConcatV2", "GatherV2"):
            return
        if not self.body.readers(value) and not self.body.is_result(value):
            self.body.erase(node)
            for x in node.inputs:
                self.erase_unread(x)

    def start_variable(self, position: int, start: Value) -> Value:
        """Puts another loop variable in place of one that is left out; what it is in the body."""
        self._inputs[position] = start
        for part, inputs in zip((self._cond, self.body), self._inner_inputs, strict=True):
            inputs[position] = _input(part, start)
        return self._inner_inputs[1][position]

    def end_variable(self, position: int, result: Value) -> Value:
        """Says what an iteration makes of a loop variable that was started; what it is after the loop."""
        self._results[position] = result
        made = self._outputs[position] = self.outer.value(result.dtype, result.shape)
        return made

    def finish(self) -> None:
        """Puts the loop as it was changed in place of the one that was given."""
        self.body.keeps_source = self.outer.keeps_source = False  # results are rounded in another way
        self.body.commit()
        others = iter(self.body.cluster.outputs)
        results = [self._results.get(i) if i in self._without else next(others) for i in range(len(self._outputs))]
        gone = {i for i, v in enumerate(results) if v is None}
        inputs, cond_inputs, body_inputs, outputs = (
            [v for i, v in enumerate(values) if i not in gone]
            for values in (self._inputs, *self._inner_inputs, self._outputs)
        )
        cond = replace(self.loop.inner[0], inputs=cond_inputs)
        body = replace(self.body.cluster, inputs=body_inputs, outputs=[v for v in results if v is not None])
        for node in self._beside:
            self.outer.insert(node, self.loop)
        self.outer.substitute([self.loop], replace(self.loop, inputs=inputs, outputs=outputs, inner=(cond, body)))


def _made(
    rewriter: ClusterRewriter, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], like: KernelNode, name: str
) -> KernelNode:
    """Returns a node that takes part when it is inserted."""
    made = rewriter.create(op, inputs, attrs, like, name)
    why = refused(rewriter.device.supports(made))
    if why is not None:
        raise RefusedError(f"{op}: {why}")
    return made


def _input(part: ClusterRewriter, x: Value) -> Value:
    """Returns a new input of the condition or the body that stands for a value outside of the loop."""
    made = part.value(x.dtype, x.shape)
    made.kind = "input"
    return made

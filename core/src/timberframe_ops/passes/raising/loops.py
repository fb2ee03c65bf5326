"""Loops: a frame of Enter, Merge, Switch, NextIteration and Exit, as a While."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.function import FuncGraph, share_captures, stateful_variant
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_core.shapes import Shape
from timberframe_ops.passes.raising.branches import widest
from timberframe_ops.passes.raising.frames import Frame, is_loop_merge
from timberframe_ops.passes.raising.regions import Condition, Region, Unit, conjunction
from timberframe_ops.passes.raising.scope import Found, Scope

if TYPE_CHECKING:
    from timberframe_ops.passes.raising.schedule import Schedule


class _Loop:
    """The parts of one frame.

    variables: the Merges whose value changes with each iteration. passed: Merges of handles, which stay what they were.
    """

    def __init__(self, schedule: Schedule, unit: Unit) -> None:
        assert unit.loop is not None
        self.schedule = schedule
        self.scope = schedule.scope
        self.unit = unit
        self.frame: Frame = unit.loop
        self.again_if = _predicate(self.frame)
        self.next = {op.outputs[0]: op for op in self.frame.with_role("next_iteration")}
        self.variables: list[Operation] = []
        self.passed: list[Operation] = []
        wanted = [t for op in (*self.next.values(), *self.frame.exits) for t in op.inputs]
        self.region = Region(
            self.frame,
            schedule.region.fed,
            [*wanted, self.again_if],
            schedule.region,
            schedule.holds | schedule.region.holds,
        )
        self.again: Condition = frozenset([(self.region.source(self.again_if), True)])
        self.over: Condition = frozenset([(self.region.source(self.again_if), False)])
        self._check()

    def _check(self) -> None:
        """Raises UnimplementedError for what a While cannot do."""
        for op in self.next.values():
            self._require(op, self.again, "it must be computed in every iteration but the last")
        for op in self.frame.exits:
            self._require(op, self.over, "it must be computed in the last iteration")
        for op in self.frame.operations:
            if is_loop_merge(op) and op not in self.frame.plain_merges:
                self._check_merge(op)
            elif op.op_def.role == "enter" and not op.attrs["is_constant"] and op in self.frame.enters:
                used = self.region.consumers.get(op.outputs[0])
                if used:
                    raise UnimplementedError(
                        f"{op.type} '{op.name}': has a value in the first iteration only, and {used[0].name} uses it "
                        "in every iteration; a Merge or is_constant is required",
                        op.name,
                    )

    def _check_merge(self, op: Operation) -> None:
        kinds = [t.op.op_def.role == "next_iteration" for t in op.inputs]
        if len(op.inputs) != 2 or kinds != [False, True] or op.outputs[1] in self.region.consumers:
            raise UnimplementedError(
                f"{op.type} '{op.name}': joins {len(op.inputs)} values in loop '{self.frame.name}'; a loop variable "
                "has one from Enter and one from NextIteration, in this order, and no use of value_index",
                op.name,
            )

    def _require(self, op: Operation, wanted: Condition, must: str) -> None:
        found = conjunction([self.region.condition(op.inputs[0]), *(self.region.ran(c) for c in op.control_inputs)])
        if found != wanted:
            raise UnimplementedError(
                f"{op.type} '{op.name}': its value is computed under a condition that differs from that of loop "
                f"'{self.frame.name}'; {must}",
                op.name,
            )

    # Emission

    def emit(self) -> None:
        """Adds the While, and after it what the last iteration computes."""
        self._enter()
        waits = self.scope.waits_of(self.unit.controls, self.unit.inputs)
        first = [self.scope.value_of(op.inputs[0], op) for op in self.variables]
        name = self.scope.free_name(self.again_if.op.name)
        condition, body, shapes = self._functions(name, first)
        captured = share_captures([condition, body], len(first))
        body.outputs = [*body.outputs, *body.inputs[len(first) :]]
        inputs = [*first, *captured]
        made = self.scope.graph.create_op(
            registry.get(stateful_variant("While", (condition, body))),
            inputs,
            {
                "T": [t.dtype for t in inputs],
                "cond": condition.name,
                "body": body.name,
                "output_shapes": [*shapes, *(t.static_shape for t in captured)],
                "parallel_iterations": self.frame.enters[0].attrs["parallel_iterations"],
            },
            name,
            control_inputs=waits,
            device="",
            exact_name=True,
        )
        self._leave(made)

    def _enter(self) -> None:
        """Notes what the values are that enter the loop."""
        for op in self.frame.enters:
            self.scope.set(op.outputs[0], self.scope.find(op.inputs[0]))
            self.scope.wait_for_inputs(op)
        for op in self.frame.operations:
            if not is_loop_merge(op) or op in self.frame.plain_merges:
                continue
            found = self.scope.find(op.inputs[0])
            if op.type == "RefMerge" or op.outputs[0].dtype.name == "resource":
                self.scope.set(op.outputs[0], found)
                self.passed.append(op)
            else:
                self.variables.append(op)

    def _functions(self, name: str, first: Sequence[Tensor]) -> tuple[FuncGraph, FuncGraph, list[Shape]]:
        """Returns the bodies that decide whether there is another iteration, and that do it; shapes
        that hold in all of them.

        The shapes of the first iteration are tried, and given up where an iteration changes them.
        """
        raising = self.scope.raising
        shapes = [t.static_shape for t in first]
        while True:
            functions, temporary = set(raising.graph.functions), set(raising.temporary)
            try:
                condition, body = self._trace(name, first, shapes)
            except InvalidArgumentError:
                if all(shape is None for shape in shapes):
                    raise
                wider: list[Shape] = [None] * len(shapes)
            else:
                wider = [widest(shape, t.static_shape) for shape, t in zip(shapes, body.outputs, strict=True)]
                if wider == shapes:
                    return condition, body, shapes
            for made in raising.graph.functions.keys() - functions:
                del raising.graph.functions[made]
            raising.temporary, shapes = temporary, wider

    def _trace(self, name: str, first: Sequence[Tensor], shapes: Sequence[Shape]) -> tuple[FuncGraph, FuncGraph]:
        """Returns both bodies for loop variables of these shapes."""
        deciding = self.scope.inner(f"{name}_cond")
        self._bind(deciding, self._add_inputs(deciding, first, shapes))
        needed = self.region.closure([self.again_if.op], ())
        self._run(deciding, needed, frozenset())
        condition = _finish(deciding, [deciding.value_of(self.again_if, self.again_if.op)])
        iteration = self.scope.inner(f"{name}_body")
        self._bind(iteration, self._add_inputs(iteration, first, shapes))
        iteration.set(self.again_if, iteration.constant(np.bool_(True), f"{self.again_if.op.name}/_again"))
        following = [self.next[op.inputs[1]] for op in (*self.variables, *self.passed)]
        roots = [s for op in self.next.values() for s in (op.inputs[0].op, *op.control_inputs)]
        repeated = self.region.closure(roots, {self.again_if.op})
        self._check_once(needed & repeated)
        self._run(iteration, repeated, self.again)
        values = [iteration.value_of(op.inputs[0], op) for op in following[: len(self.variables)]]
        for op, after in zip(self.passed, following[len(self.variables) :], strict=True):
            self._check_same(op, iteration.find(after.inputs[0]))
        return condition, _finish(iteration, values)

    def _add_inputs(self, scope: Scope, first: Sequence[Tensor], shapes: Sequence[Shape]) -> list[Tensor]:
        function = scope.graph
        assert isinstance(function, FuncGraph)
        return [function.add_input(t.dtype, s, "loop_var") for t, s in zip(first, shapes, strict=True)]

    def _bind(self, scope: Scope, values: Iterable[Tensor]) -> None:
        for op, value in zip(self.variables, values, strict=True):
            scope.set(op.outputs[0], value)

    def _run(self, scope: Scope, units: set[Unit], holds: Condition) -> None:
        self.schedule.nested(scope, units, holds, self.region).run()

    def _check_once(self, units: set[Unit]) -> None:
        """Raises UnimplementedError where deciding and doing an iteration would both carry out a side effect."""
        for unit in units:
            for op in unit.operations():
                if op.op_def.stateful:
                    raise UnimplementedError(
                        f"{op.type} '{op.name}': has a side effect, and both the condition and the body of loop "
                        f"'{self.frame.name}' need its result; only one of them may",
                        op.name,
                    )

    def _check_same(self, op: Operation, after: Found) -> None:
        before = self.scope.find(op.outputs[0])
        if before != after:
            raise UnimplementedError(
                f"{op.type} '{op.name}': is another variable or resource in the next iteration; it must stay the same",
                op.name,
            )

    def _leave(self, made: Operation) -> None:
        """Gives the values after the last iteration to those that come out of the loop."""
        scope = self.scope
        self._bind(scope, made.outputs[: len(self.variables)])
        scope.ran.update(dict.fromkeys(self.frame.everything(), (made,)))
        scope.set(self.again_if, scope.constant(np.bool_(False), f"{self.again_if.op.name}/_over"))
        after = self.region.closure([op.inputs[0].op for op in self.frame.exits], {self.again_if.op})
        self._run(scope, after, self.over)
        for op in self.frame.exits:
            assert op.op_def.role == "exit"
            scope.set(op.outputs[0], scope.find(op.inputs[0]))


def _predicate(frame: Frame) -> Tensor:
    """Returns what decides whether there is another iteration: LoopCond, or else the predicate of
    the Switch before an Exit.
    """
    found = {op.outputs[0] for op in frame.with_role("loop_condition")}
    if not found:
        found = {t.op.inputs[1] for op in frame.exits for t in op.inputs if t.op.op_def.role == "switch"}
    if len(found) != 1:
        names = ", ".join(sorted(t.name for t in found)) or "none"
        raise UnimplementedError(
            f"loop '{frame.name}': has {len(found)} conditions ({names}); a LoopCond is required, and only one"
        )
    return next(iter(found))


def _finish(scope: Scope, outputs: Sequence[Tensor]) -> FuncGraph:
    function = scope.graph
    assert isinstance(function, FuncGraph)
    function.finish(outputs)
    return function


def emit_loop(schedule: Schedule, unit: Unit) -> None:
    """Adds a While for a loop."""
    _Loop(schedule, unit).emit()

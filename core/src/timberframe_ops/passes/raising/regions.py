"""Regions: the operations of one frame, and under which conditions each of them runs.

A condition is a set of literals (predicate tensor, bool) that must all hold. A Switch adds one, a Merge of
complementary conditions takes it away again. An operation whose condition contradicts itself never runs; its condition
is None.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_ops.passes.raising.frames import Frame, is_loop_merge

Literal = tuple[Tensor, bool]
Condition = frozenset[Literal]
ALWAYS: Condition = frozenset()

_MAKERS = frozenset({"make_array", "make_gradient_array"})


class Unit:
    """An operation, or a whole inner loop.

    inputs, controls: what it needs from outside of itself. needs: the units of its region that make these. after: units
    that it lets go first all the same.
    """

    def __init__(self, operation: Operation | None, loop: Frame | None, position: int) -> None:
        self.operation = operation
        self.loop = loop
        self.position = position
        self.inputs: list[Tensor] = []
        self.controls: list[Operation] = []
        self.needs: set[Unit] = set()
        self.after: set[Unit] = set()
        self.condition: Condition | None = ALWAYS

    def operations(self) -> Iterable[Operation]:
        if self.loop is not None:
            return self.loop.everything()
        assert self.operation is not None
        return [self.operation]

    def outputs(self) -> list[Tensor]:
        """Returns what it makes for others."""
        if self.loop is not None:
            return [op.outputs[0] for op in self.loop.exits]
        assert self.operation is not None
        return list(self.operation.outputs)

    @property
    def merges(self) -> bool:
        """Whether it is a Merge of branches."""
        return self.operation is not None and self.operation.op_def.role == "merge"

    @property
    def name(self) -> str:
        if self.loop is not None:
            return f"loop '{self.loop.name}'"
        assert self.operation is not None
        return f"{self.operation.type} '{self.operation.name}'"


class Region:
    """One frame's units, in topological order, with their conditions.

    fed: tensors whose values the caller gives. wanted: tensors of the region that are needed outside of it. outer: the
    region around a loop; holds: what is known to hold wherever the loop runs.
    """

    def __init__(
        self,
        frame: Frame,
        fed: Container[Tensor],
        wanted: Iterable[Tensor],
        outer: Region | None = None,
        holds: Condition = ALWAYS,
    ) -> None:
        self.frame = frame
        self.fed = fed
        self.outer = outer
        self.holds = holds
        self.wanted = set(wanted)
        self.units: list[Unit] = []
        self.consumers: dict[Tensor, list[Unit]] = {}
        self.conditions: dict[Tensor, Condition | None] = {
            op.outputs[0]: None for op in frame.with_role("next_iteration")
        }
        self._ranks: dict[Tensor, tuple[int, int]] = {}
        self._maker: dict[Operation, Unit] = {}
        self._make_units()
        for unit in self.units:
            unit.condition = self._condition(unit)
            self._consume_predicates(unit)

    def _make_units(self) -> None:
        frame = self.frame
        edge = {*frame.enters, *frame.exits, *(op for op in frame.operations if is_loop_merge(op))} - frame.plain_merges
        own = [op for op in frame.operations if not (op in edge or op.op_def.role == "next_iteration")]
        position = 0
        for op in own:
            self.units.append(Unit(op, None, position))
            self._maker[op] = self.units[-1]
            position += 1
        for child in self.frame.children.values():
            unit = Unit(None, child, position)
            self.units.append(unit)
            self._maker.update(dict.fromkeys(child.everything(), unit))
            position += 1
        for unit in self.units:
            self._connect(unit)
        self._delay_makers()
        self._sort()

    def _connect(self, unit: Unit) -> None:
        inside = set(unit.operations())
        for op in inside:
            if op.outputs and all(t in self.fed for t in op.outputs):
                continue
            unit.inputs.extend(t for t in op.inputs if t not in self.fed and t.op not in inside)
            unit.controls.extend(c for c in op.control_inputs if c not in inside)
        for tensor in unit.inputs:
            self.consumers.setdefault(tensor, []).append(unit)
        makers = (self._maker.get(op) for op in (*(t.op for t in unit.inputs), *unit.controls))
        unit.needs = {m for m in makers if m is not None}

    def _delay_makers(self) -> None:
        """Makes what makes an array or stack wait for all else that its users need, so that one If can hold them all.

        A handle cannot leave the branch in which it is made.
        """
        makers = [u for u in self.units if u.operation is not None and u.operation.op_def.role in _MAKERS]
        followers: dict[Unit, set[Unit]] = {}
        for unit in self.units if makers else ():
            for need in unit.needs:
                followers.setdefault(need, set()).add(unit)
        for maker in makers:
            below, stack = {maker}, [maker]
            while stack:
                for unit in followers.get(stack.pop(), ()):
                    if unit not in below:
                        below.add(unit)
                        stack.append(unit)
            for user in followers.get(maker, ()):
                maker.after |= user.needs - below
            for unit in maker.after:
                followers.setdefault(unit, set()).add(maker)

    def _sort(self) -> None:
        """Puts the units into topological order."""
        done: dict[Unit, None] = {}
        for root in self.units:
            stack = [root]
            while stack:
                waiting = [n for n in stack[-1].needs | stack[-1].after if n not in done]
                if len(stack) > len(self.units):
                    raise UnimplementedError(
                        f"{root.name}: waits for its own result; only NextIteration may close a cycle"
                    )
                if waiting:
                    stack.append(min(waiting, key=lambda u: u.position))
                else:
                    done.setdefault(stack.pop())
        self.units = list(done)
        for i, unit in enumerate(self.units):
            unit.position = i

    # Conditions

    def _condition(self, unit: Unit) -> Condition | None:
        op = unit.operation
        if op is not None and op.op_def.role == "merge":
            found = self._any_of(op)
        elif op is not None and op.op_def.role == "control_trigger":
            found = ALWAYS
        else:
            found = conjunction(
                [*(self.condition(t) for t in unit.inputs), *(self.ran(c) for c in unit.controls)],
            )
        for tensor in unit.outputs():
            self.conditions[tensor] = ALWAYS if tensor in self.fed else found
        if op is not None and op.op_def.role == "switch":
            pred = self.source(op.inputs[1])
            for tensor, value in zip(op.outputs, (False, True), strict=True):
                literals = self._meaning(pred, value)
                for p, _ in literals:
                    self._ranks.setdefault(p, (len(self.condition(p) or ()), len(self._ranks)))
                if tensor in self.fed:
                    continue
                if any((p, not v) in self.holds for p, v in literals):
                    self.conditions[tensor] = None
                else:
                    self.conditions[tensor] = conjunction([found, literals - self.holds])
        return found

    def source(self, pred: Tensor) -> Tensor:
        """Returns the predicate that copies come from: tf.cond switches by copies of the tensor that it was given."""
        while pred.op.type == "Identity" and pred not in self.fed:
            before = pred.op.inputs[0]
            if self.condition(before) != self.condition(pred) or any(a.is_ref for a in before.op.op_def.outputs):
                break
            pred = before
        if self.outer is not None and pred.op in self.frame.enters and pred.op.attrs["is_constant"]:
            return self.outer.source(pred.op.inputs[0])
        return pred

    def _meaning(self, pred: Tensor, value: bool) -> Condition:
        """Returns the literals that a predicate's value comes to.

        Gradients of a Merge ask whether its value_index is a number, which is to ask for the condition of that input.
        """
        merge, i = _tested_index(pred)
        if merge is not None and not is_loop_merge(merge) and pred not in self.fed:
            region: Region | None = self
            while region is not None and merge not in region._maker:
                region = region.outer
            chosen = [t for k, t in enumerate(merge.inputs) if (k == i) is value]
            if region is not None and len(chosen) == 1 and (condition := region.condition(chosen[0])) is not None:
                return condition
        return frozenset([(pred, value)])

    def _consume_predicates(self, unit: Unit) -> None:
        """Counts a unit among those that need the predicates on which it depends."""
        conditions = [unit.condition, *(self.condition(t) for t in unit.inputs if unit.merges)]
        for pred in {pred for c in conditions if c is not None for pred, _ in c}:
            self.consumers.setdefault(pred, []).append(unit)

    def condition(self, tensor: Tensor) -> Condition | None:
        """Returns when the tensor is computed; always for those from around the region."""
        return self.conditions.get(tensor, ALWAYS)

    def ran(self, op: Operation) -> Condition | None:
        """Returns when the operation runs; always for those from around the region."""
        unit = self._maker.get(op)
        return ALWAYS if unit is None else unit.condition

    def _any_of(self, op: Operation) -> Condition | None:
        """Returns what the conditions of a Merge's inputs come to."""
        terms = {c for t in op.inputs if (c := self.condition(t)) is not None}
        if not terms:
            return None
        while len(terms) > 1:
            joined = _join_two(terms)
            if joined is None:
                raise UnimplementedError(
                    f"{op.type} '{op.name}': its inputs are of branches that are not each other's opposites; they must "
                    "come from both sides of one Switch",
                    op.name,
                )
            terms = joined
        return next(iter(terms))

    def literals(self, condition: Iterable[Literal]) -> list[Literal]:
        """Returns the literals so that each predicate is known to be computed once those before it hold."""
        return sorted(condition, key=lambda literal: self._ranks[literal[0]])

    def closure(self, roots: Iterable[Operation], stop: Container[Operation]) -> set[Unit]:
        """Returns the units that these operations need, themselves included, up to `stop`."""
        found: set[Unit] = set()
        stack = [self._maker[op] for op in roots if op in self._maker and op not in stop]
        while stack:
            unit = stack.pop()
            if unit not in found:
                found.add(unit)
                stack.extend(n for n in unit.needs if n.operation not in stop)
        return found


def _tested_index(pred: Tensor) -> tuple[Operation | None, int]:
    """Returns the Merge and the number i of `Equal(value_index, i)`; None for another predicate."""
    if pred.op.type == "Equal":
        for index, number in (pred.op.inputs, reversed(pred.op.inputs)):
            known = number.host_value
            if index.op.op_def.role == "merge" and index.value_index == 1 and known is not None and known.shape == ():
                return index.op, int(known)
    return None, 0


def conjunction(conditions: Sequence[Condition | None]) -> Condition | None:
    """Returns all of these at once; None where they contradict each other."""
    union: set[Literal] = set()
    for condition in conditions:
        if condition is None:
            return None
        union |= condition
    return None if any((pred, not value) in union for pred, value in union) else frozenset(union)


def _join_two(terms: set[Condition]) -> set[Condition] | None:
    """Returns the same disjunction with one term fewer, None where two never come to one."""
    for a, b in _pairs(terms):
        if a <= b or b <= a:
            return (terms - {a, b}) | {min(a, b, key=len)}
        difference = a ^ b
        if len(difference) == 2 and len({pred for pred, _ in difference}) == 1:
            return (terms - {a, b}) | {a & b}
    return None


def _pairs(terms: set[Condition]) -> Iterator[tuple[Condition, Condition]]:
    listed = list(terms)
    for i, a in enumerate(listed):
        for b in listed[i + 1 :]:
            yield a, b

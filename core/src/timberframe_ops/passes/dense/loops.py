"""Copies of loops in which lists are dense tensors; see `passes/dense/graph.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.build import prune, read_inputs
from timberframe_core.compiler.trips import IterationLimit, counter_step, iteration_limit, original
from timberframe_core.dtypes import int32, resource
from timberframe_core.graph.function import FuncGraph, share_captures
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.library import same_user_line
from timberframe_core.shapes import Shape, is_static
from timberframe_ops.passes.dense.arrays import Array, used_elements
from timberframe_ops.passes.dense.lists import Builder, Dense, ListVariable, NotDenseError, materialised, static

_LARGEST_GUESS = 64 << 20  # bytes of a list whose loop may end before it is full

if TYPE_CHECKING:
    from timberframe_ops.passes.dense.graph import GraphCopy


def live_variables(op: Operation, wanted: set[int]) -> list[int]:
    """Returns the loop variables that the wanted ones, the condition and the body's side effects depend on."""
    cond, body = (find_body(op, op.attrs[n]) for n in ("cond", "body"))
    live = wanted | read_inputs(cond, [*cond.outputs, *cond.control_outputs]) | read_inputs(body, body.control_outputs)
    while True:
        more = read_inputs(body, [body.outputs[i] for i in live]) - live
        if not more:
            return sorted(live)
        live |= more


class LoopCopy:
    """One try to copy a loop.

    Its new loop variables are those old ones that matter (`live`), lists being tensors, and then lengths of lists.
    exact: loop variables keep the shapes that they start with.
    """

    def __init__(
        self,
        outer: GraphCopy,
        op: Operation,
        live: Sequence[int],
        inputs: list[Any],
        variables: list[ListVariable | None],
        exact: bool,
    ) -> None:
        self.outer = outer
        self.op = op
        self.inputs = inputs
        self.variables = variables
        self.exact = exact
        self.changes_shape = False
        self.old = [find_body(op, op.attrs[n]) for n in ("cond", "body")]
        self.live = live
        self.old_inputs = [[f.inputs[i] for i in live] for f in self.old]
        self.old_outputs = [self.old[1].outputs[i] for i in live]
        self.functions = [outer.new_function(f) for f in self.old]
        self.lengths: dict[tuple[Any, int], list[Tensor]] = {}
        self.following: list[Any] = []
        self.written: dict[Array, str] = {}
        self.limit: IterationLimit | None = None
        self.captured: Sequence[Tensor] = ()

    def trace(self) -> bool:
        """Copies condition and body; whether what was known of the lists suffices."""
        known = [self._inputs(i) for i in range(2)]
        old_cond, old_body = self.old
        cond, body = (self.outer.child(*of) for of in zip(self.functions, known, self.old, strict=True))
        with same_user_line():
            cond.operations(prune(old_cond.outputs, old_cond.inputs), old_cond.outputs)
            body.operations(prune([*self.old_outputs, *old_body.control_outputs], old_body.inputs), self.old_outputs)
        cond.finish(self.old[0], [cond.tensor(t) for t in self.old[0].outputs])
        self.following = [body.known[t] for t in self.old_outputs]
        self.body = body
        self.limit = iteration_limit(self.functions[0], self.inputs, self._after, self.outer.bounds)
        repeated = [v for v in self.variables if v is not None and v.again]
        for variable in repeated:
            variable.again = False
        return not repeated and self._lists_fit() and self._shapes_fit()

    def _inputs(self, which: int) -> dict[Tensor, Any]:
        """Returns the new inputs of condition (0) or body (1)."""
        function = self.functions[which]
        known: dict[Tensor, Any] = {}
        for inner, outer, variable in zip(self.old_inputs[which], self.inputs, self.variables, strict=True):
            if isinstance(outer, Dense):
                assert variable is not None
                if outer.array is not None and self.outer.sources:
                    raise NotDenseError("an array is used in a loop within another one")
                known[inner] = self._list_input(function, outer, variable)
            elif outer is None:
                raise NotDenseError("an array goes into a loop without its flow")
            else:
                invariant = self._invariant(self.old_inputs[which].index(inner))
                shape = outer.static_shape if self.exact or invariant else inner.static_shape
                made = stand_in(function, inner, outer, shape)
                if not invariant:
                    made.host_value = None
                known[inner] = made
        for key in self._length_keys():
            self.lengths.setdefault(key, []).append(function.add_input(int32, (), "length"))
        for inner, outer in zip(self.old_inputs[which], self.inputs, strict=True):
            value = known[inner]
            if isinstance(value, Dense) and value.variable is not None and value.variable.change:
                known[inner] = replace(value, length=self.lengths[outer.length, value.variable.change][which])
        return known

    def _invariant(self, i: int) -> bool:
        return original(self.old_outputs[i]) is self.old_inputs[1][i]

    def _list_input(self, function: FuncGraph, given: Dense, variable: ListVariable) -> Dense:
        outer = replace(
            given,
            element=variable.element,
            capacity=variable.capacity,
            tensor=None,
            offset=0,
            single=None,
            constant=None,
            variable=variable,
            inner=variable.inner,
        )
        if variable.constant is not None:
            function.add_input(int32, (), "constant_list")
            return replace(outer, element=variable.constant.shape, constant=variable.constant)
        if not is_static(variable.element):
            # The tensor cannot be made yet; its shape is that of the first element that is put in.
            function.add_input(int32, (), "unknown_list")
            return outer
        shape = (variable.capacity, *(d or 0 for d in variable.element or ()))
        return replace(outer, tensor=function.add_input(outer.storage, shape, "list"))

    def _length_keys(self) -> list[tuple[Any, int]]:
        """Returns what lengths that change start from, and by how much an iteration changes them: equals share one."""
        pairs = zip(self.inputs, self.variables, strict=True)
        return list(dict.fromkeys((x.length, v.change) for x, v in pairs if v is not None and v.change))

    def _lists_fit(self) -> bool:
        """Compares what the iteration made of the lists with what was assumed; notes what is new."""
        unchanged = True
        for after, before, variable in zip(self.following, self.inputs, self.variables, strict=True):
            if variable is None:
                continue
            if not isinstance(after, Dense) or (after.variable is not None and after.variable is not variable):
                raise NotDenseError("lists are swapped")
            if not is_static(variable.element):
                raise NotDenseError("the shape of elements is not known")
            change = after.offset
            if after.variable is None and not (after.full and after.capacity == variable.capacity and before.full):
                raise NotDenseError("a list is replaced by another one")
            if variable.change != change:
                variable.change, unchanged = change, False
            if change > 0:
                unchanged &= self._reserve_room(before, variable)
            if before.array is not None:
                self._check_array(before, after)
        return unchanged

    def _check_array(self, before: Dense, after: Dense) -> None:
        """Notes how many elements have been written in the end; NotDenseError where an iteration may fail."""
        assert before.array is not None
        if self.limit is None:
            raise NotDenseError("an array is used in a loop whose number of iterations has no known bound")
        used = used_elements(before.array, self.functions[1], self.inputs, self._after, self.limit.iterations)
        if any(not 0 <= i < before.capacity for r in used for i in (*r[:1], *r[-1:])):
            raise NotDenseError("iterations may use elements that an array does not have")
        if after.written != before.written:
            all_of_them = self.limit.exact and self.limit.iterations == before.capacity
            self.written[before.array] = "all" if all_of_them else "some"
            if before.array.alike and self.limit.least:
                before.array.shape = after.element

    def _reserve_room(self, before: Dense, variable: ListVariable) -> bool:
        if self.limit is None or not isinstance(before.length, int):
            raise NotDenseError("a list grows and the number of iterations has no known bound")
        needed = before.length + self.limit.iterations * variable.change
        if variable.capacity >= needed:
            return True
        row = math.prod(static(variable.element)) * replace(before, inner=variable.inner).storage.size
        if not self.limit.exact and needed * row > _LARGEST_GUESS:
            raise NotDenseError("a list may grow large, and may not")
        variable.capacity = needed
        return False

    def _shapes_fit(self) -> bool:
        """Returns whether loop variables keep the shapes they start with; else their shapes
        stay as open as they were.
        """
        if not self.exact:
            return True
        for after, before, variable in zip(self.following, self.inputs, self.variables, strict=True):
            if variable is None and after.dtype is not resource and after.static_shape != before.static_shape:
                self.changes_shape = True
        return not self.changes_shape

    def _after(self, i: int) -> Tensor | None:
        """Returns what becomes of loop variable i in an iteration, if it is a tensor."""
        after = self.following[i]
        return after if isinstance(after, Tensor) else None

    def finish(self) -> None:
        """Ends the copies of the functions, with what an iteration makes of loop variables, lists and lengths."""
        ends: list[Tensor] = []
        inner = Builder(self.functions[1], "list")
        for after, variable in zip(self.following, self.variables, strict=True):
            if variable is None:
                ends.append(after)
            elif variable.constant is not None:
                ends.append(self.functions[1].inputs[len(ends)])
            else:
                ends.append(_tensor_of(inner, after, variable))
        for length, by in self._length_keys():
            ends.append(inner.add(self.lengths[length, by][1], inner.constant(by)))
        cond, body = self.functions
        self.body.finish(self.old[1], ends)
        declared = len(ends)
        self.captured = share_captures([cond, body], declared)
        body.outputs = [*body.outputs, *body.inputs[declared:]]

    def serves(self, outer: GraphCopy, inputs: Sequence[Any]) -> bool:
        """Returns whether the finished copies are also those of the loop in another copy of what is around it.

        inputs: what the loop begins with there; its lists and shapes are as they were here.
        """
        return (
            not self.captured
            and all(_is_alike(x, before) for x, before in zip(inputs, self.inputs, strict=True))
            and all(self.outer.bounds.get(x) == outer.bounds.get(y) for x, y in zip(self.inputs, inputs, strict=True))
            and all(outer.has_room_for(f) for f in self.functions)
        )

    def moved(self, outer: GraphCopy, inputs: list[Any]) -> LoopCopy:
        """Returns the finished loop in another copy of what is around it, which it serves."""
        new = copy(self)
        new.outer, new.inputs = outer, inputs
        for function in self.functions:
            function.outer = outer.graph
        return new

    def add(self, control: Sequence[Operation]) -> list[Any]:
        """Adds the finished loop to the outer graph; what stands for its outputs."""
        outer, op = self.outer, self.op
        builder = Builder(outer.graph, f"{op.name}/list")
        start: list[Tensor] = []
        for x, variable in zip(self.inputs, self.variables, strict=True):
            if variable is None:
                start.append(x)
            elif variable.constant is not None:
                start.append(builder.constant(0))
            else:
                with outer.graph.device(op.device or None):
                    start.append(_resized(builder, x, variable))
        keys = self._length_keys()
        start += [n if isinstance(n, Tensor) else builder.constant(n) for n, _ in keys]
        start += self.captured
        cond, body = self.functions
        names = {"cond": outer.graph.add_function(cond), "body": outer.graph.add_function(body)}
        shapes = tuple(t.static_shape for t in body.inputs)
        attrs = {**op.attrs, **names, "T": tuple(t.dtype for t in start), "output_shapes": shapes}
        made = list(outer.create(op, start, attrs, control).outputs)
        self._note_counts(made)
        results: list[Any] = [None] * len(op.outputs)
        for i, (position, variable) in enumerate(zip(self.live, self.variables, strict=True)):
            results[position] = made[i] if variable is None else self._list_result(i, variable, made, keys)
        return results

    def _note_counts(self, made: Sequence[Tensor]) -> None:
        """Notes what is known of the counters after the loop."""
        limit = self.limit
        if limit is None:
            return
        for i, (tensor, x) in enumerate(zip(made, self.inputs, strict=False)):
            after = self.following[i]
            if isinstance(x, Dense) or not isinstance(after, Tensor) or x.dtype is not int32:
                continue
            step = counter_step(self.functions[1].inputs[i], after)
            begin = x.host_value
            if step is None or begin is None or begin.shape != () or begin.dtype == object:
                continue
            last = int(begin) + step * limit.iterations
            if limit.exact:
                tensor.host_value = np.array(last, np.int32)
            elif step > 0:
                self.outer.bounds[tensor] = last

    def _list_result(
        self, i: int, variable: ListVariable, made: Sequence[Tensor], keys: Sequence[tuple[Any, int]]
    ) -> Dense:
        before = self.inputs[i]
        length: int | Tensor = before.length
        if variable.change:
            at = len(self.variables) + list(keys).index((before.length, variable.change))
            length = made[at]
            if self.limit is not None and self.limit.exact and isinstance(before.length, int):
                length = before.length + variable.change * self.limit.iterations
        after = Dense(before.dtype, variable.element, variable.capacity, length, inner=variable.inner)
        if before.array is not None:
            after = replace(after, array=before.array, written=self.written.get(before.array, before.written))
        if variable.constant is not None:
            return replace(after, constant=variable.constant)
        return replace(after, tensor=made[i])


def _is_alike(x: Any, before: Any) -> bool:
    """Returns whether the copies of a loop's functions cannot tell two values apart that it may begin with.

    Of two lists or shapes that are equal: a list whose length is a tensor equals itself alone.
    """
    if isinstance(x, Dense):
        return isinstance(x.length, int) and isinstance(before.length, int) and x.array is None
    known, other = x.host_value, before.host_value
    if (known is None) != (other is None) or x.handle != before.handle:
        return False
    return known is None or (known.dtype == other.dtype and np.array_equal(known, other))


def _resized(b: Builder, x: Dense, variable: ListVariable) -> Tensor:
    """Returns the list's tensor with the loop's capacity."""
    if x.offset:
        raise NotDenseError("a list in the middle of an iteration goes into a loop")
    shape, x = static(variable.element), replace(x, inner=variable.inner)
    if x.tensor is None and x.single is None and x.constant is None:
        return b.zeros((variable.capacity, *shape), x.storage)
    tensor = materialised(b, x.with_element(shape))
    if variable.capacity == x.capacity:
        return tensor
    rest = b.zeros((variable.capacity - x.capacity, *shape), x.storage)
    return b.op("ConcatV2", [tensor, rest, b.constant(0)], {"T": x.storage, "Tidx": int32, "N": 2})


def _tensor_of(b: Builder, x: Dense, variable: ListVariable) -> Tensor:
    return materialised(b, x.with_element(variable.element))


def find_body(op: Operation, name: str) -> FuncGraph:
    function = op.graph.find_function(name)
    if function is None:
        raise NotDenseError(f"function '{name}' is not there")
    return function


def stand_in(function: FuncGraph, inner: Tensor, outer: Tensor, shape: Shape) -> Tensor:
    """Returns an input of a function's copy, which knows what the outer tensor knows."""
    made = function.add_input(inner.dtype, None if inner.dtype is resource else shape, inner.op.name)
    made.handle, made.host_value = outer.handle, outer.host_value
    return made

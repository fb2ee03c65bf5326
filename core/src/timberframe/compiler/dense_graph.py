"""A copy of a graph for the shapes of one set of feeds, in which lists of tensors are dense tensors.

Loops that accumulate, read and pop lists then have bodies of ordinary ops, which a device can run as one program. It
needs the shapes of elements, the sizes of arrays and, for lists that grow, a bound for the turns of the loop; where one
of these is known only by running, NotDenseError says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe.compiler.build import prune
from timberframe.compiler.dense_lists import (
    RULES,
    AgainError,
    Builder,
    Dense,
    ListVariable,
    NotDenseError,
    materialised,
    static,
)
from timberframe.compiler.ir import ARRAYS, BRANCHES, CALLS, LOOPS
from timberframe.compiler.trips import Bounds, TurnLimit, counter_step, turn_limit
from timberframe.dtypes import int32, resource, variant
from timberframe.graph.function import FuncGraph, share_captures, unique_function_name
from timberframe.graph.graph import Graph
from timberframe.graph.operation import Operation, Tensor
from timberframe.shapes import Shape, StaticShape, is_static

_FUNCTIONAL = LOOPS | BRANCHES | CALLS
_DEEPEST = 16  # functions within functions
_COPIES = 8  # of one loop body, until all about its lists is known


def uses_lists(function: FuncGraph, seen: set[str] | None = None) -> bool:
    """Whether a function, or one that it runs, works on lists."""
    seen = set() if seen is None else seen
    if function.name in seen:
        return False
    seen.add(function.name)
    for op in function.get_operations():
        if any(t.dtype is variant for t in op.outputs):
            return True
        names = (v for v in op.attrs.values() if isinstance(v, str)) if op.type in _FUNCTIONAL else ()
        if any(uses_lists(f, seen) for f in map(function.find_function, names) if f is not None):
            return True
    return False


def dense_graph(
    fetches: Sequence[Tensor | Operation], feeds: Sequence[Tensor], shapes: Sequence[StaticShape]
) -> tuple[Graph, list[Tensor | Operation], list[Tensor]]:
    """The copy, and its tensors and operations for the fetches and feeds; NotDenseError where there can be none."""
    graph = Graph()
    copy = _Copy(graph, {})
    new_feeds = []
    for feed, shape in zip(feeds, shapes, strict=True):
        name = graph.unique_name(f"{feed.op.name}")
        attrs = {"dtype": feed.dtype, "shape": shape}
        made = graph.create_op(_placeholder(), (), attrs, name, exact_name=True).outputs[0]
        copy.known[feed] = made
        new_feeds.append(made)
    order = prune(fetches, feeds)
    copy.operations(order)
    found: list[Tensor | Operation] = []
    for fetch in fetches:
        if isinstance(fetch, Tensor):
            found.append(copy.tensor(fetch))
        else:
            found.append(copy.ran[fetch][0] if copy.ran.get(fetch) else graph.apply("NoOp", (), {}, fetch.name))
    return graph, found, new_feeds


def _placeholder() -> Any:
    from timberframe.ops import registry

    return registry.get("Placeholder")


class _Copy:
    """Copies operations into a graph. known: what stands for a tensor, a Dense for a list. ran: for an operation."""

    def __init__(self, graph: Graph, known: Mapping[Tensor, Any], bounds: Bounds | None = None, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise NotDenseError("functions are nested too deep, or recursive")
        self.graph = graph
        self.depth = depth
        self.known: dict[Tensor, Any] = dict(known)
        self.ran: dict[Operation, list[Operation]] = {}
        self.bounds: Bounds = {} if bounds is None else bounds

    def tensor(self, x: Tensor) -> Tensor:
        found = self.known[x]
        if not isinstance(found, Tensor):
            raise NotDenseError(f"the list '{x.name}' leaves the graph")
        return found

    def operations(self, order: Sequence[Operation]) -> None:
        """Copies operations, which come after their inputs."""
        for op in order:
            if op.outputs and all(t in self.known for t in op.outputs):
                continue  # fed
            if op.type in ARRAYS or op.unsupported is not None:
                raise NotDenseError(f"'{op.name}' must run as it is")
            control = [c for before in op.control_inputs for c in self.ran.get(before, ())]
            first = len(self.graph)
            if op.type in _FUNCTIONAL:
                made = self._functional(op, control)
            elif any(t.dtype is variant for t in (*op.inputs, *op.outputs)):
                made = self._list_op(op, control)
            else:
                made = self._plain(op, control)
            for old, new in zip(op.outputs, made, strict=True):
                self.known.setdefault(old, new)
            self.ran[op] = self.graph.get_operations()[first:] or control

    def _plain(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        inputs = [self.known[t] for t in op.inputs]
        return list(self._create(op, inputs, op.attrs, control).outputs)

    def _create(
        self, op: Operation, inputs: Sequence[Tensor], attrs: Mapping[str, Any], control: Sequence[Operation]
    ) -> Operation:
        graph = self.graph
        new = graph.create_op(
            op.op_def, inputs, attrs, op.name, control_inputs=control, device=op.device, colocation=op.colocation,
            exact_name=op.name not in graph._by_name, defer_errors=True,
        )  # fmt: skip
        new._where = op._where
        return new

    def _list_op(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        rule = RULES.get(op.type)
        if rule is None:
            raise NotDenseError(f"{op.type} has no dense form")
        with self.graph.control_dependencies(control), self.graph.device(op.device or None):
            return rule(Builder(self.graph, f"{op.name}"), op, [self.known[t] for t in op.inputs])

    # Functions

    def _functional(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        inputs = [self.known[t] for t in op.inputs]
        if op.type in LOOPS:
            return self._loop(op, inputs, control)
        if any(isinstance(x, Dense) for x in inputs) or any(t.dtype is variant for t in op.outputs):
            raise NotDenseError(f"{op.type} '{op.name}' takes or gives lists")
        names = ("f",) if op.type in CALLS else ("then_branch", "else_branch")
        given = inputs if op.type in CALLS else inputs[1:]
        bodies = [self._function(op, op.attrs[n], given) for n in names]
        results = [_common([b.outputs[i].static_shape for b in bodies]) for i in range(len(op.outputs))]
        attrs = {**op.attrs, **{n: self.graph.add_function(b) for n, b in zip(names, bodies, strict=True)}}
        if "output_shapes" in attrs:
            attrs["output_shapes"] = tuple(results)
        made = list(self._create(op, inputs, attrs, control).outputs)
        for tensor, shape in zip(made, results, strict=True):
            if tensor.dtype is not resource:
                tensor._shape = shape
        return made

    def _function(self, op: Operation, name: str, given: Sequence[Tensor]) -> FuncGraph:
        """A copy of a function for inputs of these shapes."""
        old = _find(op, name)
        new = self._new_function(old)
        known = {}
        for inner, outer in zip(old.inputs, given, strict=True):
            known[inner] = _stand_in(new, inner, outer, outer.static_shape)
        copy = _Copy(new, known, self.bounds, self.depth + 1)
        copy.operations(prune([*old.outputs, *old.control_outputs], old.inputs))
        copy.finish(old, [copy.tensor(t) for t in old.outputs])
        return new

    def _new_function(self, old: FuncGraph) -> FuncGraph:
        free = self.graph.find_function(old.name) is None
        name = old.name if free else unique_function_name(self.graph, old.name, scoped=False)
        return FuncGraph(name, self.graph)

    def finish(self, old: FuncGraph, outputs: Sequence[Tensor]) -> None:
        """Ends a function's copy."""
        graph = self.graph
        assert isinstance(graph, FuncGraph)
        graph.finish(outputs)
        wanted = [c for op in old.control_outputs for c in self.ran.get(op, ())]
        graph.control_outputs = list(dict.fromkeys(wanted))

    # Loops

    def _loop(self, op: Operation, inputs: list[Any], control: Sequence[Operation]) -> list[Any]:
        variables = [
            ListVariable(x.element, max(x.capacity, 1), constant=x.constant, inner=x.inner)
            if isinstance(x, Dense)
            else None
            for x in inputs
        ]
        exact = True
        for _ in range(_COPIES):
            loop = _LoopCopy(self, op, inputs, variables, exact)
            try:
                if loop.trace():
                    return loop.add(control)
                if loop.changes_shape:
                    exact = False
            except AgainError:
                continue
        raise NotDenseError(f"the lists of loop '{op.name}' do not settle")


class _LoopCopy:
    """One try to copy a loop. Its new loop variables are the old ones, lists being tensors, then lengths of lists."""

    def __init__(
        self, outer: _Copy, op: Operation, inputs: list[Any], variables: list[ListVariable | None], exact: bool
    ) -> None:
        self.outer = outer
        self.op = op
        self.inputs = inputs
        self.variables = variables
        self.exact = exact
        self.changes_shape = False
        self.old = [_find(op, op.attrs[n]) for n in ("cond", "body")]
        self.functions = [outer._new_function(f) for f in self.old]
        self.lengths: dict[tuple[Any, int], list[Tensor]] = {}
        self.following: list[Any] = []
        self.limit: TurnLimit | None = None

    def trace(self) -> bool:
        """Copies condition and body; whether what was known of the lists suffices."""
        known = [self._inputs(i) for i in range(2)]
        copies = [
            _Copy(f, k, self.outer.bounds, self.outer.depth + 1) for f, k in zip(self.functions, known, strict=True)
        ]
        cond, body = copies
        cond.operations(prune(self.old[0].outputs, self.old[0].inputs))
        body.operations(prune([*self.old[1].outputs, *self.old[1].control_outputs], self.old[1].inputs))
        cond.finish(self.old[0], [cond.tensor(t) for t in self.old[0].outputs])
        self.following = [body.known[t] for t in self.old[1].outputs]
        self.body = body
        self.limit = turn_limit(self.functions[0], self.inputs, self._after, self.outer.bounds)
        return self._lists_settle() and self._shapes_settle()

    def _inputs(self, which: int) -> dict[Tensor, Any]:
        """The new inputs of condition (0) or body (1)."""
        function = self.functions[which]
        known: dict[Tensor, Any] = {}
        for inner, outer, variable in zip(self.old[which].inputs, self.inputs, self.variables, strict=True):
            if isinstance(outer, Dense):
                assert variable is not None
                known[inner] = self._list_input(function, outer, variable)
            else:
                invariant = self._invariant(self.old[which].inputs.index(inner))
                shape = outer.static_shape if self.exact or invariant else inner.static_shape
                made = _stand_in(function, inner, outer, shape)
                if not invariant:
                    made.host_value = None
                known[inner] = made
        for key in self._length_keys():
            self.lengths.setdefault(key, []).append(function.add_input(int32, (), "length"))
        for inner, outer in zip(self.old[which].inputs, self.inputs, strict=True):
            value = known[inner]
            if isinstance(value, Dense) and value.variable is not None and value.variable.change:
                known[inner] = replace(value, length=self.lengths[outer.length, value.variable.change][which])
        return known

    def _invariant(self, i: int) -> bool:
        body = self.old[1]
        out = body.outputs[i]
        while out.op.type == "Identity":
            out = out.op.inputs[0]
        return out is body.inputs[i]

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
            # The tensor cannot be made yet; the first element that is put in tells its shape.
            function.add_input(int32, (), "unknown_list")
            return outer
        shape = (variable.capacity, *(d or 0 for d in variable.element or ()))
        return replace(outer, tensor=function.add_input(outer.storage, shape, "list"))

    def _length_keys(self) -> list[tuple[Any, int]]:
        """What lengths that change start from, and by how much a turn changes them: lists alike share one variable."""
        pairs = zip(self.inputs, self.variables, strict=True)
        return list(dict.fromkeys((x.length, v.change) for x, v in pairs if v is not None and v.change))

    def _lists_settle(self) -> bool:
        """Compares what the turn made of the lists with what was assumed; notes what is new."""
        settled = True
        for after, before, variable in zip(self.following, self.inputs, self.variables, strict=True):
            if variable is None:
                continue
            if not isinstance(after, Dense) or (after.variable is not None and after.variable is not variable):
                raise NotDenseError("lists change places")
            if not is_static(variable.element):
                raise NotDenseError("the shape of elements is not known")
            change = after.offset
            if after.variable is None and not (after.full and after.capacity == variable.capacity and before.full):
                raise NotDenseError("a list is replaced by another one")
            if variable.change != change:
                variable.change, settled = change, False
            if change > 0:
                settled &= self._reserve_room(before, variable)
        return settled

    def _reserve_room(self, before: Dense, variable: ListVariable) -> bool:
        if self.limit is None or not isinstance(before.length, int):
            raise NotDenseError("a list grows and the number of turns has no known bound")
        needed = before.length + self.limit.turns * variable.change
        if variable.capacity >= needed:
            return True
        variable.capacity = needed
        return False

    def _shapes_settle(self) -> bool:
        """Whether loop variables keep the shapes they start with; else their shapes stay as open as they were."""
        if not self.exact:
            return True
        for after, before, variable in zip(self.following, self.inputs, self.variables, strict=True):
            if variable is None and after.dtype is not resource and after.static_shape != before.static_shape:
                self.changes_shape = True
        return not self.changes_shape

    def _after(self, i: int) -> Tensor | None:
        """What becomes of loop variable i in a turn, if it is a tensor."""
        after = self.following[i]
        return after if isinstance(after, Tensor) else None

    def add(self, control: Sequence[Operation]) -> list[Any]:
        """Adds the loop to the outer graph; what stands for its outputs."""
        outer, op = self.outer, self.op
        builder = Builder(outer.graph, f"{op.name}/list")
        start: list[Tensor] = []
        ends: list[Tensor] = []
        inner = Builder(self.functions[1], "list")
        for x, after, variable in zip(self.inputs, self.following, self.variables, strict=True):
            if variable is None:
                start.append(x)
                ends.append(after)
            elif variable.constant is not None:
                start.append(builder.constant(0))
                ends.append(self.functions[1].inputs[len(ends)])
            else:
                with outer.graph.device(op.device or None):
                    start.append(_resized(builder, x, variable))
                ends.append(_tensor_of(inner, after, variable))
        keys = self._length_keys()
        for length, by in keys:
            start.append(length if isinstance(length, Tensor) else builder.constant(length))
            ends.append(inner.add(self.lengths[length, by][1], inner.constant(by)))
        cond, body = self.functions
        self.body.finish(self.old[1], ends)
        declared = len(start)
        captured = share_captures([cond, body], declared)
        body.outputs = [*body.outputs, *body.inputs[declared:]]
        start += captured
        names = {"cond": outer.graph.add_function(cond), "body": outer.graph.add_function(body)}
        shapes = tuple(t.static_shape for t in body.inputs)
        attrs = {**op.attrs, **names, "T": tuple(t.dtype for t in start), "output_shapes": shapes}
        made = list(outer._create(op, start, attrs, control).outputs)
        self._note_counts(made)
        results: list[Any] = []
        for i, variable in enumerate(self.variables):
            results.append(made[i] if variable is None else self._list_result(i, variable, made, keys))
        return results

    def _note_counts(self, made: Sequence[Tensor]) -> None:
        """What is known of the counters after the loop."""
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
            last = int(begin) + step * limit.turns
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
                length = before.length + variable.change * self.limit.turns
        after = Dense(before.dtype, variable.element, variable.capacity, length, inner=variable.inner)
        if variable.constant is not None:
            return replace(after, constant=variable.constant)
        return replace(after, tensor=made[i])


def _resized(b: Builder, x: Dense, variable: ListVariable) -> Tensor:
    """The list's tensor with the loop's capacity."""
    if x.offset:
        raise NotDenseError("a list in the middle of a turn goes into a loop")
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


def _find(op: Operation, name: str) -> FuncGraph:
    function = op.graph.find_function(name)
    if function is None:
        raise NotDenseError(f"function '{name}' is not there")
    return function


def _stand_in(function: FuncGraph, inner: Tensor, outer: Tensor, shape: Shape) -> Tensor:
    """An input of a function's copy, which knows what the outer tensor knows."""
    made = function.add_input(inner.dtype, None if inner.dtype is resource else shape, inner.op.name)
    made.handle, made.host_value = outer.handle, outer.host_value
    return made


def _common(shapes: Sequence[Shape]) -> Shape:
    first = shapes[0]
    for other in shapes[1:]:
        if first is None or other is None or len(first) != len(other):
            return None
        first = tuple(a if a == b else None for a, b in zip(first, other, strict=True))
    return first

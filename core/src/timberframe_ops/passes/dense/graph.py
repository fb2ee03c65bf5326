"""A copy of a graph for the shapes of one set of feeds, in which lists of tensors are dense tensors.

Loops that accumulate, read and pop lists then have bodies of ordinary ops, which a device can run as one program. It
needs the shapes of elements, the sizes of arrays and, for lists that grow, a bound for the loop's iterations; where
one of these is known only by running, NotDenseError says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from timberframe_core.compiler.build import prune
from timberframe_core.compiler.ir import ARRAYS, CONTROL_FLOW, RUNS_BODIES, VARIABLE_READS, Subgraph
from timberframe_core.compiler.trips import Bounds
from timberframe_core.dtypes import resource, variant
from timberframe_core.graph.function import FuncGraph, unique_function_name
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_core.shapes import StaticShape, in_common
from timberframe_ops.passes.dense import arrays
from timberframe_ops.passes.dense.lists import Builder, Dense, ListVariable, NotDenseError, rule_of
from timberframe_ops.passes.dense.loops import LoopCopy, find_body, live_variables, stand_in

_FUNCTIONAL = RUNS_BODIES | {"call"}
_NOT_COPIED = CONTROL_FLOW  # in functions; that of the graph has become loops and branches
_WITHOUT_EFFECT = VARIABLE_READS | ARRAYS | {"variable"}  # arrays are values of a run
_COPIES = 8  # of one loop body, until all about its lists is known


def uses_lists(function: FuncGraph, seen: set[str] | None = None) -> bool:
    """Returns whether a function, or one that it runs, works on lists or arrays."""
    seen = set() if seen is None else seen
    if function.name in seen:
        return False
    seen.add(function.name)
    for op in function.get_operations():
        if op.op_def.role in ARRAYS or any(t.dtype is variant for t in op.outputs):
            return True
        names = op.op_def.functions(op.attrs)
        if any(uses_lists(f, seen) for f in map(function.find_function, names) if f is not None):
            return True
    return False


def dense_graph(
    subgraph: Subgraph, shapes: Sequence[StaticShape]
) -> tuple[Graph, list[list[Tensor | Operation]], list[Tensor]]:
    """Returns the copy, what stands for each fetch and then what has effects, and its feeds.

    NotDenseError where there can be no such copy.
    """
    graph = Graph()
    copy = GraphCopy(graph, {})
    new_feeds = []
    fetches = [f for made in subgraph.fetches for f in made]
    for feed, shape in zip(subgraph.feeds, shapes, strict=True):
        name = graph.unique_name(f"{feed.op.name}")
        attrs = {"dtype": feed.dtype, "shape": shape}
        made = graph.create_op(registry.get("Placeholder"), (), attrs, name, exact_name=True).outputs[0]
        copy.known[feed] = made
        new_feeds.append(made)
    copy.operations(subgraph.order, fetches)

    def copied(fetch: Tensor | Operation) -> Tensor | Operation:
        if isinstance(fetch, Tensor):
            return copy.tensor(fetch)
        return copy.ran[fetch][-1] if copy.ran.get(fetch) else graph.apply("NoOp", (), {}, fetch.name)

    found = [[copied(f) for f in made] for made in subgraph.fetches]
    # Dense tensors need less than lists; what has an effect runs though nothing needs its value any more.
    found.append([made for op in subgraph.order if _has_effect(op) for made in copy.ran.get(op, ())])
    return graph, found, new_feeds


def _has_effect(op: Operation) -> bool:
    role = op.op_def.role
    if role in _FUNCTIONAL:
        bodies = (find_body(op, name) for name in op.op_def.functions(op.attrs))
        return any(c.op_def.role not in ARRAYS for b in bodies for c in b.control_outputs)
    return op.op_def.stateful and role not in _WITHOUT_EFFECT


class GraphCopy:
    """Copies operations into a graph. known: what stands for a tensor, a Dense for a list. ran: for an operation.

    outer: the copy of the graph around, which runs what this one copies. sources: all functions that are being copied.
    """

    def __init__(
        self,
        graph: Graph,
        known: Mapping[Tensor, Any],
        outer: GraphCopy | None = None,
        sources: frozenset[FuncGraph] = frozenset(),
    ) -> None:
        self.graph = graph
        self.sources = sources
        self.known: dict[Tensor, Any] = dict(known)
        self.ran: dict[Operation, list[Operation]] = {}
        self.bounds: Bounds = {} if outer is None else outer.bounds
        self._copied: dict[Any, LoopCopy] = {} if outer is None else outer._copied
        """The last copies of loops, by how their lists and shapes begin. The body of a loop is copied several times;
        what the copy of a loop in it has come to serves each time."""
        self._live: dict[Operation, list[int]] = {}
        """Of each loop, the loop variables that matter."""

    def tensor(self, x: Tensor) -> Tensor:
        found = self.known[x]
        if not isinstance(found, Tensor):
            raise NotDenseError(f"the list '{x.name}' leaves the graph")
        return found

    def child(self, graph: FuncGraph, known: Mapping[Tensor, Any], source: FuncGraph) -> GraphCopy:
        """Returns the copy of a function that this graph runs, with nothing in it yet."""
        if source in self.sources:
            raise NotDenseError(f"function '{source.name}' calls itself")
        return GraphCopy(graph, known, self, self.sources | {source})

    def operations(self, order: Sequence[Operation], results: Iterable[Tensor | Operation]) -> None:
        """Copies operations, which come after their inputs; results: what the caller wants of them."""
        self._find_live(order, {t for t in results if isinstance(t, Tensor)})
        for op in order:
            if op.outputs and all(t in self.known for t in op.outputs):
                continue  # fed
            if op.op_def.role in _NOT_COPIED or op.unsupported is not None:
                raise NotDenseError(f"'{op.name}' must run as it is")
            control = [c for before in op.control_inputs for c in self.ran.get(before, ())]
            first = len(self.graph)
            if op.op_def.role in _FUNCTIONAL:
                made = self._functional(op, control)
            elif self._is_on_lists(op):
                made = self._list_op(op, control)
            else:
                made = self._plain(op, control)
            for old, new in zip(op.outputs, made, strict=True):
                self.known.setdefault(old, new)
            new = self.graph.get_operations()[first:]
            for copy in new:
                copy._where = op._where  # errors name the user's line, not that of the run
            self.ran[op] = new or control

    def _is_on_lists(self, op: Operation) -> bool:
        return (
            op.op_def.role in ARRAYS
            or any(t.dtype is variant for t in (*op.inputs, *op.outputs))
            or any(isinstance(self.known.get(t), Dense) for t in op.inputs)  # the flow of an array is a number
        )

    def _find_live(self, order: Sequence[Operation], needed: set[Tensor]) -> None:
        for op in reversed(order):
            if op.op_def.role == "loop":
                live = self._live[op] = live_variables(op, {i for i, t in enumerate(op.outputs) if t in needed})
                needed.update(op.inputs[i] for i in live)
            else:
                needed.update(op.inputs)

    def _plain(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        inputs = [self.tensor(t) for t in op.inputs]
        return list(self.create(op, inputs, op.attrs, control).outputs)

    def create(
        self, op: Operation, inputs: Sequence[Tensor], attrs: Mapping[str, Any], control: Sequence[Operation]
    ) -> Operation:
        graph = self.graph
        return graph.create_op(
            op.op_def, inputs, attrs, op.name, control_inputs=control, device=op.device, colocation=op.colocation,
            exact_name=op.name not in graph._by_name, defer_errors=True,
        )  # fmt: skip

    def _list_op(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        rule = arrays.RULES.get(op.type) or rule_of(op.op_def)
        if rule is None:
            raise NotDenseError(f"{op.type} has no dense form")
        with self.graph.control_dependencies(control), self.graph.device(op.device or None):
            return rule(Builder(self.graph, f"{op.name}"), op, [self.known.get(t) for t in op.inputs])

    # Functions

    def _functional(self, op: Operation, control: Sequence[Operation]) -> list[Any]:
        inputs = [self.known[t] for t in op.inputs]
        if op.op_def.role == "loop":
            return self._loop(op, inputs, control)
        if any(x is None or isinstance(x, Dense) for x in inputs) or any(t.dtype is variant for t in op.outputs):
            raise NotDenseError(f"{op.type} '{op.name}' takes or gives lists")
        given = inputs if op.op_def.role == "call" else inputs[1:]
        bodies = [self._function(op, name, given) for name in op.op_def.functions(op.attrs)]
        results = [in_common(b.outputs[i].static_shape for b in bodies) for i in range(len(op.outputs))]
        attrs = {**op.attrs, **op.op_def.bind_functions(op.attrs, [self.graph.add_function(b) for b in bodies])}
        if "output_shapes" in attrs:
            attrs["output_shapes"] = tuple(results)
        made = list(self.create(op, inputs, attrs, control).outputs)
        for tensor, shape in zip(made, results, strict=True):
            if tensor.dtype is not resource:
                tensor._shape = shape
        return made

    def _function(self, op: Operation, name: str, given: Sequence[Tensor]) -> FuncGraph:
        """Returns a copy of a function for inputs of these shapes."""
        old = find_body(op, name)
        new = self.new_function(old)
        known = {}
        for inner, outer in zip(old.inputs, given, strict=True):
            known[inner] = stand_in(new, inner, outer, outer.static_shape)
        copy = self.child(new, known, old)
        copy.operations(prune([*old.outputs, *old.control_outputs], old.inputs), old.outputs)
        copy.finish(old, [copy.tensor(t) for t in old.outputs])
        return new

    def new_function(self, old: FuncGraph) -> FuncGraph:
        free = self.graph.find_function(old.name) is None
        name = old.name if free else unique_function_name(self.graph, old.name, scoped=False)
        return FuncGraph(name, self.graph)

    def finish(self, old: FuncGraph, outputs: Sequence[Tensor]) -> None:
        """Ends a function's copy."""
        graph = self.graph
        assert isinstance(graph, FuncGraph)
        graph.finish(outputs)
        wanted = [c for op in old.control_outputs if op.op_def.role not in ARRAYS for c in self.ran.get(op, ())]
        graph.control_outputs = list(dict.fromkeys(wanted))

    # Loops

    def _loop(self, op: Operation, inputs: list[Any], control: Sequence[Operation]) -> list[Any]:
        live = self._live[op]
        given = [inputs[i] for i in live]
        starts = (None if x is None else x.start if isinstance(x, Dense) else x.static_shape for x in given)
        key = (op, *live, *starts)
        known = self._copied.get(key)
        if known is not None and known.serves(self, given):
            return known.moved(self, given).add(control)
        loop = self._copied[key] = self._copied_loop(op, given, known)
        return loop.add(control)

    def _copied_loop(self, op: Operation, given: list[Any], known: LoopCopy | None) -> LoopCopy:
        """Returns the finished copy of a loop; known: one of a loop that begins with equal lists and shapes."""
        if known is not None:
            with suppress(NotDenseError):  # what holds there need not hold in another copy of what is around it
                return self._try_loop(op, given, [v and replace(v) for v in known.variables], known.exact)
        return self._try_loop(op, given, [ListVariable.of(x) if isinstance(x, Dense) else None for x in given], True)

    def _try_loop(self, op: Operation, given: list[Any], variables: list[ListVariable | None], exact: bool) -> LoopCopy:
        """Copies a loop until all is known of its lists; variables, exact: what is assumed of these and of shapes."""
        for _ in range(_COPIES):
            loop = LoopCopy(self, op, self._live[op], given, variables, exact)
            if loop.trace():
                loop.finish()
                return loop
            if loop.changes_shape:
                exact = False
        raise NotDenseError(f"the lists of loop '{op.name}' do not converge")

    def has_room_for(self, function: FuncGraph) -> bool:
        """Returns whether no other function has the name of this one or of one within it."""
        given = {function.name: function, **function.functions}
        graph: Graph | None = self.graph
        while graph is not None:
            known = graph.functions
            if any(known[name] is not given[name] for name in known.keys() & given.keys()):
                return False
            graph = graph.outer if isinstance(graph, FuncGraph) else None
        return True

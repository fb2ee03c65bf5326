"""Prunes the user's graph to what a run needs and copies that into the compiler's nodes, calls spliced in."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from timberframe_core.compiler.ir import ARRAYS, RAISED, RUNS_BODIES, FunctionProgram, Node, Output, Program, Subgraph
from timberframe_core.compiler.trips import runs_of_bodies
from timberframe_core.dtypes import variant
from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor, open_inputs
from timberframe_core.graph.signatures import called_functions, named_functions
from timberframe_core.graph.variable_value import handle_of
from timberframe_core.ops.definition import registry

Ancestors = tuple[str, ...]

Rewrite = Callable[[Subgraph], Subgraph]
"""What passes make of the graph of a run or of a function: `Pipeline.rewrite_graph`."""

_DEEPEST = 100  # calls within calls; each level takes two frames of Python's stack
_FEW_RUNS = 1000  # of bodies: a loop that runs them more often may take so long that it should be open to cancelling
_MOST_SPLICED = 1 << 16
"""Nodes that the calls of one run come to: of functions that each call the next one twice, thirty are a billion."""


def prune(wanted: Iterable[Tensor | Operation], feeds: Iterable[Tensor]) -> list[Operation]:
    """Returns the operations that must run to give `wanted`, in a topological order that
    follows creation where it can.
    """
    fed = set(feeds)
    seen: set[Operation] = set()
    stack = [w if isinstance(w, Operation) else w.op for w in wanted if w not in fed]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            if is_fed(op, fed):
                continue
            stack.extend(op.control_inputs)
            stack.extend([t.op for t in op.inputs if t not in fed])
    order = sorted(seen, key=lambda op: op.id)  # a Merge stands before the NextIteration that closes its loop
    if all(c.id < op.id for op in order for c in op.control_inputs if c in seen):
        return order
    return _topological(order, fed)


def read_inputs(function: FuncGraph, results: Iterable[Tensor | Operation]) -> set[int]:
    """Returns the positions of the inputs that results depend on."""
    wanted = list(results)
    read = {t for t in wanted if isinstance(t, Tensor)}
    read.update(*(_values_read(op) for op in prune(wanted, function.inputs)))
    return {i for i, t in enumerate(function.inputs) if t in read}


def _values_read(op: Operation) -> Sequence[Tensor]:
    """Returns the inputs of an operation but for an array's handle: what it means is known by the array's flow."""
    return op.inputs[1:] if op.op_def.role == "use_array" else op.inputs


def is_fed(op: Operation, fed: Container[Tensor]) -> bool:
    """Returns whether feeds stand for the whole operation, so that waiting for it is waiting for nothing."""
    return bool(op.outputs) and all(t in fed for t in op.outputs)


def _topological(order: list[Operation], fed: set[Tensor]) -> list[Operation]:
    """Depth-first order for graphs in which control edges were added later; raises on a cycle."""
    done: list[Operation] = []
    state: dict[Operation, int] = {}
    for root in order:
        stack = [root]
        while stack:
            op = stack[-1]
            if state.get(op) == 2:
                stack.pop()
                continue
            state[op] = 1
            before = [] if is_fed(op, fed) else [*op.control_inputs, *(t.op for t in open_inputs(op) if t not in fed)]
            waiting = [b for b in before if state.get(b) != 2]
            if not waiting:
                state[op] = 2
                done.append(op)
                stack.pop()
            elif state.get(waiting[-1]) == 1:
                names = " -> ".join(o.name for o in stack[stack.index(waiting[-1]) :])
                raise InvalidArgumentError(
                    f"{op.type} '{op.name}': is part of the cycle {names}; a graph must be acyclic",
                    op.name,
                )
            else:
                stack.append(waiting[-1])
    return done


def subgraph(graph: Graph, fetches: Sequence[Tensor | Operation], feeds: Sequence[Tensor]) -> Subgraph:
    """Returns what a run of these fetches and feeds needs of a graph."""
    return Subgraph(graph, _read_last(prune(fetches, feeds), fetches), [[f] for f in fetches], feeds)


def _read_last(order: list[Operation], fetches: Iterable[Tensor | Operation]) -> list[Operation]:
    """Puts reads of fetched variables after all updates, as TensorFlow 1 fetches its references."""
    reads = {f.op for f in fetches if isinstance(f, Tensor) and handle_of(f) is not None}
    if not reads:
        return order
    for op in order:
        reads.difference_update(op.control_inputs)
        reads.difference_update(t.op for t in op.inputs)
    return [op for op in order if op not in reads] + [op for op in order if op in reads]


def _body_of(function: FuncGraph) -> Subgraph:
    """Returns what a call of a function needs: its results, and then what has effects."""
    return subgraph(function, [*function.outputs, *function.control_outputs], function.inputs)


class Builder:
    """Copies operations of one graph, and of the functions it calls, which it rewrites, into a list of nodes."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.nodes: list[Node] = []
        self._rewrite = rewrite
        self._spliced = 0

    def add_feed(self, tensor: Tensor, name: str | None = None) -> Output:
        """Returns a value that the caller hands in."""
        node = Node(registry.get("Placeholder"), name or tensor.op.name, {"dtype": tensor.dtype, "shape": None}, [])
        node.feed = True
        node.where = tensor.op.where
        # A feed of output 2 of an op is still the only output of its own node.
        node.outputs = [Output(node, 0, tensor.dtype.base_dtype, tensor.static_shape)]
        self.nodes.append(node)
        return node.outputs[0]

    def copy(
        self,
        order: Sequence[Operation],
        known: dict[Tensor, Output],
        graph: Graph,
        prefix: str = "",
        ancestors: Ancestors = (),
        control: Sequence[Node] = (),
    ) -> dict[Operation, list[Node]]:
        """Adds `order`; `known` maps tensors to values and grows. Gives the nodes that mean an operation ran."""
        ran: dict[Operation, list[Node]] = {}
        for op in order:
            if is_fed(op, known):
                ran[op] = [known[t].node for t in op.outputs]
                continue
            if op.unsupported is not None:
                raise op.unsupported
            inputs = [known[t] for t in op.inputs]
            before = [n for c in op.control_inputs for n in ran.get(c, ())]
            if op.op_def.stateful:
                before.extend(control)
            role = op.op_def.role
            if role in RAISED:
                raise UnimplementedError(
                    f"{op.type} '{op.name}': runs as part of a loop, branch or variable alone, which the pass "
                    f"'functionalize' makes of it; it must be switched on, and not fail",
                    op.name,
                )
            if role == "call":
                ran[op] = self._splice(op, inputs, before, known, graph, prefix, ancestors)
                continue
            node = Node(op.op_def, prefix + op.name, op.attrs, inputs)
            node.control = before
            node.requested = op.device
            node.colocation = op.colocation
            node.where = op.where
            node.outputs = [Output(node, t.value_index, t.dtype, t.static_shape) for t in op.outputs]
            for tensor, output in zip(op.outputs, node.outputs, strict=True):
                known.setdefault(tensor, output)  # a fed output keeps the fed value
            if role in RUNS_BODIES:
                node.bodies = called_functions(op, graph)
                node.endless = runs_of_bodies(op, graph) > _FEW_RUNS
            elif op.op_def.function_attrs:
                node.functions = named_functions(op, graph)
            lists = any(x.dtype is variant for x in (*inputs, *node.outputs))
            node.on_lists = not node.bodies and (lists or role in ARRAYS)
            self.nodes.append(node)
            ran[op] = [node]
        return ran

    def _splice(
        self,
        op: Operation,
        inputs: list[Output],
        before: list[Node],
        known: dict[Tensor, Output],
        graph: Graph,
        prefix: str,
        ancestors: Ancestors,
    ) -> list[Node]:
        """Puts the body of a call in its place."""
        (function,) = called_functions(op, graph)
        if function.name in ancestors:
            raise InvalidArgumentError(
                f"{op.type} '{op.name}': function '{function.name}' calls itself without a condition; "
                "a recursion must pass through an If",
                op.name,
            )
        if len(ancestors) >= _DEEPEST:
            raise ResourceExhaustedError(
                f"{op.type} '{op.name}': stands in functions that call each other {len(ancestors)} deep; "
                f"at most {_DEEPEST} levels can run",
                op.name,
            )
        self._spliced += len(function)
        if self._spliced > _MOST_SPLICED:
            raise ResourceExhaustedError(
                f"{op.type} '{op.name}': with function '{function.name}' in its place the calls of a run come to "
                f"{self._spliced} nodes; at most {_MOST_SPLICED} are possible",
                op.name,
            )
        body = self._rewrite(_body_of(function))
        inner = dict(zip(body.feeds, inputs, strict=True))
        ran = self.copy(body.order, inner, body.graph, f"{prefix}{op.name}/", (*ancestors, function.name), before)
        results, effects = body.fetches[: len(function.outputs)], body.fetches[len(function.outputs) :]
        for tensor, (result,) in zip(op.outputs, results, strict=True):
            assert isinstance(result, Tensor)
            known.setdefault(tensor, inner[result])
        found = [n for made in effects for o in made if isinstance(o, Operation) for n in ran.get(o, ())]
        return found or [known[t].node for t in op.outputs]


def build_program(wanted: Subgraph, rewrite: Rewrite) -> Program:
    """Returns the program of one set of fetches and feeds."""
    builder, source = Builder(rewrite), rewrite(wanted)
    known = {t: builder.add_feed(t, old.op.name) for t, old in zip(source.feeds, wanted.feeds, strict=True)}
    inputs = list(known.values())
    ran = builder.copy(source.order, known, source.graph)
    return Program(source, builder.nodes, inputs, _found(source.fetches, known, ran))


def _found(
    fetches: Iterable[Sequence[Tensor | Operation]],
    known: Mapping[Tensor, Output],
    ran: Mapping[Operation, list[Node]],
) -> list[Output | Node]:
    """Returns the values and nodes that the fetches became."""
    found: list[Output | Node] = []
    for fetch in (f for made in fetches for f in made):
        if isinstance(fetch, Tensor):
            found.append(known[fetch])
        else:
            found.extend(ran[fetch])
    return found


def build_function(function: FuncGraph, handles: Mapping[int, str], rewrite: Rewrite) -> FunctionProgram:
    """Returns the program of a function body; handles: the names of the variables of inputs that are resources."""
    builder, source = Builder(rewrite), rewrite(_body_of(function))
    known = {t: builder.add_feed(t, old.op.name) for t, old in zip(source.feeds, function.inputs, strict=True)}
    inputs = list(known.values())
    for i, name in handles.items():
        inputs[i].node.variable = name
    ran = builder.copy(source.order, known, source.graph)
    fetches = _found(source.fetches, known, ran)
    return FunctionProgram(function, source, builder.nodes, inputs, fetches, len(function.outputs))

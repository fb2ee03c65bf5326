"""GraphRewriter: what passes over whole graphs see, and how they put another graph in place of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from timberframe_core.compiler.build import prune
from timberframe_core.compiler.ir import Subgraph
from timberframe_core.errors import InternalError
from timberframe_core.graph.function import FuncGraph, copy_operation
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import StaticShape


class GraphRewriter:
    """The operations that a run or a function needs, of a graph that stays as it is: a pass makes another one.

    operations: each after what it needs. fetches: for each thing that is fetched what stands for it. shapes: those of
    the feeds, in phase `fed_graph`; None before.
    """

    def __init__(self, subgraph: Subgraph, shapes: Sequence[StaticShape] | None = None) -> None:
        self.subgraph = subgraph
        self.graph, self.operations = subgraph.graph, subgraph.order
        self.fetches, self.feeds = subgraph.fetches, subgraph.feeds
        self.shapes = shapes
        self.rewritten: list[str] = []
        """Names of the operations that others were put in place of."""
        self.declined: list[tuple[str, str]] = []
        """Names of operations that could have been rewritten, with the reason why they were not."""
        self._made: tuple[Graph, Sequence[Sequence[Tensor | Operation]], Sequence[Tensor]] | None = None

    def substitute(
        self,
        graph: Graph,
        fetches: Sequence[Sequence[Tensor | Operation]],
        feeds: Sequence[Tensor],
        rewritten: Iterable[Operation | str],
    ) -> None:
        """Puts another graph in place of this one.

        fetches: for each of ours what stands for it, and after these what must run besides. feeds: for each of ours.
        rewritten: operations of this graph that it has no copies of, or names for them: of one in a function that is
        called, ``call/operation``.
        """
        self._made = graph, fetches, feeds
        self.rewritten += map(_name, rewritten)

    def copy(self, instead: Callable[[Operation, list[Tensor]], Sequence[Tensor] | None]) -> None:
        """Puts a copy in place of this graph, in which other tensors stand for what some operations give.

        instead: called with each operation and the copies of its inputs, the copy being the default graph; returns a
        tensor for each output, or None to have the operation copied. Nothing is put in place of a graph whose
        operations are all copied. Not for loops of TensorFlow 1's control flow: `functionalize` comes first.
        """
        made = Graph()
        made.functions, made.seed = _functions(self.graph), self.graph.seed
        copies: dict[Tensor, Tensor] = {}
        operations: dict[Operation, Operation] = {}
        replaced: list[Operation] = []
        with made.as_default():
            for feed in self.feeds:
                if feed.op not in operations:
                    operations[feed.op] = copy_operation(made, feed.op, copies, operations)
            for op in self.operations:
                if op in operations:
                    continue
                with made.device(op.device):
                    found = instead(op, [copies[t] for t in op.inputs])
                if found is None:
                    operations[op] = copy_operation(made, op, copies, operations)
                    continue
                copies.update(zip(op.outputs, found, strict=True))
                operations[op] = found[0].op
                replaced.append(op)
        if replaced:
            fetches = [[copies[f] if isinstance(f, Tensor) else operations[f] for f in each] for each in self.fetches]
            self.substitute(made, fetches, [copies[t] for t in self.feeds], replaced)

    def decline(self, op: Operation | str, why: str) -> None:
        """Says why an operation, or one of this name as for `substitute`, stays as it is, for `Session.explain`."""
        self.declined.append((_name(op), why))

    @property
    def changed(self) -> bool:
        """Whether there is another graph."""
        return self._made is not None

    def commit(self) -> None:
        """Makes `subgraph` that of the other graph; InternalError where fetches or feeds do not line up with ours."""
        assert self._made is not None
        graph, fetches, feeds = self._made
        if len(fetches) < len(self.fetches) or len(feeds) != len(self.feeds):
            raise InternalError(
                f"the pass gave {len(fetches)} fetches and {len(feeds)} feeds for {len(self.fetches)} and "
                f"{len(self.feeds)}; each must have its own"
            )
        if any(a.dtype.base_dtype is not b.dtype.base_dtype for a, b in zip(self.feeds, feeds, strict=True)):
            raise InternalError("the pass gave a feed another dtype; dtypes must stay")
        order = prune([f for found in fetches for f in found], feeds)
        for op in order:
            for name in op.op_def.functions(op.attrs):
                if graph.find_function(name) is None:
                    raise InternalError(
                        f"{op.type} '{op.name}': the pass made a graph that lacks its function '{name}'"
                    )
        self.subgraph = Subgraph(graph, order, fetches, feeds)


def _name(op: Operation | str) -> str:
    return op if isinstance(op, str) else op.name


def _functions(graph: Graph) -> dict[str, FuncGraph]:
    """Returns all that operations of a graph may call: its own functions, and those of the graphs that it is in."""
    outer = graph.outer if isinstance(graph, FuncGraph) else None
    return {**(_functions(outer) if outer is not None else {}), **graph.functions}

"""GraphRewriter: what passes over whole graphs see, and how they put another graph in the place of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from timberframe_core.compiler.build import prune
from timberframe_core.compiler.ir import Subgraph
from timberframe_core.errors import InternalError
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
        """Names of the operations that others were put in the place of."""
        self.declined: list[tuple[str, str]] = []
        """Names of operations that could have been rewritten, with the reason why they were not."""
        self._made: tuple[Graph, Sequence[Sequence[Tensor | Operation]], Sequence[Tensor]] | None = None

    def substitute(
        self,
        graph: Graph,
        fetches: Sequence[Sequence[Tensor | Operation]],
        feeds: Sequence[Tensor],
        rewritten: Iterable[Operation],
    ) -> None:
        """Puts another graph in the place of this one.

        fetches: for each of ours what stands for it, and after these what must run besides. feeds: for each of ours.
        rewritten: operations of this graph that it has no copies of.
        """
        self._made = graph, fetches, feeds
        self.rewritten += [op.name for op in rewritten]

    def decline(self, op: Operation, why: str) -> None:
        """Says why an operation stays as it is, for `Session.explain`."""
        self.declined.append((op.name, why))

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
        self.subgraph = Subgraph(graph, order, fetches, feeds)

"""Name scopes that follow the graph of what is used in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe_core import nest
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import get_default_graph


@contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None) -> Iterator[str]:
    """Puts a name and a slash before the names made inside, in the graph of `values` if they have one.

    name None takes default_name (and is no scope at all without one); a name that ends in a slash re-enters that scope;
    an empty one leaves all scopes.
    """
    chosen = default_name if name is None else name
    graph = get_default_graph()
    if not isinstance(graph, FuncGraph):  # a body takes tensors of the graphs around it in
        graph = next((v.graph for v in nest.flatten(values or []) if hasattr(v, "graph")), graph)
    with graph.as_default():
        if chosen is None:
            yield ""
        else:
            with graph.name_scope(chosen) as scope:
                yield scope

"""GraphDef, TensorFlow's file format for graphs. Its import gives graphs `as_graph_def`."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.graph import Graph


def as_graph_def(self: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """The GraphDef message of this graph; `add_shapes` writes what is known of the shapes of all outputs, too."""
    from timberframe_core.graphdef.export import export_graph  # with protobuf, which only this needs

    return export_graph(self, add_shapes=add_shapes)


setattr(Graph, "as_graph_def", as_graph_def)  # noqa: B010 - mypy forbids assigning a method

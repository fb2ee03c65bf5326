"""GraphDef, TensorFlow's file format for graphs. Its import gives graphs `as_graph_def`, operations `node_def`."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation
from timberframe_core.graph.tensor_shape import TensorShape


def as_graph_def(self: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """Returns the GraphDef message of this graph; `add_shapes` writes what is known of the
    shapes of all outputs, too.
    """
    from timberframe_core.graphdef.export import export_graph  # with protobuf, which only this needs

    return export_graph(self, add_shapes=add_shapes)


def node_def(self: Operation) -> Any:
    """Returns the NodeDef message of this operation."""
    from timberframe_core.graphdef.export import export_node  # with protobuf, which only this needs

    return export_node(self)


def as_proto(self: TensorShape) -> Any:
    """Returns the TensorShapeProto message of this shape."""
    from timberframe_core.graphdef.tensors import encode_shape  # with protobuf, which only this needs

    return encode_shape(self.as_tuple())


setattr(Operation, "node_def", property(node_def))  # noqa: B010 - mypy forbids assigning a property
setattr(TensorShape, "as_proto", as_proto)  # noqa: B010 - mypy forbids assigning a method
setattr(Graph, "as_graph_def", as_graph_def)  # noqa: B010 - mypy forbids assigning a method

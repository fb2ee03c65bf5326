"""Handles of resources: variables, tables, queues."""

from __future__ import annotations

from typing import Any

from timberframe_core.compiler.state import variable_key
from timberframe_core.dtypes import resource
from timberframe_core.graph.eager_tensor import EagerSpec
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor


class ResourceSpec(EagerSpec):
    """The spec of one handle: by which operation graphs refer to its resource, and the calls that use it.

    The resource goes with the last tensor that is its handle. trainable: tapes watch the variable when it is read.
    """

    __slots__ = ("calls", "key", "operation", "read", "trainable", "variable")

    def __init__(self, graph: Graph, operation: Operation) -> None:
        super().__init__(graph, resource, (), None)
        self.operation = operation
        self.calls: dict[Any, Any] = {}
        self.trainable = False
        self.variable: Any = None
        """A weak reference to the tf.Variable, where there is one."""
        self.read: Operation | None = None
        kind, own = operation.op_def.resource, variable_key(operation.name, operation.attrs)
        self.key = f"{kind} {own}" if kind else own

    def __del__(self) -> None:
        graph: Any = self.graph
        graph.drop_resource(self)


def add_handle(graph: Graph, spec: ResourceSpec, name: str | None = None) -> Tensor:
    """Returns the handle of the same resource in another graph. name: one that is free there, by default its own."""
    made = spec.operation
    copy = graph.create_op(made.op_def, (), made.attrs, name or made.name, device=made.device, exact_name=True)
    copy._where = None
    return copy.outputs[0]

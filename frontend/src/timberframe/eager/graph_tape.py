"""What a GradientTape knows in a graph: which of its operations were made while it recorded, from what is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe_core.gradients.reverse import gradients_through, is_differentiable
from timberframe_core.gradients.tape import reads_variables
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.opdef import NotDifferentiable


class GraphTape:
    """A tape in a graph, such as inside tf.function: the graph itself is the record.

    Operations of the graph from before it recorded, from pauses and from after its block are no part of it, and none
    from around its graph. Those of graphs within, such as branches, are: they were made meanwhile.
    """

    def __init__(self, watch_accessed_variables: bool) -> None:
        self._watched: set[Tensor] = set()
        self._tracked: set[Tensor] = set()
        self._watches_variables = watch_accessed_variables
        self._graph = get_default_graph()
        self._bodies = _bodies(self._graph)
        self._recorded: set[Operation] = set()
        self._start = self._seen = len(self._graph)
        self._recording = False

    def begin(self) -> None:
        """Records from here on."""
        self._see()
        self._recording = True

    def end(self) -> None:
        """Records no more."""
        self._see()
        self._recording = False

    def watch(self, tensor: Tensor) -> None:
        """Watches a tensor, of a variable its handle: what is made of it from here on counts."""
        self._see()
        self._watched.add(tensor)

    def _see(self) -> None:
        """Takes up the operations that were made since the last time."""
        made = self._graph.operations_from(self._seen)
        self._seen += len(made)
        if not self._recording or not made:
            return
        tracked, known = self._tracked, self._variables() if self._watches_variables else {}
        tracked.update(self._inner(x) for x in self._watched)
        for op in made:
            if not isinstance(op.gradient, NotDifferentiable):
                reads = self._watches_variables and reads_variables(op.op_def)
                if any(x in tracked or (reads and _is_trained(x, known)) for x in op.inputs):
                    self._recorded.add(op)
                    tracked.update(x for x in op.outputs if is_differentiable(x))

    def _inner(self, tensor: Tensor) -> Tensor:
        """Returns what stands in the graph for a tensor from around it."""
        for body in self._bodies:
            tensor = body.stand_in(tensor)
        return tensor

    def __contains__(self, tensor: Any) -> bool:
        """Returns whether the operation that made a tensor was recorded."""
        graph = tensor.graph
        if graph is self._graph:
            return tensor.op in self._recorded
        return not any(graph is body.outer for body in self._bodies)

    def _variables(self) -> dict[Tensor, Any]:
        """Returns the variables that are known, by the tensors of the graph that are their handles."""
        handles = getattr(self._graph, "handles", {}).items()
        known = {inner: _variable_of(handle) for handle, inner in handles}
        known.update((v.handle, v) for v in self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
        return known

    def variables(self) -> list[Any]:
        """Returns the variables that are watched, and those to be trained that operations since the beginning read."""
        known = self._variables()
        made = [op for op in self._graph.operations_from(self._start) if reads_variables(op.op_def)]
        read = {x: known[x] for op in made for x in op.inputs if known.get(x) is not None}
        found = [v for v in read.values() if v.trainable] if self._watches_variables else []
        return list(
            dict.fromkeys([*found, *(v for v in known.values() if v is not None and v.handle in self._watched)])
        )

    def is_tracked(self, tensor: Tensor) -> bool:
        """Returns whether a tensor has gradients: variables, what is watched, and what was made of these have."""
        self._see()
        if tensor in self._watched or self._inner(tensor) in self._tracked:
            return True
        if not self._watches_variables or tensor.dtype.name != "resource":
            return False
        return _is_trained(tensor, {tensor: _variable_of(tensor)} if tensor.eager else self._variables())

    def gradients(
        self, targets: Sequence[Tensor], sources: Sequence[Tensor | None], seeds: Sequence[Any] | None
    ) -> list[Any]:
        """Returns the gradients by what was recorded."""
        self._see()
        graph: Any = get_default_graph()
        inner = [graph.capture(x) if x is not None and x.eager else x for x in sources]
        present = [x for x in inner if x is not None]
        found = iter(gradients_through(targets, present, seeds, self))
        return [None if x is None else next(found) for x in inner]


def _bodies(graph: Graph) -> list[FuncGraph]:
    """Returns the bodies that a graph lies in and is, from the outermost on."""
    found: list[FuncGraph] = []
    while isinstance(graph, FuncGraph):
        found.append(graph)
        if graph.outer is None:
            break
        graph = graph.outer
    return found[::-1]


def _variable_of(handle: Any) -> Any:
    """Returns the variable of an eager handle; None where it is not known."""
    return handle.spec.variable and handle.spec.variable()


def _is_trained(tensor: Tensor, known: Mapping[Tensor, Any]) -> bool:
    """Returns whether a tensor is the handle of a variable that is to be trained, or may be."""
    if tensor.dtype.name != "resource":
        return False
    variable = known.get(tensor)
    return variable is None or bool(variable.trainable)

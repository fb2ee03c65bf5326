"""FuncGraph: a graph with inputs and outputs, the body of While, If and calls."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.dtypes import DType
from timberframe.graph.graph import Graph
from timberframe.graph.operation import Operation, Tensor
from timberframe.ops.opdef import OpDef
from timberframe.shapes import Shape


class FuncGraph(Graph):
    """A function body. Tensors of the graphs around it may be used inside: they become further inputs (`captures`)."""

    def __init__(self, name: str, outer: Graph | None = None) -> None:
        super().__init__()
        self.name = name
        self.outer = outer
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        """Outer tensor -> the input that stands for it; these inputs come after the declared ones."""
        self.control_outputs: list[Operation] = []
        """Operations that must run whenever the function does."""

    def add_input(self, dtype: DType, shape: Shape = None, name: str = "input") -> Tensor:
        """Declares the next input."""
        with self.name_scope(None), self.control_dependencies(None):
            tensor = self.apply("Placeholder", (), {"dtype": dtype, "shape": shape}, name).outputs[0]
        self.inputs.append(tensor)
        return tensor

    def _own(self, tensor: Tensor, op_def: OpDef, name: str) -> Tensor:
        if tensor.op.graph is self:
            return tensor
        return self.capture(tensor)

    def capture(self, tensor: Tensor) -> Tensor:
        """The input that stands for a tensor of a graph around this one."""
        inner = self.captures.get(tensor)
        if inner is None:
            if self.outer is None or not self._is_around(tensor):
                return super()._own(tensor, tensor.op.op_def, tensor.op.name)
            inner = self.add_input(tensor.dtype, tensor.static_shape, f"captured_{tensor.op.name.rsplit('/', 1)[-1]}")
            inner.handle = tensor.handle
            inner.host_value = tensor.host_value
            self.captures[tensor] = inner
        return inner

    def captured_tensor(self, inner: Tensor) -> Tensor | None:
        """The outer tensor that an input stands for; None for a declared input."""
        return next((outer for outer, stand_in in self.captures.items() if stand_in is inner), None)

    def _is_around(self, tensor: Tensor) -> bool:
        graph: Graph | None = self.outer
        while graph is not None:
            if tensor.op.graph is graph:
                return True
            graph = graph.outer if isinstance(graph, FuncGraph) else None
        return False

    def finish(self, outputs: Sequence[Tensor]) -> None:
        """Sets the outputs; stateful operations made so far run whenever the function does."""
        self.outputs = [self._own(t, t.op.op_def, t.op.name) for t in outputs]
        made = {t.op for t in self.inputs}
        self.control_outputs = [op for op in self._operations if op.op_def.stateful and op not in made]

    def find_function(self, name: str) -> FuncGraph | None:
        found = super().find_function(name)
        return found if found is not None or self.outer is None else self.outer.find_function(name)

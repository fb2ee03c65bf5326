"""FuncGraph: a graph with inputs and outputs, the body of While, If and calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from timberframe_core import recursion
from timberframe_core.dtypes import DType, variant
from timberframe_core.errors import ResourceExhaustedError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.inference import common_handle
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.shapes import Shape, in_common

_eager_functions = itertools.count(1)
_LEVELS_BETWEEN = 8  # bodies within bodies that Python's usual stack has room for, the user's own functions included


class FuncGraph(Graph):
    """A function body. Tensors of the graphs around it may be used inside: they become further inputs (`captures`).

    own_seeds: whether its random ops take seeds that count from 0, as those of functions do. Those of branches and
    loops count on from the graph around them, so that no two of them draw the same numbers.
    """

    is_body = True

    def __init__(self, name: str, outer: Graph | None = None, own_seeds: bool = True) -> None:
        super().__init__()
        self.name = name
        self._own_seeds = own_seeds
        self.outer = outer
        self.level: int = 1 + (outer.level if isinstance(outer, FuncGraph) else 0)
        """How many bodies within bodies it is, itself included."""
        if self.level > recursion.MAX_NESTING:
            raise ResourceExhaustedError(
                f"function '{name}': bodies are nested {self.level} deep; at most {recursion.MAX_NESTING} can be"
            )
        self.seed = None if outer is None else outer.seed
        if outer is not None:
            self._collections = outer._collections  # bodies have no collections of their own
            self._scopes.container = outer._scopes.container
            self._scopes.gradients = outer._scopes.gradients
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        """Outer tensor -> the input that stands for it; these inputs come after the declared ones."""
        self.forward: FuncGraph | None = None
        """Of the gradient of a function: that function, whose values may be used inside too."""
        self.copy_of: tuple[FuncGraph, Mapping[Tensor, Tensor]] | None = None
        """The function that this is a copy of, and the copies of its tensors."""
        self.control_outputs: list[Operation] = []
        """Operations that must run whenever the function does."""
        self.outer_control_inputs: dict[Operation, None] = {}
        """Operations of graphs around this one, in order, that must have run before the node that runs the body."""

    @contextmanager
    def as_default(self) -> Iterator[FuncGraph]:
        """Makes the operations of the block parts of the body."""
        often_enough = self.level % _LEVELS_BETWEEN == 0
        with recursion.room(0) if often_enough else nullcontext(), super().as_default():
            yield self

    def next_op_seed(self) -> int:
        """Returns the seed of a random op that has none of its own."""
        return super().next_op_seed() if self._own_seeds or self.outer is None else self.outer.next_op_seed()

    def add_input(self, dtype: DType, shape: Shape = None, name: str = "input") -> Tensor:
        """Declares the next input."""
        if dtype is variant:  # whose elements are inferred
            with self.name_scope(None), self.control_dependencies(None):
                tensor = self.apply("Placeholder", (), {"dtype": dtype, "shape": shape}, name).outputs[0]
        else:
            tensor = self._add_placeholder(dtype, as_shape(shape), name)
        self.inputs.append(tensor)
        return tensor

    def _add_placeholder(self, dtype: DType, shape: Shape, name: str) -> Tensor:
        """Adds what `apply` would outside of all scopes, and infers nothing: nested bodies have very many inputs."""
        with self._lock:
            self._refuse_finalized()
            scope, self._scopes.name = self._scopes.name, ""
            try:
                full = self._claim_name(name, exact=False)
            finally:
                self._scopes.name = scope
            op = Operation(self, registry.get("Placeholder"), full, (), {"dtype": dtype, "shape": shape}, ())
            tensor = Tensor(op, 0, dtype, shape)
            op.outputs = (tensor,)
            op.colocation, op.device = self._colocation(), self._device_for(op)
            self._append(op)
        return tensor

    def _own(self, tensor: Tensor, op_def: OpDef, name: str, inputs: Sequence[Tensor] = ()) -> Tensor:
        if tensor.op.graph is self:
            return tensor
        return self.capture(tensor)

    def capture(self, tensor: Tensor) -> Tensor:
        """Returns the input that stands for a tensor of a graph around this one."""
        inner = self.captures.get(tensor)
        if inner is None:
            if self.outer is None or not self._is_around(tensor):
                return super()._own(tensor, tensor.op.op_def, tensor.op.name)
            inner = self._add_capture(tensor)
        return inner

    def _add_capture(self, tensor: Tensor) -> Tensor:
        inner = self.add_input(tensor.dtype, tensor.static_shape, f"captured_{tensor.op.name.rsplit('/', 1)[-1]}")
        inner.handle = tensor.handle
        inner.host_value = tensor.host_value
        self.captures[tensor] = inner
        return inner

    def _control_input(self, element: Any) -> Operation | None:
        """Returns None: nothing inside can wait for an operation of a graph around this one; the
        node that runs the body does.
        """
        if isinstance(element, Operation) and self._is_inside(element.graph):
            self.outer_control_inputs[element] = None
            return None
        return super()._control_input(element)

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Puts the operations made inside on the device of `op`, which may be of a graph around this one."""
        inner = getattr(op, "op", op)
        if isinstance(inner, Operation) and (self._is_inside(inner.graph) or self._is_eager(inner)):
            with self.device(None), self.device(inner.device):
                yield
        else:
            with super().colocate_with(op, ignore_existing):
                yield

    def capture_value(self, tensor: Tensor, where: str) -> Tensor:
        if self.outer is None:
            return super().capture_value(tensor, where)
        if self.outer.eager:
            return self.captures.get(tensor) or self._add_capture(tensor)
        return self.capture(self.outer.capture_value(tensor, where))

    def stand_in(self, tensor: Tensor) -> Tensor:
        """Returns the input that stands for a captured tensor; one that is not captured itself."""
        return self.captures.get(tensor, tensor)

    def captured_tensor(self, inner: Tensor) -> Tensor | None:
        """Returns the outer tensor that an input stands for; None for a declared input."""
        return next((outer for outer, stand_in in self.captures.items() if stand_in is inner), None)

    def _is_around(self, tensor: Tensor) -> bool:
        graph: Graph | None = self.outer
        while graph is not None:
            forward = graph.forward if isinstance(graph, FuncGraph) else None
            if tensor.op.graph is graph or (forward is not None and forward.own_copy(tensor) is not None):
                return True
            graph = graph.outer if isinstance(graph, FuncGraph) else None
        return False

    def own_copy(self, tensor: Tensor) -> Tensor | None:
        """Returns the tensor of this function that a tensor is, or was copied to; None for all others."""
        if tensor.graph is self or self.copy_of is None:
            return tensor if tensor.graph is self else None
        source, copies = self.copy_of
        found = source.own_copy(tensor)
        return None if found is None else copies.get(found)

    def _is_eager(self, op: Operation) -> bool:
        """Returns whether this is the body of a traced function and `op` was made outside of it, in eager execution."""
        graph: Graph | None = self
        while isinstance(graph, FuncGraph) and graph is not op.graph:
            graph = graph.outer
        return graph is not None and graph.eager

    def _is_inside(self, other: Graph) -> bool:
        """Returns whether `other` is one of the graphs that this body is in."""
        graph = self.outer
        while graph is not None and graph is not other:
            graph = graph.outer if isinstance(graph, FuncGraph) else None
        return graph is not None

    def finish(self, outputs: Sequence[Tensor]) -> None:
        """Sets the outputs; stateful operations made so far run whenever the function does."""
        self.outputs = [self._own(t, t.op.op_def, t.op.name) for t in outputs]
        made = {t.op for t in self.inputs}
        self.control_outputs = [op for op in self._operations if op.op_def.stateful and op not in made]

    def find_function(self, name: str) -> FuncGraph | None:
        found = super().find_function(name)
        return found if found is not None or self.outer is None else self.outer.find_function(name)

    def copy(self, name: str) -> FuncGraph:
        """Returns a function of another name that does the same; its operations have the names of those copied.

        All inputs are declared ones: which of them were captured is no longer known.
        """
        new = FuncGraph(name, self.outer)
        new.functions, new.seed = dict(self.functions), self.seed
        copies: dict[Tensor, Tensor] = {}
        operations: dict[Operation, Operation] = {}
        for op in self._operations:
            operations[op] = copy_operation(new, op, copies, operations)
        new.inputs = [copies[t] for t in self.inputs]
        new.outputs = [copies[t] for t in self.outputs]
        new.control_outputs = [operations[op] for op in self.control_outputs]
        new.copy_of = self, copies
        return new


def copy_operation(
    graph: Graph,
    op: Operation,
    copies: dict[Tensor, Tensor],
    operations: Mapping[Operation, Operation],
    name: str | None = None,
) -> Operation:
    """Returns the same operation in another graph; `copies` has those of its inputs, and gets those of its outputs.

    operations: the copies of its control inputs. name: a free one, by default that of the operation.
    """
    new = graph.create_op(
        op.op_def,
        [copies[t] for t in op.inputs],
        op.attrs,
        op.name if name is None else name,
        control_inputs=[operations[c] for c in op.control_inputs],
        device=op.device,
        colocation=op.colocation,
        exact_name=True,
        defer_errors=True,
    )
    new.gradient, new.unsupported, new._where = op.gradient, op.unsupported, op._where
    for tensor, source in zip(new.outputs, op.outputs, strict=True):
        tensor._shape, tensor.handle, tensor.host_value = source._shape, source.handle, source.host_value
        copies[source] = tensor
    return new


def unique_function_name(graph: Graph, label: str, scoped: bool = True) -> str:
    """Returns a name, with the scopes in force unless `scoped` is false, that no function of
    the graph or around it has.
    """
    while isinstance(graph, FuncGraph) and graph.outer is not None:
        graph = graph.outer
    if graph.eager:  # which keeps no functions: those of one call may come from anywhere
        return f"{label.replace('/', '_')}_{next(_eager_functions)}"
    scope = graph.get_name_scope() if scoped else ""
    flat = f"{scope}/{label}".lstrip("/").replace("/", "_")
    with graph.name_scope(None):  # the whole name is reserved, for a function under construction is not in the library
        name = graph.unique_name(flat)
        while graph.find_function(name) is not None:
            name = graph.unique_name(flat)
    return name


def share_captures(bodies: Sequence[FuncGraph], declared: int = 0) -> list[Tensor]:
    """Gives all bodies the same captured inputs in one order, after the declared ones; returns the outer tensors."""
    captured = list(dict.fromkeys(outer for body in bodies for outer in body.captures))
    for body in bodies:
        inner = {outer: body.capture(outer) for outer in captured}
        body.captures = inner
        body.inputs = [*body.inputs[:declared], *inner.values()]
    return captured


def common_shapes(bodies: Sequence[FuncGraph]) -> list[Shape]:
    """For each result what the shapes that the bodies give have in common."""
    return [in_common(t.static_shape for t in results) for results in zip(*(b.outputs for b in bodies), strict=True)]


def set_handles(outputs: Sequence[Tensor], bodies: Sequence[FuncGraph]) -> None:
    """Notes what is known of the lists that the node gives which runs one of these bodies."""
    for output, results in zip(outputs, zip(*(b.outputs for b in bodies), strict=True), strict=True):
        if output.dtype is variant:
            output.handle = common_handle(t.handle for t in results)


def outer_control_inputs(bodies: Iterable[FuncGraph]) -> list[Operation]:
    """Returns what the node that runs these bodies must wait for."""
    return list(dict.fromkeys(op for body in bodies for op in body.outer_control_inputs))


def stateful_variant(op: str, bodies: Iterable[FuncGraph]) -> str:
    """Returns the op's stateless form where no body changes or reads state."""
    stateful = any(node.op_def.stateful for body in bodies for node in body.get_operations())
    return op if stateful else f"Stateless{op}"

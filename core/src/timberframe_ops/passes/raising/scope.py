"""Scopes: the graphs that a rewrite writes into, and what stands in them for the tensors of the source."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.apply import to_array
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.ops.definition import registry
from timberframe_ops.passes.raising.references import Reference, emit_reference, flat_args

Found = Tensor | Reference

_PASSING = frozenset({"switch", "enter", "exit"})


class Raising:
    """What all scopes of one rewrite share.

    unvalidated: reference tensors whose variables an Assign may give any shape. temporary: names of the temporary
    variables that exist at the point that has been reached.
    """

    def __init__(self, source: Graph, fed: Container[Tensor]) -> None:
        self.graph = Graph()
        self.graph.functions.update(source.functions)
        self.fed = fed
        self.unvalidated = unvalidated_references(source)
        self.temporary: set[str] = set()
        self._taken = source.find_function

    def new_function(self, name: str, outer: Graph) -> FuncGraph:
        """Returns an empty body whose name nobody else has."""
        base = name.replace("/", "_")
        chosen, number = base, 0
        while chosen in self.graph.functions or self._taken(chosen) is not None:
            number += 1
            chosen = f"{base}_{number}"
        function = FuncGraph(chosen, outer)
        self.graph.functions[chosen] = function
        return function


def unvalidated_references(graph: Graph) -> set[Tensor]:
    """References that an Assign without validate_shape reaches."""
    found: set[Tensor] = set()
    for op in graph.get_operations():
        if op.type == "Assign" and not op.attrs["validate_shape"]:
            tensor = op.inputs[0]
            while tensor not in found:
                found.add(tensor)
                if tensor.op.inputs and tensor.op.op_def.inputs[0].is_ref:
                    tensor = tensor.op.inputs[0]
    return found


class Scope:
    """A graph that is being written: the root, or a body whose `parent` scope lies around it.

    ran: for each operation of the source, the operations of this graph that mean it ran.
    """

    def __init__(self, raising: Raising, graph: Graph, parent: Scope | None = None) -> None:
        self.raising = raising
        self.graph = graph
        self.parent = parent
        self.ran: dict[Operation, tuple[Operation, ...]] = {}
        self._values: dict[Tensor, Found] = {}

    @property
    def root(self) -> Scope:
        """The scope around all bodies."""
        return self if self.parent is None else self.parent.root

    def inner(self, name: str) -> Scope:
        """Returns the scope of a new body."""
        return Scope(self.raising, self.raising.new_function(name, self.graph), self)

    def free_name(self, name: str) -> str:
        """`name`, or what comes nearest where it is taken."""
        chosen, number = name, 0
        while chosen in self.graph._by_name:
            number += 1
            chosen = f"{name}_{number}"
        return chosen

    # Values

    def found(self, tensor: Tensor) -> Found | None:
        """Returns what stands for a tensor of the source here or around; None for nothing."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._values.get(tensor)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def find(self, tensor: Tensor) -> Found:
        """Returns what stands for a tensor of the source."""
        found = self.found(tensor)
        if found is not None:
            return found
        raise UnimplementedError(
            f"{tensor.op.type} '{tensor.op.name}': is needed outside of the loop or branch that computes it; "
            "it must leave through Exit or Merge",
            tensor.op.name,
        )

    def set(self, tensor: Tensor, found: Found) -> None:
        """Notes what stands for a tensor; a fed one keeps the fed value."""
        if tensor not in self.raising.fed:
            self._values[tensor] = found

    def feed(self, tensor: Tensor, value: Tensor) -> None:
        """Notes the stand-in of a fed tensor."""
        self._values[tensor] = value

    def is_here(self, tensor: Tensor) -> bool:
        """Returns whether the tensor is made in this graph."""
        return tensor.op.graph is self.graph

    def local(self, tensor: Tensor) -> Found | None:
        """Returns what stands for the tensor in this scope alone."""
        return self._values.get(tensor)

    def value(self, op: Operation, i: int) -> Tensor:
        """Returns the value of input i where `op` stands; a variable is read there."""
        return self.value_of(op.inputs[i], op)

    def value_of(self, tensor: Tensor, op: Operation) -> Tensor:
        """Returns the value of a tensor where `op` stands."""
        found = self.find(tensor)
        return found if isinstance(found, Tensor) else self.read(op, tensor)

    def read(self, op: Operation, tensor: Tensor) -> Tensor:
        """Returns a new read of the variable that a tensor refers to, after its last write and
        as early as `op` may run.
        """
        reference = self.find(tensor)
        assert isinstance(reference, Reference)
        if reference.empty:  # what has no elements needs no initial value
            return self.constant(np.empty(reference.shape or (), reference.dtype.numpy), f"{op.name}/_read")
        name = self.free_name(f"{op.name}/_read")
        made = self.graph.create_op(
            registry.get("ReadVariableOp"),
            [reference.handle],
            {"dtype": reference.dtype},
            name,
            control_inputs=self.waits(op, tensor),
            device="",
            exact_name=True,
        )
        made._where = op._where
        return made.outputs[0]

    # Operations

    def waits(self, op: Operation, *references: Tensor) -> list[Operation]:
        """Returns the operations of this graph for which `op` waits by control edges, or as
        the writers of references.
        """
        before = (*op.control_inputs, *(t.op for t in references))
        return list(dict.fromkeys(n for c in before for n in self.ran.get(c, ())))

    def waits_of(self, controls: Iterable[Operation], inputs: Iterable[Tensor]) -> list[Operation]:
        """Returns the same for a loop or branch that needs all of these."""
        written = [t.op for t in inputs if isinstance(self.found(t), Reference)]
        return list(dict.fromkeys(n for c in (*controls, *written) for n in self.ran.get(c, ())))

    def wait_for_inputs(self, op: Operation) -> None:
        """Lets who waits for `op`, of which nothing is left, wait for what it waited for."""
        self.ran[op] = tuple(
            dict.fromkeys(n for s in (*(t.op for t in op.inputs), *op.control_inputs) for n in self.ran.get(s, ()))
        )

    def add(
        self, op: Operation, name: str, inputs: Sequence[Tensor], attrs: dict[str, Any], after: Sequence[Operation] = ()
    ) -> Operation:
        """Adds an operation in place of `op`."""
        if op.unsupported is not None:
            raise op.unsupported
        references = [t for t in op.inputs if isinstance(self.found(t), Reference)]
        made = self.graph.create_op(
            registry.get(name),
            inputs,
            attrs,
            self.free_name(op.name),
            control_inputs=[*self.waits(op, *references), *after],
            device=op.device,
            colocation=op.colocation,
            exact_name=True,
            defer_errors=True,
        )
        made._where = op._where
        self.ran[op] = (made,)
        return made

    def constant(self, value: Any, name: str, dtype: DType | None = None) -> Tensor:
        """Returns a Const node."""
        array, kind = to_array(value, dtype)
        made = self.graph.create_op(
            registry.get("Const"), [], {"value": array, "dtype": kind}, self.free_name(name), device="", exact_name=True
        )
        return made.outputs[0]

    def emit(self, op: Operation) -> None:
        """Adds what an operation comes to; nothing for one whose outputs are all fed."""
        if op.outputs and all(t in self.raising.fed for t in op.outputs):
            return
        if op.op_def.role in _PASSING or (op.type == "Identity" and isinstance(self.find(op.inputs[0]), Reference)):
            for tensor in op.outputs:
                self.set(tensor, self.find(op.inputs[0]))
            self.wait_for_inputs(op)
        elif op.op_def.role == "reference":
            emit_reference(self, op)
        elif op.op_def.role == "control_trigger":
            self.add(op, "NoOp", [], {})
        elif op.op_def.role == "loop_condition":
            self.set(op.outputs[0], self.value(op, 0))
            self.wait_for_inputs(op)
        else:
            self._copy(op)

    def _copy(self, op: Operation) -> None:
        args = flat_args(op.op_def.inputs, op.attrs)
        refs = [arg.name for arg in args if arg.is_ref]
        if refs:
            raise UnimplementedError(
                f"{op.type} '{op.name}': changes the variable of its input {refs[0]}; this op is not known to do so",
                op.name,
            )
        made = self.add(op, op.type, [self.value(op, i) for i in range(len(op.inputs))], op.attrs)
        made.op_def = op.op_def
        for old, new in zip(op.outputs, made.outputs, strict=True):
            if self.parent is None and new.shape.is_compatible_with(TensorShape(old.static_shape)):
                new.set_shape(old.static_shape)
            self.set(old, new)

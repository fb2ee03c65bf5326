"""GradientFunction: the body of a backward pass, which takes what it needs of the forward pass from the forward body.

What the backward pass needs is never computed again. Constants are copied, inputs of the forward body are taken from
where that body got them, and everything else becomes a further result of the forward operation. That is done when the
body is complete: gradient functions of ops also compute what nobody asked for, such as gradients of constants, and what
only these would read is not kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe_core.compiler.build import prune
from timberframe_core.compiler.state import writes_state
from timberframe_core.dtypes import DType, resource, variant
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.gradients.reverse import Gradient, backpropagate, is_differentiable
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph, unique_function_name
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.growth import inserting_before, keep_operations
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.signatures import called_functions
from timberframe_core.ops.definition.opdef import NotDifferentiable, OpDef, is_known
from timberframe_core.shapes import is_static

_FILLS = {"ZerosLike": 0, "OnesLike": 1}


class GradientFunction(FuncGraph, ABC):
    """The gradient of the function `forward`, which `op` runs; `outer` is the graph that will call it."""

    def __init__(self, outer: Graph, op: Operation, forward: FuncGraph) -> None:
        super().__init__(unique_function_name(outer, f"{forward.name}_grad", scoped=False), outer)
        self.op = op
        self.forward = self._body = forward
        self._known: dict[Tensor, Tensor] = {}
        self._measures: dict[Any, Tensor] = {}

    def create_op(
        self, op_def: OpDef, inputs: Sequence[Tensor], attrs: Mapping[str, Any], *args: Any, **rest: Any
    ) -> Operation:
        if len(inputs) == 1 and inputs[0].graph is self.forward:
            (x,) = inputs
            if op_def.shape_only and self._is_new(x):  # it runs in the forward pass, so that x need not be kept
                value = self.capture(self._measured(x, op_def.name, attrs))
                return self.apply("Identity", (value,), {"T": value.dtype}, "shape")
            if op_def.name in _FILLS and x.dtype is not variant and self._is_new(x):
                return _fill(x, _FILLS[op_def.name]).op
        return super().create_op(op_def, inputs, attrs, *args, **rest)

    def _measured(self, x: Tensor, op: str, attrs: Mapping[str, Any]) -> Tensor:
        """Returns the result of a shape op in the forward body, made once for all that use it."""
        key = x, op, tuple(sorted(attrs.items()))
        if key not in self._measures:
            self._measures[key] = self._body.apply(op, (x,), attrs).outputs[0]
        return self._measures[key]

    def _is_new(self, x: Tensor) -> bool:
        """Returns whether the backward pass does not have this value yet, nor could have it for nothing."""
        return x not in self._known and self._outside(x) is None

    def capture(self, tensor: Tensor) -> Tensor:
        """Returns the value in this graph of a tensor of the forward body or of a graph around.

        The forward body is a copy: gradient functions of a program know the tensors that were copied.
        """
        forward = self._body.own_copy(tensor)
        if forward is None:
            return super().capture(tensor)
        tensor = forward
        found = self._known.get(tensor)
        if found is None:
            with self.name_scope(None), self.control_dependencies(None):
                found = self._known[tensor] = self._value(tensor)
        return found

    def _value(self, tensor: Tensor) -> Tensor:
        op = tensor.op
        if tensor.host_value is not None and is_known(tensor.host_value) and op.op_def.role != "placeholder":
            attrs = {"value": tensor.host_value, "dtype": tensor.dtype}
            return self.apply("Const", (), attrs, op.name).outputs[0]
        if original(tensor) is not tensor:
            return self.capture(original(tensor))
        outer = self._outside(tensor)
        if outer is None and op.op_def.role == "read_variable" and not writes_state(self._body):
            outer = self._read_outside(op)
        return self._kept(tensor) if outer is None else super().capture(outer)

    def _read_outside(self, op: Operation) -> Tensor | None:
        """Returns the value of a variable that the body reads and nothing in it writes, read
        before the forward operation.
        """
        handle = self._outside(op.inputs[0])
        if handle is None:
            return None
        graph = self.op.graph
        with inserting_before(self.op):
            read = graph.apply("ReadVariableOp", (handle,), op.attrs, f"{self.op.name}/{op.name}")
        return read.outputs[0]

    def finish(self, outputs: Sequence[Tensor]) -> None:
        """Sets the outputs; removes operations and captures that neither these nor anything with an effect needs."""
        super().finish(outputs)
        keep_operations(self, set(prune([*self.outputs, *self.control_outputs], ())))
        self.captures = {outer: inner for outer, inner in self.captures.items() if self.needs(inner)}

    def needs(self, tensor: Tensor) -> bool:
        """Returns whether a tensor that the body made was still there when the body was finished."""
        return self._by_name.get(tensor.op.name) is tensor.op

    @abstractmethod
    def _outside(self, tensor: Tensor) -> Tensor | None:
        """Returns the tensor of the graph around the forward operation that has the same value, if there is one."""

    @abstractmethod
    def _kept(self, tensor: Tensor) -> Tensor:
        """Returns the value of a tensor that the forward operation must keep, where the complete body needs it."""


def original(tensor: Tensor) -> Tensor:
    """Returns the tensor that chains of Identity pass on."""
    while tensor.op.type == "Identity" and not tensor.op.control_inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def _fill(x: Tensor, value: int) -> Tensor:
    shape = list(x.static_shape or ()) if is_static(x.static_shape) else apply_op("Shape", [x])
    made: Tensor = apply_op("Fill", [shape, convert_to_tensor(value, x.dtype)])
    return made


def filled(shape: Sequence[int], dtype: DType) -> Tensor:
    """Returns zeros (false, empty strings) of a known shape."""
    value = {"string": b"", "bool": False}.get(dtype.name, 0)
    made: Tensor = apply_op("Fill", [list(shape), convert_to_tensor(value, dtype)])
    return made


def zeros_like(x: Tensor) -> Tensor:
    """Returns zeros for the gradient of a tensor that nothing flows into; of a resource
    handle, of its variable's shape.
    """
    if x.dtype is not resource:
        if x.dtype is not variant and is_static(x.static_shape):
            return filled([d or 0 for d in x.static_shape or ()], x.dtype)
        made: Tensor = apply_op("ZerosLike", [x])
        return made
    dtype, shape = x.handle or (None, None)
    if dtype is None:
        raise InvalidArgumentError(
            f"{x.op.type} '{x.op.name}': it is not known what variable the handle means; its gradient needs the dtype"
        )
    if is_static(shape):
        return filled([d or 0 for d in shape or ()], dtype)
    sizes = apply_op("VariableShape", [x], {"out_type": "int32"})
    variable_zeros: Tensor = apply_op("Fill", [sizes, convert_to_tensor(0, dtype)])
    return variable_zeros


def reachable(ys: Sequence[Tensor]) -> set[Tensor]:
    """Returns the tensors that gradients of ys may flow to."""
    found: set[Tensor] = set()
    stack = [y for y in ys if is_differentiable(y)]
    while stack:
        tensor = stack.pop()
        if tensor not in found:
            found.add(tensor)
            if not isinstance(tensor.op.gradient, NotDifferentiable):
                stack.extend(t for t in tensor.op.inputs if is_differentiable(t))
    return found


def dense_gradients(
    ys: Sequence[Tensor], xs: Sequence[Tensor], seeds: Sequence[Gradient | None]
) -> list[Tensor | None]:
    """Returns the gradients of xs, rows of a tensor (IndexedSlices) made whole, since results
    of functions are tensors.
    """
    return [None if g is None else convert_to_tensor(g) for g in backpropagate(ys, xs, seeds)]


def private_copy(op: Operation, name: str) -> FuncGraph:
    """Returns a copy of a function that `op` calls, for `op` alone, which may be changed."""
    function = next(f for f in called_functions(op) if f.name == name)
    return function.copy(unique_function_name(op.graph, name, scoped=False))


@contextmanager
def unchanged_on_error(op: Operation) -> Iterator[None]:
    """Gives the operation its old inputs, outputs and attrs again when the block ends with an error."""
    before = op.inputs, op.outputs, op.attrs
    try:
        yield
    except BaseException:
        op.inputs, op.outputs, op.attrs = before
        raise

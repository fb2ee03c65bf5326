"""Gradients of If, Case and calls: the backward function of each branch, fed with what the forward one keeps for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_core.dtypes import DType, resource, variant
from timberframe_core.errors import UnimplementedError
from timberframe_core.gradients.bodies import (
    GradientFunction,
    filled,
    original,
    private_copy,
    unchanged_on_error,
    zeros_like,
)
from timberframe_core.gradients.packs import packed
from timberframe_core.gradients.reverse import Gradient, backpropagate, is_differentiable
from timberframe_core.gradients.rows import index_dtype, put_together, taken_apart
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph, common_shapes, set_handles, share_captures, stateful_variant
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.growth import extend_operation
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.library import same_user_line
from timberframe_core.shapes import Shape, is_static


class _Forward:
    """A forward If, Case or call while its gradient is built: private copies of its functions, which may get more
    results.

    first: the position of the first input that the functions get.
    """

    def __init__(self, op: Operation, first: int) -> None:
        self.op = op
        self.first = first
        self.functions = [private_copy(op, name) for name in op.op_def.functions(op.attrs)]
        self._results = len(op.outputs)
        self._kept_shapes: list[Shape] = []
        self._places = {f: {t: i for i, t in enumerate(f.outputs)} for f in self.functions}
        self._stand_ins: dict[Any, Tensor] = {}

    def find(self, function: FuncGraph, tensor: Tensor) -> Tensor | None:
        """Returns the output of the operation that is a tensor of one function; None where there is none yet.

        There is one where the same branch was differentiated before, or gives the tensor as its result.
        """
        place = self._places[function].get(tensor)
        return None if place is None else self.op.outputs[place]

    def keep(self, function: FuncGraph, tensor: Tensor) -> Tensor:
        """Returns a new output that is a tensor of one function, of no meaning where another one runs."""
        if tensor.dtype is resource:
            raise UnimplementedError(
                f"{self.op.type} '{self.op.name}': its gradient needs the handle '{tensor.name}' that function "
                f"'{function.name}' makes; handles must come from outside",
                self.op.name,
            )
        self._places[function][tensor] = len(self.op.outputs)
        for other in self.functions:
            other.outputs.append(tensor if other is function else self._stand_in(other, tensor))
        shape = tensor.static_shape
        self._kept_shapes.append(shape if len(self.functions) == 1 or is_static(shape) else None)
        made = Tensor(self.op, len(self.op.outputs), tensor.dtype, self._kept_shapes[-1])
        made.handle = tensor.handle
        self.op.outputs = (*self.op.outputs, made)  # its attrs say so in the end, once for all outputs
        return made

    def _stand_in(self, function: FuncGraph, tensor: Tensor) -> Tensor:
        """Returns what a branch gives in place of tensors that only the other has: one for all of a dtype and shape."""
        key = function, tensor.dtype, tensor.static_shape, tensor.handle
        if key not in self._stand_ins:
            self._stand_ins[key] = _stand_in(function, tensor)
        return self._stand_ins[key]

    def finish(self) -> None:
        """Makes the operation run the copies, if they give more than the functions that they are copies of."""
        op, kept = self.op, self.op.outputs[self._results :]
        if not kept:
            return
        attrs: dict[str, Any] = {"Tout": (*op.attrs["Tout"], *(t.dtype for t in kept))}
        if "output_shapes" in op.attrs:
            known = op.attrs["output_shapes"] or (None,) * self._results
            attrs["output_shapes"] = (*known, *self._kept_shapes)
        names = [op.graph.add_function(f) for f in self.functions]
        extend_operation(op, {**attrs, **op.op_def.bind_functions(op.attrs, names)})


def _stand_in(function: FuncGraph, tensor: Tensor) -> Tensor:
    """Returns a value of the tensor's dtype. Of the same shape where that is known, so that both branches may run
    inside a device's program; else as small as can be."""
    with function.as_default(), function.name_scope(None), function.control_dependencies(None):
        if tensor.dtype is variant:
            dtype = (tensor.handle or (None, None))[0]
            made: Tensor = apply_op("EmptyTensorList", [-1, -1], {"element_dtype": dtype or tensor.dtype})
            return made
        shape = tensor.static_shape
        if is_static(shape):
            return filled([d or 0 for d in shape or ()], tensor.dtype)
        return filled([0] * max(1, len(shape or ())), tensor.dtype)


class _BranchGradient(GradientFunction):
    """The gradient of one function of an If, Case or call."""

    def __init__(self, forward: _Forward, function: FuncGraph) -> None:
        super().__init__(get_default_graph(), forward.op, function)
        self._forward = forward
        self._wanted: dict[Tensor, Tensor] = {}
        """Inputs that are not captured yet, and the tensors of the forward function that they stand for."""
        self.gradients: list[Gradient | None] = []

    def _outside(self, tensor: Tensor) -> Tensor | None:
        tensor = original(tensor)
        for inner, outer in zip(self._body.inputs, self.op.inputs[self._forward.first :], strict=True):
            if inner is tensor:
                return outer
        return None

    def _read_outside(self, op: Operation) -> Tensor | None:
        # A branch may be what keeps a variable without a value from being read. Within a loop that matters less than
        # that the loop would otherwise keep the value of every iteration.
        return super()._read_outside(op) if isinstance(self.op.graph, FuncGraph) else None

    def _kept(self, tensor: Tensor) -> Tensor:
        there = self._forward.find(self._body, tensor)
        if there is not None:
            inner = FuncGraph.capture(self, there)
            if tensor.dtype is not variant:
                inner.set_shape(tensor.static_shape)
            return inner
        inner = self.add_input(tensor.dtype, tensor.static_shape, f"kept_{tensor.op.name.rsplit('/', 1)[-1]}")
        inner.handle = tensor.handle
        self._wanted[inner] = tensor
        return inner

    def build(self, grads: Sequence[Tensor | None]) -> None:
        """Adds the gradients of the function's inputs, given those of its outputs."""
        live = [(y, g) for y, g in zip(self._body.outputs, grads, strict=False) if g is not None]
        xs = [x for x in self._body.inputs if is_differentiable(x)]
        with self.as_default(), same_user_line():
            found = dict(zip(xs, backpropagate([y for y, _ in live], xs, [g for _, g in live]), strict=True))
        self.gradients = [found.get(x) for x in self._body.inputs]

    def finish_with(self, kinds: Mapping[int, DType | None]) -> None:
        """Makes results of the gradients of these inputs, zeros where it has none, and has the forward operation keep
        what they need; kinds: dtypes of indices of rows.
        """
        results: list[Tensor] = []
        with self.as_default():
            for i, indices in kinds.items():
                gradient = self.gradients[i]
                if gradient is None:
                    gradient = zeros_like(self.op.inputs[self._forward.first + i])
                results += taken_apart(gradient, indices)
            self.finish(results)
        kept = {inner: tensor for inner, tensor in self._wanted.items() if self.needs(inner)}
        for inner, tensor in packed(self, self._body, kept).items():
            self.captures[self._forward.keep(self._body, tensor)] = inner


def branch_gradient(op: Operation, *grads: Any) -> list[Any]:
    """Returns the gradient of If or Case: the same op on the same predicate; its branches are the
    gradients of the branches.
    """
    forward = _Forward(op, 1)
    bodies, kinds = _build(forward, grads)
    made: list[Tensor] = []
    if kinds:
        made = apply_op(
            stateful_variant(op.type.removeprefix("Stateless"), bodies),
            [op.inputs[0], share_captures(bodies)],
            {
                **op.op_def.bind_functions(op.attrs, bodies),
                "Tout": [t.dtype for t in bodies[0].outputs],
                "output_shapes": common_shapes(bodies),
            },
        )
        set_handles(made, bodies)
    return [None, *_spread(op.inputs[1:], kinds, made)]


def call_gradient(op: Operation, *grads: Any) -> list[Any]:
    """Returns the gradient of a call: a call of the function's gradient."""
    forward = _Forward(op, 0)
    bodies, kinds = _build(forward, grads)
    made: list[Tensor] = []
    if kinds:
        name = "PartitionedCall" if stateful_variant("", bodies) else "StatefulPartitionedCall"
        attrs = {"f": bodies[0], "Tout": [t.dtype for t in bodies[0].outputs]}
        made = apply_op(name, [share_captures(bodies)], attrs)
        set_handles(made, bodies)
        for tensor, result in zip(made, bodies[0].outputs, strict=True):
            if tensor.dtype is not variant:
                tensor.set_shape(result.static_shape)
    return _spread(op.inputs, kinds, made)


def _build(forward: _Forward, grads: Sequence[Any]) -> tuple[list[_BranchGradient], dict[int, DType | None]]:
    """Returns the gradients of the functions, with equal results; and the positions of the inputs that these belong to.

    With each position comes the dtype of the indices where some function gives some rows, as TensorFlow does then.
    """
    given = [None if g is None else convert_to_tensor(g) for g in grads]
    bodies = [_BranchGradient(forward, f) for f in forward.functions]
    with unchanged_on_error(forward.op):
        for body in bodies:
            body.build(given)
        by_input = list(zip(*(b.gradients for b in bodies), strict=True))
        kinds = {i: index_dtype(found) for i, found in enumerate(by_input) if any(g is not None for g in found)}
        for body in bodies:
            body.finish_with(kinds)
        forward.finish()  # after all that the bodies take from it, indices of rows among it
    return bodies, kinds


def _spread(inputs: Sequence[Tensor], kinds: Mapping[int, DType | None], found: Sequence[Tensor]) -> list[Any]:
    results = iter(found)
    return [put_together(results, kinds[i], x) if i in kinds else None for i, x in enumerate(inputs)]

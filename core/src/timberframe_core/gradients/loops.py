"""Gradients of While: a loop that goes through the forward iterations backwards.

The forward loop counts its iterations, and pushes what the backward iterations need to lists, one for each such tensor;
the backward loop pops them. Its loop variables are the gradients of the forward ones, before and after each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.build import read_inputs
from timberframe_core.compiler.trips import iteration_limit
from timberframe_core.dtypes import bool_, int32, resource, variant
from timberframe_core.errors import UnimplementedError
from timberframe_core.gradients.bodies import (
    GradientFunction,
    dense_gradients,
    original,
    private_copy,
    reachable,
    unchanged_on_error,
    zeros_like,
)
from timberframe_core.gradients.reverse import is_differentiable
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph, stateful_variant, unique_function_name
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.growth import extend_operation, inserting_before
from timberframe_core.graph.operation import Operation, Tensor


class _Forward:
    """A forward loop while its gradient is built: private copies of its functions, which may get more variables."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.cond = private_copy(op, op.attrs["cond"])
        self.body = private_copy(op, op.attrs["body"])
        self._grown = False
        self.iterations = self._iterations()

    def is_invariant(self, i: int) -> bool:
        """Returns whether loop variable i is the same in every iteration."""
        return original(self.body.outputs[i]) is self.body.inputs[i]

    def add_variable(self, start: Tensor, name: str) -> int:
        """Returns one more loop variable; its next value must follow as one more result of the body."""
        for function in (self.cond, self.body):
            function.add_input(start.dtype, start.static_shape, name).handle = start.handle
        known = self.op.attrs["output_shapes"] or (None,) * len(self.op.inputs)
        attrs = {"T": (*self.op.attrs["T"], start.dtype), "output_shapes": (*known, start.static_shape)}
        (made,) = extend_operation(self.op, attrs, [start], [(start.dtype, start.static_shape)])
        made.handle = start.handle
        self._grown = True
        return len(self.op.inputs) - 1

    def _iterations(self) -> int | Tensor:
        """Returns how many iterations the loop makes: a number where constants that cannot be fed say so, else the
        output of the loop that counts them.
        """
        op = self.op
        if all(_is_fixed(op.inputs[i], None) for i in self._deciding_variables()):
            limit = iteration_limit(self.cond, op.inputs, self.body.outputs.__getitem__, {})
            if limit is not None and limit.exact:
                return limit.iterations
        position = self._find_counter()
        return op.outputs[position]

    def _deciding_variables(self) -> set[int]:
        """Returns the loop variables that the condition depends on, in any iteration."""
        found: set[int] = set()
        more = read_inputs(self.cond, self.cond.outputs)
        while more - found:
            found |= more
            more = read_inputs(self.body, [self.body.outputs[i] for i in found])
        return found

    def _find_counter(self) -> int:
        """Returns the loop variable that counts iterations from 0; it is added where there is none, or could be fed."""
        for i, (inner, after, start) in enumerate(
            zip(self.body.inputs, self.body.outputs, self.op.inputs, strict=True)
        ):
            if inner.dtype is int32 and _is_fixed(start, 0) and _adds_one(after, inner):
                return i
        graph = self.op.graph
        with inserting_before(self.op):
            zero = {"value": np.array(0, np.int32), "dtype": int32}
            start = graph.apply("Const", (), zero, f"{self.op.name}/iterations").outputs[0]
        graph.prevent_feeding(start)
        position = self.add_variable(start, "iterations")
        one = self.body.apply("Const", (), {"value": np.array(1, np.int32), "dtype": int32}, "one").outputs[0]
        following = self.body.apply("AddV2", (self.body.inputs[position], one), {"T": int32}, "turns_after")
        self.body.outputs.append(following.outputs[0])
        return position

    def accumulate(self, tensor: Tensor) -> Tensor:
        """Returns the loop's output that is the list of the tensor's values in all iterations."""
        for i, after in enumerate(self.body.outputs):
            if after.op.type == "TensorListPushBack" and after.op.inputs == (self.body.inputs[i], tensor):
                return self.op.outputs[i]
        graph = self.op.graph
        shape = tensor.static_shape
        sizes = np.array(-1 if shape is None else [-1 if d is None else d for d in shape], np.int32)
        with inserting_before(self.op):
            name = f"{self.op.name}/accumulator"
            shape_op = graph.apply("Const", (), {"value": sizes, "dtype": int32}, f"{name}/element_shape")
            limit = graph.apply(
                "Const", (), {"value": np.array(-1, np.int32), "dtype": int32}, f"{name}/max_num_elements"
            )
            given = (shape_op.outputs[0], limit.outputs[0])
            attrs = {"element_dtype": tensor.dtype, "shape_type": int32}
            empty = graph.apply("EmptyTensorList", given, attrs, name).outputs[0]
        position = self.add_variable(empty, "accumulator")
        push = (self.body.inputs[position], tensor)
        pushed = self.body.apply("TensorListPushBack", push, {"element_dtype": tensor.dtype}, "accumulator_after")
        self.body.outputs.append(pushed.outputs[0])
        return self.op.outputs[position]

    def finish(self) -> None:
        """Makes the loop run the copies, if they have more loop variables than what they are copies of."""
        if self._grown:
            functions = {"cond": self.cond, "body": self.body}
            graph = self.op.graph
            extend_operation(self.op, {a: graph.add_function(f) for a, f in functions.items()})


def _is_fixed(tensor: Tensor, value: int | None) -> bool:
    """Returns whether a tensor is a constant that no run can replace, as within functions; value: None for any."""
    op = original(tensor).op
    if op.type != "Const" or (op.graph.is_feedable(op.outputs[0]) and not op.graph.is_body):
        return False
    known = op.attrs["value"]
    return value is None or (known.shape == () and known.dtype != object and int(known) == value)


def _adds_one(after: Tensor, before: Tensor) -> bool:
    op = original(after).op
    if op.type not in ("Add", "AddV2"):
        return False
    a, b = (original(t) for t in op.inputs)
    one = b if a is before else a
    return (a is before or b is before) and _is_fixed(one, 1)


class _BodyGradient(GradientFunction):
    """One backward iteration. Its inputs: the iteration's number, gradients, lists, then what it captures."""

    def __init__(self, forward: _Forward) -> None:
        super().__init__(get_default_graph(), forward.op, forward.body)
        self._loop = forward
        self._popped: list[tuple[Tensor, Tensor, Tensor]] = []
        """Tensors of the forward body, and the lists of their values before and after the iteration."""

    def _outside(self, tensor: Tensor) -> Tensor | None:
        tensor = original(tensor)
        for i, inner in enumerate(self._body.inputs):
            if inner is tensor:
                return self.op.inputs[i] if self._loop.is_invariant(i) else None
        return None

    def _kept(self, tensor: Tensor) -> Tensor:
        if tensor.dtype is resource:
            raise UnimplementedError(
                f"{self.op.type} '{self.op.name}': its gradient needs the handle '{tensor.name}' that its body makes; "
                "handles must come from outside",
                self.op.name,
            )
        before = self.add_input(variant, (), "accumulator")
        before.handle = (tensor.dtype, tensor.static_shape)
        shape = tensor.static_shape
        sizes = np.array(-1 if shape is None else [-1 if d is None else d for d in shape], np.int32)
        given = self.apply("Const", (), {"value": sizes, "dtype": int32}, "element_shape").outputs[0]
        attrs = {"element_dtype": tensor.dtype}
        after, value = self.apply("TensorListPopBack", (before, given), attrs, "accumulator_after").outputs
        value.handle = tensor.handle
        self._popped.append((tensor, before, after))
        return value

    def finish_with(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Ends the body, of these results and the lists that they need; returns the outputs of the forward loop that
        are these lists, which are the last inputs before the captured ones.
        """
        self.finish(results)
        popped = [(tensor, before, after) for tensor, before, after in self._popped if self.needs(after)]
        self.outputs = [*self.outputs, *(after for _, _, after in popped)]
        self.inputs = [*self.inputs[: len(results)], *(before for _, before, _ in popped)]
        return [self._loop.accumulate(tensor) for tensor, _, _ in popped]


def loop_gradient(op: Operation, *grads: Any) -> list[Any]:
    """Returns the gradient of While: a While with as many iterations."""
    with unchanged_on_error(op):
        forward = _Forward(op)
        live = _live_variables(forward, grads)
        start = [_start(op, i, grads[i] if i < len(grads) else None) for i in live]
        body = _BodyGradient(forward)
        with body.as_default():
            iteration = body.add_input(int32, (), "iteration")
            given = [_gradient_input(forward, body, i, g) for i, g in zip(live, start, strict=True)]
            found = _iteration_gradients(forward, live, given)
            lists = body.finish_with([apply_op("AddV2", [iteration, 1]), *found])
        forward.finish()
    made = _add_loop(forward, body, start, lists)
    spread: list[Any] = [None] * len(op.inputs)
    for i, grad in zip(live, made, strict=True):
        spread[i] = grad
    return spread


def _live_variables(forward: _Forward, grads: Sequence[Any]) -> list[int]:
    """Returns the loop variables whose values at some iteration the results that have gradients depend on."""
    body = forward.body
    live = {i for i, g in enumerate(grads) if g is not None}
    while True:
        flows = reachable([body.outputs[i] for i in live])
        more = {i for i, x in enumerate(body.inputs) if x in flows and is_differentiable(x)} - live
        if not more:
            return sorted(live)
        live |= more


def _start(op: Operation, i: int, grad: Any) -> Tensor:
    """Returns the gradient of loop variable i after the last iteration."""
    if grad is not None:
        return convert_to_tensor(grad)
    return zeros_like(op.inputs[i] if op.inputs[i].dtype is resource else op.outputs[i])


def _gradient_input(forward: _Forward, body: _BodyGradient, i: int, start: Tensor) -> Tensor:
    """Returns the gradient of loop variable i in an iteration, of the variable's shape there;
    the last one's may differ.
    """
    variable = forward.body.inputs[i]
    shape = start.static_shape if variable.dtype is resource else variable.static_shape
    inner = body.add_input(start.dtype, shape, "grad")
    inner.handle = start.handle
    return inner


def _iteration_gradients(forward: _Forward, live: Sequence[int], given: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradients of the loop variables before an iteration, given those after it."""
    ys, xs = [forward.body.outputs[i] for i in live], [forward.body.inputs[i] for i in live]
    found = dense_gradients(ys, xs, given)
    # An iteration may change the shape of a variable, or the length of a list: zeros are those of the value before it.
    return [
        made if made is not None else zeros_like(g if x.dtype is resource else x)
        for made, g, x in zip(found, given, xs, strict=True)
    ]


def _add_loop(forward: _Forward, body: _BodyGradient, start: Sequence[Tensor], lists: Sequence[Tensor]) -> list[Tensor]:
    """Adds the backward loop; returns the gradients after its last iteration."""
    variables = [convert_to_tensor(0, int32), *start, *lists]
    iterations = forward.iterations
    captured = list(dict.fromkeys([*body.captures, *([iterations] if isinstance(iterations, Tensor) else ())]))
    inner = [body.capture(t) for t in captured]
    body.inputs = [*body.inputs[: len(variables)], *inner]
    body.outputs = [*body.outputs, *inner]
    graph = get_default_graph()
    cond = FuncGraph(unique_function_name(graph, f"{forward.cond.name}_grad", scoped=False), graph)
    for tensor in body.inputs:
        cond.add_input(tensor.dtype, tensor.static_shape, "loop_var").handle = tensor.handle
    with cond.as_default():
        limit = iterations
        if isinstance(iterations, Tensor):
            limit = cond.inputs[len(variables) + captured.index(iterations)]
        cond.finish([convert_to_tensor(apply_op("Less", [cond.inputs[0], limit]), bool_)])
    made = apply_op(
        stateful_variant("While", (cond, body)),
        [[*variables, *captured]],
        {
            "cond": cond,
            "body": body,
            "output_shapes": [t.static_shape for t in body.inputs],
            "parallel_iterations": forward.op.attrs["parallel_iterations"],
        },
    )
    return list(made)[1 : 1 + len(start)]

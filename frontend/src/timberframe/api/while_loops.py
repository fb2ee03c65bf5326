"""Loops, built from functions of the graph (`While`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from timberframe.api.composite_values import (
    SliceParts,
    SparseParts,
    assembled,
    expanded,
    fixed_invariants,
    invariants_of,
)
from timberframe.api.control_flow import unpacked
from timberframe.api.tensor_array import TensorArray, like_structure, to_flow
from timberframe_core import nest
from timberframe_core.dtypes import bool_, int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import (
    FuncGraph,
    outer_control_inputs,
    share_captures,
    stateful_variant,
    unique_function_name,
)
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import Shape, compatible, format_shape, in_common

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Replaces the loop variables by ``body(*loop_vars)`` as long as ``cond(*loop_vars)`` is true.

    loop_vars: a list, tuple or dict of values, possibly nested. shape_invariants: in the same structure, shapes that
    hold in every iteration, where a shape changes. maximum_iterations: the greatest number of iterations. back_prop and
    swap_memory are TensorFlow's and change nothing.

    Returns the loop variables after the last iteration, a single one without its list unless return_same_structure.
    Raises InvalidArgumentError where the body returns another structure, dtype or shape than it got.
    """
    if not callable(cond) or not callable(body):
        raise InvalidTypeError("tf.while_loop: cond or body is not callable; both must be functions")
    if not nest.is_nested(loop_vars) or not nest.flatten(loop_vars):
        raise InvalidTypeError(f"tf.while_loop: loop_vars is {loop_vars!r}; a non-empty list is required")
    loop_vars = expanded(loop_vars)
    loop = _Loop(cond, body, loop_vars)
    graph = get_default_graph()
    if graph.eager:
        return unpacked(loop.run(maximum_iterations), return_same_structure)
    with graph.name_scope(name or "while") as scope:
        start = [convert_to_tensor(to_flow(v), name="loop_var") for v in nest.flatten(loop_vars)]
        invariants = _invariants(loop_vars, start, shape_invariants)
        if maximum_iterations is not None:
            loop.limit = convert_to_tensor(maximum_iterations, int32, "maximum_iterations")
            start, invariants = [convert_to_tensor(0, int32), *start], [(), *invariants]
        results = _add_while(graph, scope, loop, start, invariants, parallel_iterations)
    results = results[1:] if loop.limit is not None else results
    return unpacked(assembled(like_structure(loop_vars, results)), return_same_structure)


class _Loop:
    """The user's two functions, as functions of the flat list of loop variables.

    With a limit the first loop variable counts the iterations.
    """

    def __init__(self, cond: Callable[..., Any], body: Callable[..., Any], structure: Any) -> None:
        self._cond = cond
        self._body = body
        self._structure = structure
        self.limit: Tensor | None = None

    def cond(self, flat: list[Tensor]) -> Any:
        """Returns whether there is another iteration."""
        if self.limit is None:
            return self._call(self._cond, flat)
        below = apply_op("Less", [flat[0], self.limit])
        return apply_op("LogicalAnd", [below, self._call(self._cond, flat[1:])])

    def body(self, flat: list[Tensor]) -> list[Any]:
        """Returns the next values of the loop variables."""
        if self.limit is None:
            return self._next_values(flat)
        return [apply_op("AddV2", [flat[0], 1]), *self._next_values(flat[1:])]

    def run(self, maximum_iterations: Any) -> Any:
        """Runs the loop at once; gives the loop variables in their structure."""
        flat = [convert_to_tensor(to_flow(v)) for v in nest.flatten(self._structure)]
        limit = None if maximum_iterations is None else int(maximum_iterations)
        done = 0
        while (limit is None or done < limit) and self._call(self._cond, flat):
            flat = [_following(v, t) for v, t in zip(self._next_values(flat), flat, strict=True)]
            done += 1
        return assembled(like_structure(self._structure, flat))

    def _call(self, function: Callable[..., Any], flat: list[Tensor]) -> Any:
        packed = assembled(like_structure(self._structure, flat))
        return function(packed) if isinstance(packed, dict) else function(*packed)

    def _next_values(self, flat: list[Tensor]) -> list[Any]:
        result = self._call(self._body, flat)
        result = expanded(result)
        if not nest.is_nested(result) or isinstance(result, SparseParts | SliceParts):
            result = [result]
        wanted: Any = self._structure
        if isinstance(wanted, list | tuple):
            result, wanted = (list(result) if isinstance(result, list | tuple) else [result]), list(wanted)
        try:
            nest.assert_same_structure(wanted, result, check_types=False)
        except InvalidArgumentError as e:
            raise type(e)(f"tf.while_loop: body returns another structure than the loop variables have: {e}") from None
        before, after = nest.flatten(wanted), nest.flatten(result)
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if isinstance(a, TensorArray) != isinstance(b, TensorArray):
                raise InvalidArgumentError(
                    f"tf.while_loop: loop variable {i} is {type(a).__name__} before an iteration and "
                    f"{type(b).__name__} after it; it must stay a TensorArray, or none"
                )
        return [to_flow(v) for v in after]


def _invariants(loop_vars: Any, start: Sequence[Tensor], shape_invariants: Any) -> list[Shape]:
    """For each loop variable the shape that it has in every iteration: the given one, or that of its first value."""
    if shape_invariants is None:
        return _first_shapes(loop_vars, iter(start))
    invariants = [as_shape(s) for s in _flatten_shapes(shape_invariants, loop_vars)]
    for tensor, shape in zip(start, invariants, strict=True):
        if not compatible(tensor.static_shape, shape):
            raise InvalidArgumentError(
                f"tf.while_loop: loop variable '{tensor.name}' has shape {format_shape(tensor.static_shape)}; "
                f"its shape invariant {format_shape(shape)} must hold from the start"
            )
    return invariants


def _first_shapes(structure: Any, start: Iterator[Tensor]) -> list[Shape]:
    """Returns the shapes of the first values; parts of SparseTensors and IndexedSlices may change in their lengths."""
    if isinstance(structure, SparseParts | SliceParts):
        tensors = [next(start) for _ in structure]
        return fixed_invariants(type(structure)(*tensors))
    if not nest.is_nested(structure):
        return [next(start).static_shape]
    keys: Iterable[Any] = sorted(structure) if isinstance(structure, dict) else range(len(structure))
    return [found for key in keys for found in _first_shapes(structure[key], start)]


def _flatten_shapes(shapes: Any, structure: Any) -> list[Any]:
    """Returns the shapes in the order of the structure's leaves; a list of sizes in place of a leaf is one shape."""
    if isinstance(structure, SparseParts | SliceParts):
        return invariants_of(structure, shapes)
    if not nest.is_nested(structure):
        return [() if isinstance(structure, TensorArray) else shapes]
    if len(shapes) != len(structure):
        raise InvalidArgumentError(
            f"tf.while_loop: shape_invariants has {len(shapes)} entries; {len(structure)} loop variables need one each"
        )
    keys: Iterable[Any] = sorted(structure) if isinstance(structure, dict) else range(len(structure))
    return [shape for key in keys for shape in _flatten_shapes(shapes[key], structure[key])]


def _add_while(
    graph: Graph, scope: str, loop: _Loop, start: list[Tensor], invariants: list[Shape], parallel_iterations: int
) -> list[Tensor]:
    condition = FuncGraph(unique_function_name(graph, "while_cond"), graph, own_seeds=False)
    body = FuncGraph(unique_function_name(graph, "while_body"), graph, own_seeds=False)
    for function in (condition, body):
        for tensor, shape in zip(start, invariants, strict=True):
            function.add_input(tensor.dtype, shape, "loop_var").handle = tensor.handle
    with condition.as_default():
        try:
            more = convert_to_tensor(loop.cond(list(condition.inputs)), bool_)
        except InvalidArgumentError as e:
            raise type(e)(f"tf.while_loop: cond must return a bool: {e}") from None
        if more.static_shape not in ((), None):
            raise InvalidArgumentError(
                f"tf.while_loop: cond returns shape {format_shape(more.static_shape)}; it must return a scalar"
            )
        condition.finish([more])
    with body.as_default():
        values = loop.body(list(body.inputs))
        following = [_following(v, t) for v, t in zip(values, start, strict=True)]
        _check_invariants(following, start, invariants)
        body.finish(following)
    captured = share_captures([condition, body], len(start))
    body.outputs = [*body.outputs, *body.inputs[len(start) :]]
    attrs = {
        "cond": condition,
        "body": body,
        "output_shapes": [*invariants, *(t.static_shape for t in captured)],
        "parallel_iterations": parallel_iterations,
    }
    with graph.control_dependencies(outer_control_inputs((condition, body))):
        made = apply_op(stateful_variant("While", (condition, body)), [[*start, *captured]], attrs, scope)
    return list(made)[: len(start)]


def _following(value: Any, first: Tensor) -> Tensor:
    try:
        return convert_to_tensor(value, first.dtype)
    except InvalidArgumentError as e:
        raise type(e)(
            f"tf.while_loop: loop variable '{first.name}' cannot take what the body returns for it: {e}"
        ) from None


def _check_invariants(following: Sequence[Tensor], start: Sequence[Tensor], invariants: Sequence[Shape]) -> None:
    for tensor, first, invariant in zip(following, start, invariants, strict=True):
        after = tensor.static_shape
        if in_common((invariant, after)) != invariant:
            raise InvalidArgumentError(
                f"tf.while_loop: loop variable '{first.name}' has shape {format_shape(invariant)} before an iteration "
                f"and {format_shape(after)} after it; give shape_invariants for shapes that change"
            )

"""`tf.custom_gradient`: functions that bring their own gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.gradients.tape import Tape, record
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

_TRAINABLE = "trainable_variables"  # GraphKeys.TRAINABLE_VARIABLES


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the function `f` its own gradient.

    f takes tensors and returns (result, grad_fn). grad_fn takes one gradient for each tensor of the result and returns
    one for each tensor that f was called with. Where f reads trainable variables, grad_fn must take them as the keyword
    argument `variables`, a list, and return a pair: the gradients of the tensors, and a list of those of the variables.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return _call(f, args, kwargs)

    return decorated


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    graph = get_default_graph()
    if graph.eager:
        return _call_eagerly(graph, f, args, kwargs)
    flat = [apply_op("Identity", [convert_to_tensor(a)]) for a in nest.flatten(args)]
    made = len(graph)
    result, grad_fn = f(*nest.pack_sequence_as(args, flat), **kwargs)
    results = [convert_to_tensor(r) for r in nest.flatten(result)]
    variables = _variables_read(graph, graph.get_operations()[made:])
    _check_signature(f, grad_fn, variables)
    sources = [*flat, *(_element(v) for v in variables)]

    def gradient(op: Operation, *grads: Any) -> list[Any]:
        found = _gradients(f, grad_fn, grads[: len(results)], len(flat), variables)
        return [None] * len(results) + found

    with graph.control_dependencies(None):
        outputs = apply_op("IdentityN", [[*results, *sources]])
    outputs[0].op.gradient = gradient
    return nest.pack_sequence_as(result, list(outputs)[: len(results)])


def _call_eagerly(graph: Any, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the call in eager execution, which tapes see as one operation."""
    flat = [convert_to_tensor(a) for a in nest.flatten(args)]
    watcher = Tape()
    # The tapes see what f computes, too: grad_fn may use it, and then second derivatives go through it.
    with graph.recording((*graph.tapes, watcher)):
        result, grad_fn = f(*nest.pack_sequence_as(args, flat), **kwargs)
    with graph.recording(()):
        results = [apply_op("Identity", [convert_to_tensor(r)]) for r in nest.flatten(result)]
    handles: list[Any] = list(watcher.handles)
    variables = [h.spec.variable() for h in handles]
    _check_signature(f, grad_fn, variables)

    def gradient(op: Any, *grads: Any) -> list[Any]:
        return _gradients(f, grad_fn, grads, len(flat), variables)

    if results:
        record(graph.tapes, results[0].op, [*flat, *handles], results, gradient, reads=True)
    return nest.pack_sequence_as(result, results)


def _element(variable: Any) -> Tensor:
    handle: Tensor = variable.handle
    return handle


def _variables_read(graph: Graph, operations: Sequence[Operation]) -> list[Any]:
    """Returns the trainable variables that these operations, or bodies that they run, read."""
    handles: dict[Tensor, None] = {}
    for op in operations:
        if op.op_def.role == "read_variable" or op.op_def.reads or op.op_def.function_attrs:
            handles.update((_source(t), None) for t in op.inputs if t.dtype.name == "resource")
    root = graph
    while isinstance(root, FuncGraph) and root.outer is not None:
        root = root.outer
    known = {v.handle: v for v in root.get_collection(_TRAINABLE) if hasattr(v, "handle")}
    return [known[h] for h in handles if h in known]


def _source(tensor: Tensor) -> Tensor:
    """Returns the outermost tensor that a captured handle is."""
    while isinstance(tensor.graph, FuncGraph):
        outer = tensor.graph.captured_tensor(tensor)
        if outer is None:
            break
        tensor = outer
    return tensor


def _check_signature(f: Any, grad_fn: Any, variables: Sequence[Any]) -> None:
    if not callable(grad_fn):
        raise InvalidArgumentError(
            f"tf.custom_gradient: '{_name(f)}' returns {type(grad_fn).__name__} as its second value; "
            "it must return its result and the function that makes the gradients"
        )
    parameters = inspect.signature(grad_fn).parameters.values()
    takes = any(p.name == "variables" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    if variables and not takes:
        raise InvalidArgumentError(
            f"tf.custom_gradient: '{_name(f)}' reads {len(variables)} variables ({variables[0].name}, ...) and its "
            "gradient function has no parameter for them; it must take the keyword argument 'variables'"
        )


def _name(f: Any) -> str:
    return str(getattr(f, "__name__", f))


def _gradients(
    f: Any, grad_fn: Callable[..., Any], grads: Sequence[Any], count: int, variables: Sequence[Any]
) -> list[Any]:
    """Returns what grad_fn makes, for the flat arguments and then for the variables."""
    of_variables: list[Any] = []
    if variables:
        found, of_variables = grad_fn(*grads, variables=list(variables))
        of_variables = list(of_variables)
        if len(of_variables) != len(variables):
            raise InvalidArgumentError(
                f"tf.custom_gradient: '{_name(f)}' gives {len(of_variables)} gradients of variables; it reads "
                f"{len(variables)} variables, each needs one or None"
            )
    else:
        found = grad_fn(*grads)
    flat = nest.flatten(found)
    if len(flat) != count:
        raise InvalidArgumentError(
            f"tf.custom_gradient: '{_name(f)}' gives {len(flat)} gradients; it was called with {count} tensors, "
            "each needs one or None"
        )
    return [*flat, *of_variables]

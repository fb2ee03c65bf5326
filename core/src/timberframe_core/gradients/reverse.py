"""Reverse-mode differentiation: walks a graph back from results to sources and adds each operation's gradient."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import ExitStack
from enum import Enum
from typing import Any

from timberframe_core.errors import InvalidArgumentError, NoneTypeError, WrongStateError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.graph.variable_value import handle_of
from timberframe_core.ops.definition.opdef import MissingGradient, NotDifferentiable
from timberframe_core.ops.definition.registered_gradients import gradient_named, is_registered
from timberframe_core.shapes import compatible, format_shape

Gradient = Tensor | IndexedSlices


class UnconnectedGradients(Enum):
    """What `gradients` gives for a source that the results do not depend on: None, or zeros of its shape."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """TensorFlow's ways to add up gradients; all of them are one AddN here."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """Adds nodes for the derivatives of the sum of `ys` with respect to each of `xs`.

    ys, xs: a tensor or variable, or a list of these. grad_ys: for each of ys the gradient to begin with, by default
    ones; complex ys need them. stop_gradients: tensors taken as constants. unconnected_gradients: what stands for a
    source that ys do not depend on. A gradient runs on the device that is requested for its operation; gate_gradients,
    colocate_gradients_with_ops and aggregation_method are accepted and change nothing.

    Returns one entry for each of xs: a tensor of its shape, IndexedSlices where only some rows were used, or None.
    Raises NotFoundError (a LookupError) where the path passes an op that declares no gradient.
    """
    del colocate_gradients_with_ops, gate_gradients, aggregation_method
    unconnected = _unconnected(unconnected_gradients)
    graph = get_default_graph()
    if graph.eager:
        raise WrongStateError("tf.gradients: there is no graph in eager execution; tf.GradientTape is its way")
    for what, given in (("ys", ys), ("xs", xs)):
        if given is None or (isinstance(given, list | tuple) and any(x is None for x in given)):
            raise NoneTypeError(f"tf.gradients: {what} is {given}; tensors or variables are required")
    results, sources = [convert_to_tensor(y) for y in _as_list(ys)], [_element(x) for x in _as_list(xs)]
    sources = [graph.capture_value(x, "tf.gradients") if x.eager else x for x in sources]
    stops = {_element(t) for t in _as_list(stop_gradients)}
    with graph.name_scope(name):
        seeds = _seeds(results, _as_list(grad_ys))
        found = _Backward(results, set(sources), stops).run(seeds)
        made = [found.get(_within(x, graph)) for x in sources]
        if unconnected is UnconnectedGradients.ZERO:
            made = [_zeros(x) if g is None else g for g, x in zip(made, sources, strict=True)]
    return made


def _unconnected(choice: UnconnectedGradients | str) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(choice)
    except ValueError:
        known = " or ".join(repr(u.value) for u in UnconnectedGradients)
        raise InvalidArgumentError(
            f"tf.gradients: unconnected_gradients is {choice!r}; it must be {known}, or a tf.UnconnectedGradients"
        ) from None


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]


def _element(value: Any) -> Tensor:
    """Returns the tensor to differentiate: of a variable its handle, so that all its reads count."""
    handle = getattr(value, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    tensor = convert_to_tensor(value)
    handle = handle_of(tensor)
    return tensor if handle is None else handle


def _within(tensor: Tensor, graph: Graph) -> Tensor:
    """Returns the tensor itself; of one that a function body has captured, the original."""
    return _source(tensor) if tensor.graph is not graph else tensor


def is_differentiable(tensor: Tensor) -> bool:
    """Returns whether gradients flow through a tensor: through lists and variables, unless they
    are known to hold integers.
    """
    dtype = tensor.dtype
    if dtype.base_dtype.name in ("resource", "variant"):
        held = None if tensor.handle is None else tensor.handle[0]
        return held is None or held.is_floating or held.is_complex or held.base_dtype.name in ("resource", "variant")
    return dtype.is_floating or dtype.is_complex


def _seeds(ys: Sequence[Tensor], given: Sequence[Any]) -> list[Gradient | None]:
    if given and len(given) != len(ys):
        raise InvalidArgumentError(
            f"tf.gradients: grad_ys has {len(given)} entries; ys has {len(ys)}, each needs one or None"
        )
    return [_seed(y, g) for y, g in zip(ys, given or [None] * len(ys), strict=True)]


def _seed(y: Tensor, given: Any) -> Gradient | None:
    if not is_differentiable(y):
        return None
    if given is None:
        if y.dtype.is_complex:
            raise InvalidArgumentError(
                f"tf.gradients: y '{y.name}' is {y.dtype.name}; complex results need their gradients in grad_ys"
            )
        ones: Tensor = apply_op("OnesLike", [y], name="grad_ys")
        return ones
    if isinstance(given, IndexedSlices):
        return given
    seed = convert_to_tensor(given, y.dtype)
    if compatible(seed.static_shape, y.static_shape):
        return seed
    sizes = {TensorShape(t.static_shape).num_elements() for t in (seed, y)}
    if len(sizes - {None}) == 2:
        raise InvalidArgumentError(
            f"tf.gradients: the gradient given for '{y.name}' has shape {format_shape(seed.static_shape)}; "
            f"it must have as many elements as the result, {format_shape(y.static_shape)}"
        )
    reshaped: Tensor = apply_op("Reshape", [seed, apply_op("Shape", [y])])
    return reshaped


def _zeros(x: Tensor) -> Tensor:
    if x.handle is not None:
        x = apply_op("ReadVariableOp", [x], {"dtype": x.handle[0]})
    zeros: Tensor = apply_op("ZerosLike", [x])
    return zeros


def _source(tensor: Tensor) -> Tensor:
    """Returns the outer tensor that an input of a function body stands for, however many bodies lie between."""
    graph = tensor.graph
    while isinstance(graph, FuncGraph) and tensor.op.op_def.role == "placeholder":
        outer = graph.captured_tensor(tensor)
        if outer is None:
            break
        tensor, graph = outer, outer.graph
    return tensor


class _Backward:
    """One walk from results to sources. `arrived` holds, for each tensor, the gradients that reached it so far."""

    def __init__(self, ys: Sequence[Tensor], xs: set[Tensor], stops: Container[Tensor]) -> None:
        self.ys = ys
        self.xs = xs | {_source(x) for x in xs}
        self.stops = stops
        self.arrived: dict[Tensor, list[Gradient]] = {}
        order = self._order()
        self.connected = self._connected(order)
        self.order = order

    def _follow(self, tensor: Tensor) -> Tensor:
        """Returns the tensor to walk on to: a captured input of a body gives the original
        unless it is a source itself.
        """
        return tensor if tensor in self.xs else _source(tensor)

    def _inputs(self, op: Operation) -> Iterable[Tensor]:
        return (self._follow(t) for t in op.inputs)

    def _order(self) -> list[Operation]:
        """Returns the operations that ys depend on, each after its inputs; nothing that only a stop depends on."""
        order: list[Operation] = []
        seen: set[Operation] = set()
        for y in self.ys:
            y = self._follow(y)
            if y in self.stops:
                continue
            stack: list[tuple[Operation, bool]] = [(y.op, False)]
            while stack:
                op, done = stack.pop()
                if done:
                    order.append(op)
                elif op not in seen:
                    seen.add(op)
                    stack.append((op, True))
                    stack.extend((t.op, False) for t in self._inputs(op) if t not in self.stops)
        return order

    def _connected(self, order: Sequence[Operation]) -> set[Operation]:
        """Returns those among them from which a path of differentiable tensors leads to a source."""
        connected: set[Operation] = set()
        for op in order:
            stops = isinstance(op.gradient, NotDifferentiable)
            if not stops and any(self._wanted(t, connected) for t in self._inputs(op)):
                connected.add(op)
        return connected

    def _wanted(self, tensor: Tensor, connected: set[Operation]) -> bool:
        """Returns whether a gradient of this tensor is of use."""
        if not is_differentiable(tensor):
            return False
        return tensor in self.xs or (tensor not in self.stops and tensor.op in connected)

    def run(self, seeds: Sequence[Gradient | None]) -> dict[Tensor, Gradient]:
        """Adds the gradients; returns those of the sources."""
        for y, seed in zip(self.ys, seeds, strict=True):
            if seed is not None:
                self.arrived.setdefault(self._follow(y), []).append(seed)
        for op in reversed(self.order):
            if op in self.connected:
                self._pass_back(op)
        return {x: total for x in self.xs if (total := total_gradient(self.arrived, x)) is not None}

    def _pass_back(self, op: Operation) -> None:
        totals = [None if t in self.stops else total_gradient(self.arrived, t) for t in op.outputs]
        if all(g is None for g in totals) or isinstance(op.gradient, NotDifferentiable):
            return
        with ExitStack() as scopes:
            scopes.enter_context(get_default_graph().name_scope(f"{op.name}_grad"))
            if op.device:
                scopes.enter_context(get_default_graph().device(op.device))
            made = input_gradients(op, totals)
        for tensor, grad in zip(op.inputs, made, strict=True):
            target = self._follow(tensor)
            if grad is not None and self._wanted(target, self.connected):
                self.arrived.setdefault(target, []).append(checked_gradient(op, tensor, grad))


class _Others:
    """The tensors that a container does not have."""

    def __init__(self, container: Container[Tensor]) -> None:
        self._container = container

    def __contains__(self, tensor: object) -> bool:
        return tensor not in self._container


def gradients_through(
    ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Any] | None, recorded: Container[Tensor]
) -> list[Gradient | None]:
    """Returns gradients; results of operations that are not recorded count as constants, but for the sources."""
    graph = get_default_graph()
    with graph.name_scope("gradients"):
        found = _Backward(ys, set(xs), _Others(recorded)).run(_seeds(ys, grad_ys or []))
    return [found.get(_within(x, graph)) for x in xs]


def backpropagate(
    ys: Sequence[Tensor], xs: Sequence[Tensor], seeds: Sequence[Gradient | None]
) -> list[Gradient | None]:
    """Returns the gradients of xs, given those of ys, added to the current graph, which may be
    another one than that of ys.
    """
    found = _Backward(ys, set(xs), set()).run(seeds)
    return [found.get(x) for x in xs]


def input_gradients(op: Any, totals: Sequence[Gradient | None]) -> list[Any]:
    """Returns what the gradient function of an operation, or of the record of one, makes of the
    gradients of its outputs.
    """
    gradient = op.gradient
    if (gradient is None or isinstance(gradient, MissingGradient)) and is_registered(op.type):
        gradient = gradient_named(op.type)
    if gradient is None:
        gradient = MissingGradient()
    given = _given(op, totals)
    passed_on = {g: total for g, total in zip(given, totals, strict=True) if isinstance(total, IndexedSlices)}
    made = [passed_on.get(g, g) if isinstance(g, Tensor) else g for g in gradient(op, *given)]
    if len(made) != len(op.inputs):
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': its gradient function returned {len(made)} gradients; the operation has "
            f"{len(op.inputs)} inputs, each needs one or None",
            op.name,
        )
    return made


def _given(op: Any, totals: Sequence[Gradient | None]) -> Sequence[Any]:
    """Returns the gradients of the outputs in the form that the gradient function of the operation takes."""
    if not (op.op_def.gradient_takes_slices and op.gradient is op.op_def.gradient):
        totals = [None if g is None else convert_to_tensor(g) for g in totals]
    if _runs_functions(op):
        return totals
    return [_output_gradient(t, g) for t, g in zip(op.outputs, totals, strict=True)]


def _runs_functions(op: Any) -> bool:
    """Returns whether the operation calls functions; its gradient is given None for outputs without one."""
    return bool(op.op_def.function_attrs)


def _output_gradient(output: Tensor, total: Gradient | None) -> Any:
    if total is not None or not (output.dtype.is_floating or output.dtype.is_complex):
        return total
    return apply_op("ZerosLike", [output])


def checked_gradient(op: Any, source: Tensor, grad: Any) -> Gradient:
    """Returns a gradient whose shape suits its input, with all that is known of that shape."""
    if isinstance(grad, IndexedSlices):
        return grad
    tensor = convert_to_tensor(grad)
    expected = source.handle[1] if source.dtype.name == "resource" and source.handle else source.static_shape
    if not compatible(tensor.static_shape, expected):
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': its gradient function returned shape {format_shape(tensor.static_shape)} for "
            f"input '{source.name}'; it must be the input's, {format_shape(expected)}",
            op.name,
        )
    if not tensor.eager and tensor.dtype.name not in ("resource", "variant"):
        tensor.set_shape(expected)
    return tensor


def total_gradient(arrived: dict[Tensor, list[Gradient]], tensor: Tensor) -> Gradient | None:
    """Returns the sum of all gradients that arrived at a tensor; kept, so that they are added up once."""
    parts = arrived.get(tensor)
    if not parts:
        return None
    if len(parts) > 1:
        parts[:] = [_sum_of_gradients(parts)]
    return parts[0]


def _sum_of_gradients(parts: Sequence[Gradient]) -> Gradient:
    """Returns the sum of gradients: rows side by side where all are IndexedSlices, else dense."""
    if not all(isinstance(p, IndexedSlices) for p in parts):
        total: Tensor = apply_op("AddN", [[convert_to_tensor(p) for p in parts]])
        return total
    slices = [p for p in parts if isinstance(p, IndexedSlices)]
    indices = [s.indices for s in slices]
    if len({i.dtype for i in indices}) > 1:
        indices = [apply_op("Cast", [i], {"DstT": "int64"}) for i in indices]
    values = apply_op("ConcatV2", [[s.values for s in slices], 0])
    return IndexedSlices(values, apply_op("ConcatV2", [indices, 0]), slices[0].dense_shape)

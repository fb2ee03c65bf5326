"""Branches and loops, built from functions of the graph (`If`, `Case`, `While`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from timberframe.api.tensor_array import TensorArray, like_structure, to_flow
from timberframe_core import nest
from timberframe_core.dtypes import bool_, int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import (
    FuncGraph,
    common_shapes,
    outer_control_inputs,
    set_handles,
    share_captures,
    stateful_variant,
    unique_function_name,
)
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import Shape, compatible, format_shape, in_common

__all__ = ["case", "cond", "switch_case", "while_loop"]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """What `true_fn()` returns where the scalar `pred` is true, else what `false_fn()` returns.

    Only the operations made inside the chosen function run. Both must return tensors of the same dtypes in the same
    structure; a list or tuple of one tensor comes back as that tensor unless `strict`. fn1 and fn2 are TensorFlow's
    older names of the functions.
    """
    true_fn, false_fn = fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn
    if not callable(true_fn) or not callable(false_fn):
        raise InvalidTypeError("tf.cond: a branch is not callable; true_fn and false_fn must be functions")
    graph = get_default_graph()
    if graph.eager:
        return _unpacked(true_fn() if pred else false_fn(), strict)
    if isinstance(pred, bool):
        raise InvalidTypeError(f"tf.cond: pred is the Python bool {pred}; a tensor is required")
    with graph.name_scope(name or "cond") as scope:
        condition = convert_to_tensor(pred, bool_, "pred")
        if condition.static_shape:
            shape = format_shape(condition.static_shape)
            raise InvalidArgumentError(f"tf.cond: pred '{condition.name}' has shape {shape}; a scalar is required")
        branches = _Branches("tf.cond", scope, {"true_fn": true_fn, "false_fn": false_fn}, ("cond_true", "cond_false"))
        then, otherwise = branches.bodies
        packed = branches.add("If", condition, {"then_branch": then, "else_branch": otherwise})
    return _unpacked(packed, strict)


def _unpacked(result: Any, strict: bool) -> Any:
    """A list or tuple of one as what is in it, unless strict."""
    return result[0] if isinstance(result, list | tuple) and len(result) == 1 and not strict else result


class _Branches:
    """The recorded functions that an If or Case chooses from; their results must have the same structure and dtypes.

    caller: the tf function, for errors. scope: that of the node, which gets its name. functions: by the caller's names
    for them. labels: parts of the names of bodies.
    """

    def __init__(
        self, caller: str, scope: str, functions: Mapping[str, Callable[[], Any]], labels: Sequence[str]
    ) -> None:
        self.caller = caller
        self._scope = scope
        self._names = tuple(functions)
        self._graph = get_default_graph()
        self.bodies = [
            FuncGraph(unique_function_name(self._graph, label), self._graph, own_seeds=False) for label in labels
        ]
        self._structures = [
            _trace(caller, body, function, ()) for body, function in zip(self.bodies, functions.values(), strict=True)
        ]
        if any(len(body.outputs) == 1 and body.outputs[0].dtype is bool_ for body in self.bodies):
            self._structures = [
                _operation_as_tensor(body) if structure is _OPERATION else structure
                for body, structure in zip(self.bodies, self._structures, strict=True)
            ]
        self._check()

    def _check(self) -> None:
        first, name = self.bodies[0], self._names[0]
        for other, structure, other_name in zip(self.bodies[1:], self._structures[1:], self._names[1:], strict=True):
            try:
                nest.assert_same_structure(self._structures[0], structure, check_types=False)
            except InvalidArgumentError as e:
                raise type(e)(f"{self.caller}: {name} and {other_name} return different structures: {e}") from None
            for i, (a, b) in enumerate(zip(first.outputs, other.outputs, strict=True)):
                if a.dtype is not b.dtype:
                    raise InvalidTypeError(
                        f"{self.caller}: result {i} is {a.dtype.name} in {name} and {b.dtype.name} in {other_name}; "
                        "dtypes must be equal"
                    )

    def add(self, op: str, selector: Tensor, functions: Mapping[str, Any]) -> Any:
        """Adds the node; gives its results in the structure of the functions' own, or the node where there are none."""
        captured, first = share_captures(self.bodies), self.bodies[0]
        attrs = {**functions, "Tout": [t.dtype for t in first.outputs], "output_shapes": common_shapes(self.bodies)}
        with self._graph.control_dependencies(outer_control_inputs(self.bodies)):
            made = list(apply_op(stateful_variant(op, self.bodies), [selector, captured], attrs, self._scope))
        set_handles(made, self.bodies)
        if not made:
            return self._graph.get_operation_by_name(self._scope[:-1])
        return like_structure(self._structures[0], made)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first true predicate returns, or else what `default` returns.

    pred_fn_pairs: pairs of a scalar tensor and a function, or a dict of these. default: without one, some predicate
    must be true. exclusive: at most one predicate may be true. What must hold is checked when the graph runs.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs and default is None:
        raise InvalidArgumentError("tf.case: no predicate and no default given; at least one is required")
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not callable(pair[1]):
            raise InvalidTypeError(f"tf.case: {pair!r} among pred_fn_pairs; each must be a predicate and a function")
    with get_default_graph().name_scope(name):
        predicates = [convert_to_tensor(pred, bool_, "pred") for pred, _ in pairs]
        functions = [fn for _, fn in pairs]
        checks = []
        if exclusive and len(pairs) > 1:
            checks.append(_assert_count(predicates, "LessEqual", "at most one of them may be true (exclusive)"))
        if default is None:
            checks.append(_assert_count(predicates, "GreaterEqual", "one must be, since there is no default"))
            default = functions.pop()
            predicates.pop()
        chosen = default
        for pred, fn in zip(reversed(predicates), reversed(functions), strict=True):
            chosen = _Choice(pred, fn, chosen, strict)
        with get_default_graph().control_dependencies(checks):
            return _after(checks, chosen())


def _assert_count(predicates: Sequence[Tensor], comparison: str, required: str) -> Operation:
    """Checks how many predicates are true."""
    packed = apply_op("Pack", [list(predicates)], {"axis": 0})
    count = apply_op("Sum", [apply_op("Cast", [packed], {"DstT": int32}), 0])
    names = ", ".join(p.name for p in predicates)
    data = [f"predicates {names} are", packed, f"; {required}"]
    made: Operation = apply_op("Assert", [apply_op(comparison, [count, 1]), data])
    return made


def _after(checks: Sequence[Operation], result: Any) -> Any:
    """The result, which waits for the checks."""
    if not checks:
        return result
    leaves = nest.flatten(result)
    waiting = [apply_op("Identity", [leaf]) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return nest.pack_sequence_as(result, waiting)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """What the function number `branch_index` returns; what `default` (the last function) returns for other numbers.

    branch_index: a scalar int32 tensor. branch_fns: functions, or a dict or pairs of the numbers from 0 and functions.
    Only the operations made inside the chosen function run. All must return tensors of the same dtypes in the same
    structure.
    """
    functions = _numbered(branch_fns)
    names = [f"branch_fns[{i}]" for i in range(len(functions))]
    if default is not None:
        functions, names = [*functions, default], [*names, "default"]
    if get_default_graph().eager:
        chosen = int(convert_to_tensor(branch_index, int32))  # type: ignore[call-overload]  # an EagerTensor
        return functions[chosen if 0 <= chosen < len(functions) else -1]()
    with get_default_graph().name_scope(name), get_default_graph().name_scope("indexed_case") as scope:
        index = convert_to_tensor(branch_index, int32, "branch_index")
        labels = [f"branch{i}" for i in range(len(functions))]
        branches = _Branches("tf.switch_case", scope, dict(zip(names, functions, strict=True)), labels)
        return branches.add("Case", index, {"branches": branches.bodies})


def _numbered(branch_fns: Any) -> list[Callable[[], Any]]:
    """The functions of tf.switch_case by number."""
    entries = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    pairs = [e if isinstance(e, list | tuple) else (i, e) for i, e in enumerate(entries)]
    if not pairs or not all(len(p) == 2 and isinstance(p[0], int) and callable(p[1]) for p in pairs):
        raise InvalidTypeError(
            f"tf.switch_case: branch_fns is {branch_fns!r}; functions, or pairs of an int and a function, are required"
        )
    numbers = [i for i, _ in pairs]
    if sorted(numbers) != list(range(len(numbers))):
        raise InvalidArgumentError(
            f"tf.switch_case: branch numbers are {numbers}; each from 0 to {len(numbers) - 1} must be there once"
        )
    return [fn for _, fn in sorted(pairs, key=lambda pair: pair[0])]


class _Choice:
    """One predicate of `case` and those after it."""

    def __init__(self, pred: Any, fn: Callable[[], Any], otherwise: Callable[[], Any], strict: bool) -> None:
        self.pred, self.fn, self.otherwise, self.strict = pred, fn, otherwise, strict

    def __call__(self) -> Any:
        return cond(self.pred, self.fn, self.otherwise, self.strict)


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
    loop = _Loop(cond, body, loop_vars)
    graph = get_default_graph()
    if graph.eager:
        return _unpacked(loop.run(maximum_iterations), return_same_structure)
    with graph.name_scope(name or "while") as scope:
        start = [convert_to_tensor(to_flow(v), name="loop_var") for v in nest.flatten(loop_vars)]
        invariants = _invariants(loop_vars, start, shape_invariants)
        if maximum_iterations is not None:
            loop.limit = convert_to_tensor(maximum_iterations, int32, "maximum_iterations")
            start, invariants = [convert_to_tensor(0, int32), *start], [(), *invariants]
        results = _add_while(graph, scope, loop, start, invariants, parallel_iterations)
    results = results[1:] if loop.limit is not None else results
    return _unpacked(like_structure(loop_vars, results), return_same_structure)


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
        """Whether there is another iteration."""
        if self.limit is None:
            return self._call(self._cond, flat)
        below = apply_op("Less", [flat[0], self.limit])
        return apply_op("LogicalAnd", [below, self._call(self._cond, flat[1:])])

    def body(self, flat: list[Tensor]) -> list[Any]:
        """The next values of the loop variables."""
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
        return like_structure(self._structure, flat)

    def _call(self, function: Callable[..., Any], flat: list[Tensor]) -> Any:
        packed = like_structure(self._structure, flat)
        return function(packed) if isinstance(packed, dict) else function(*packed)

    def _next_values(self, flat: list[Tensor]) -> list[Any]:
        result = self._call(self._body, flat)
        if not nest.is_nested(result):
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
        return [t.static_shape for t in start]
    invariants = [as_shape(s) for s in _flatten_shapes(shape_invariants, loop_vars)]
    for tensor, shape in zip(start, invariants, strict=True):
        if not compatible(tensor.static_shape, shape):
            raise InvalidArgumentError(
                f"tf.while_loop: loop variable '{tensor.name}' has shape {format_shape(tensor.static_shape)}; "
                f"its shape invariant {format_shape(shape)} must hold from the start"
            )
    return invariants


def _flatten_shapes(shapes: Any, structure: Any) -> list[Any]:
    """The shapes in the order of the structure's leaves; a list of sizes in place of a leaf is one shape."""
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


# Function bodies


_OPERATION: tuple[Any, ...] = ()
"""The structure of what a function returns that returns an operation."""


def _operation_as_tensor(body: FuncGraph) -> Tensor:
    """Has a body that returned an operation return a tensor, true when all has run, since another body returns one."""
    with body.as_default():
        done = _true_after(*body.control_outputs)
        body.finish([done])
    return done


def _true_after(*ops: Operation) -> Tensor:
    with get_default_graph().control_dependencies(ops):
        made: Tensor = apply_op("Identity", [convert_to_tensor(True)])
    return made


def _trace(caller: str, body: FuncGraph, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Records what the function makes; returns the structure of its result, _OPERATION for an operation, [] for None.

    Operations beside others become tensors, true when they have run.
    """
    with body.as_default():
        result = function(*arguments)
        leaves = nest.flatten(result)
        if len(leaves) > 1:
            leaves = [_true_after(leaf) if isinstance(leaf, Operation) else leaf for leaf in leaves]
            result = nest.pack_sequence_as(result, leaves)
        tensors = [
            convert_to_tensor(to_flow(leaf)) for leaf in leaves if leaf is not None and not isinstance(leaf, Operation)
        ]
        body.finish(tensors)
    if len(tensors) == len(leaves):
        return result
    if tensors:
        raise InvalidArgumentError(f"{caller}: a branch returns tensors and None; it must return tensors alone")
    return _OPERATION if leaves[0] is not None else []

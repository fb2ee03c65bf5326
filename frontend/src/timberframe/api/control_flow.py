"""Branches, built from functions of the graph (`If`, `Case`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from timberframe.api.composite_values import assembled, expanded_alike
from timberframe.api.tensor_array import like_structure, to_flow
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
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import format_shape

__all__ = ["case", "cond", "switch_case"]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Returns what `true_fn()` returns where the scalar `pred` is true, else what `false_fn()` returns.

    Only the operations made inside the chosen function run. Both must return tensors of the same dtypes in the same
    structure; a list or tuple of one tensor comes back as that tensor unless `strict`. fn1 and fn2 are TensorFlow's
    older names of the functions.
    """
    true_fn, false_fn = fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn
    if not callable(true_fn) or not callable(false_fn):
        raise InvalidTypeError("tf.cond: a branch is not callable; true_fn and false_fn must be functions")
    graph = get_default_graph()
    if graph.eager:
        return unpacked(true_fn() if pred else false_fn(), strict)
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
    return unpacked(packed, strict)


def unpacked(result: Any, strict: bool) -> Any:
    """Returns a list or tuple of one as what is in it, unless strict."""
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
        results = []
        for body, function in zip(self.bodies, functions.values(), strict=True):
            with body.as_default():
                results.append(function())
        self._structures = [
            _finished(caller, body, result) for body, result in zip(self.bodies, expanded_alike(results), strict=True)
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
        return assembled(like_structure(self._structures[0], made))


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Returns what the function of the first true predicate returns, or else what `default` returns.

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
            chosen = partial(cond, pred, fn, chosen, strict)
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
    """Returns the result, which waits for the checks."""
    if not checks:
        return result
    leaves = nest.flatten(result)
    waiting = [apply_op("Identity", [leaf]) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return nest.pack_sequence_as(result, waiting)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """Returns what the function number `branch_index` returns; what `default` (the last function)
    returns for other numbers.

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
    """Returns the functions of tf.switch_case by number."""
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


# Function bodies


_OPERATION: tuple[Any, ...] = ()
"""The structure of what a function returns that returns an operation."""


def _operation_as_tensor(body: FuncGraph) -> Tensor:
    """Makes a body that returned an operation return a tensor, true when all has run, since
    another body returns one.
    """
    with body.as_default():
        done = _true_after(*body.control_outputs)
        body.finish([done])
    return done


def _true_after(*ops: Operation) -> Tensor:
    with get_default_graph().control_dependencies(ops):
        made: Tensor = apply_op("Identity", [convert_to_tensor(True)])
    return made


def _finished(caller: str, body: FuncGraph, result: Any) -> Any:
    """Ends a body with the result of its function; returns the structure of that, _OPERATION for an operation, [] for
    None.

    Operations beside others become tensors, true when they have run.
    """
    with body.as_default():
        leaves = nest.flatten(result)
        if len(leaves) > 1:
            leaves = [_true_after(leaf) if isinstance(leaf, Operation) else leaf for leaf in leaves]
            result = nest.pack_sequence_as(result, leaves)
        tensors = [
            convert_to_tensor(to_flow(leaf)) for leaf in leaves if leaf is not None and not isinstance(leaf, Operation)
        ]
        with body.control_dependencies([leaf for leaf in leaves if isinstance(leaf, Operation)]):
            body.finish(tensors)  # the node waits for an operation made outside of the body
    if len(tensors) == len(leaves):
        return result
    if tensors:
        raise InvalidArgumentError(f"{caller}: a branch returns tensors and None; it must return tensors alone")
    return _OPERATION if leaves[0] is not None else []

"""Operations and tensors of a graph, chosen by their names and by the ways that lead to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from timberframe_core import nest
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor

__all__ = [
    "ControlOutputs", "SubGraphView", "filter_ops", "filter_ops_from_regex", "filter_ts", "filter_ts_from_regex",
    "get_backward_walk_ops", "get_consuming_ops", "get_forward_walk_ops", "get_generating_ops", "get_name_scope_ops",
    "get_ops_ios", "get_tensors", "get_walks_intersection_ops", "get_within_boundary_ops", "make_list_of_op",
    "make_list_of_t", "make_view", "select_ops", "select_ts", "sgv",
]  # fmt: skip


class SubGraphView:
    """Some operations of a graph, with the tensors that go in and those that come out.

    inputs: tensors that they use and do not make. outputs: those that they make and that others, or nobody, use.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = make_list_of_op(inside_ops)
        self._passthrough = make_list_of_t(passthrough_ts)
        inside = set(self._ops)
        used = dict.fromkeys(t for op in self._ops for t in op.inputs if t.op not in inside)
        self._inputs = [*used, *(t for t in self._passthrough if t not in used)]
        users = _consumers(self._ops[0].graph) if self._ops else {}
        made = [t for op in self._ops for t in op.outputs]
        self._outputs = [t for t in made if not users.get(t) or any(u not in inside for u in users[t])]
        self._outputs += self._passthrough

    @property
    def ops(self) -> list[Operation]:
        """The operations."""
        return list(self._ops)

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that go in."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that come out."""
        return list(self._outputs)

    @property
    def graph(self) -> Graph | None:
        """The graph; None where there is no operation."""
        return self._ops[0].graph if self._ops else None

    def __contains__(self, op: object) -> bool:
        return op in self._ops

    def __len__(self) -> int:
        return len(self._ops)


class ControlOutputs:
    """The operations that wait for another one."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.update()

    def update(self) -> ControlOutputs:
        """Looks through the graph again; returns itself."""
        self._waiting: dict[Operation, list[Operation]] = {}
        for op in self._graph.get_operations():
            for source in op.control_inputs:
                self._waiting.setdefault(source, []).append(op)
        return self

    def get(self, op: Operation) -> list[Operation]:
        """Returns the operations that wait for this one."""
        return list(self._waiting.get(op, ()))

    def get_all(self) -> dict[Operation, list[Operation]]:
        """Returns those of all operations that others wait for."""
        return dict(self._waiting)


def make_list_of_op(ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False) -> list[Any]:
    """Returns the operations of a graph, of a view, or of a structure. ignore_ts: leaves tensors out."""
    del check_graph
    if isinstance(ops, Graph) and allow_graph:
        return list(ops.get_operations())
    if isinstance(ops, SubGraphView):
        return ops.ops
    found = [x for x in nest.flatten(_as_list(ops)) if not (ignore_ts and isinstance(x, Tensor))]
    return _all_of(found, Operation, "operations")


def make_list_of_t(ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False) -> list[Any]:
    """Returns the tensors of a graph, or of a structure. ignore_ops: leaves operations out."""
    del check_graph
    if isinstance(ts, Graph) and allow_graph:
        return get_tensors(ts)
    found = [x for x in nest.flatten(_as_list(ts)) if not (ignore_ops and isinstance(x, Operation))]
    return _all_of(found, Tensor, "tensors")


def _as_list(given: Any) -> Any:
    return list(given) if isinstance(given, set | frozenset) else given


def _all_of(found: list[Any], kind: type, what: str) -> list[Any]:
    for x in found:
        if not isinstance(x, kind):
            raise InvalidTypeError(f"graph_editor: {x!r} is given; {what} are required")
    return found


def get_tensors(graph: Graph) -> list[Tensor]:
    """Returns all tensors of a graph."""
    return [t for op in graph.get_operations() for t in op.outputs]


def filter_ops(ops: Any, positive_filter: Callable[[Any], bool] | bool) -> list[Operation]:
    """Returns the operations for which a function is true; all of them for True."""
    found = make_list_of_op(ops)
    return (
        found if positive_filter is True else [op for op in found if callable(positive_filter) and positive_filter(op)]
    )


def filter_ops_from_regex(ops: Any, regex: str) -> list[Operation]:
    """Returns the operations in whose names a regular expression is found."""
    pattern = re.compile(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name) is not None)


def filter_ts(ops: Any, positive_filter: Callable[[Any], bool] | bool = True) -> list[Tensor]:
    """Returns the tensors that operations make and for which a function is true; all of them for True."""
    found = [t for op in make_list_of_op(ops) for t in op.outputs]
    return found if positive_filter is True else [t for t in found if callable(positive_filter) and positive_filter(t)]


def filter_ts_from_regex(ops: Any, regex: str) -> list[Tensor]:
    """Returns the tensors that operations make in whose names a regular expression is found."""
    pattern = re.compile(regex)
    return filter_ts(ops, lambda t: pattern.search(t.name) is not None)


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """Returns the operations of a name scope, the one of its name included."""
    name = scope.rstrip("/")
    return filter_ops(ops, lambda op: not name or op.name == name or op.name.startswith(f"{name}/"))


def select_ops(*args: Any, graph: Graph | None = None, positive_filter: Any = None, **_: Any) -> list[Operation]:
    """Returns operations: those that are given, and those in whose names regular expressions are found."""
    found: list[Operation] = []
    for arg in args:
        if isinstance(arg, str):
            found += filter_ops_from_regex(_graph_for(arg, graph), arg.removeprefix("(?#ops)"))
        else:
            found += make_list_of_op(arg, ignore_ts=True)
    chosen = list(dict.fromkeys(found))
    return chosen if positive_filter is None else filter_ops(chosen, positive_filter)


def select_ts(*args: Any, graph: Graph | None = None, positive_filter: Any = None, **_: Any) -> list[Tensor]:
    """Returns tensors: those that are given, and those in whose names regular expressions are found."""
    found: list[Tensor] = []
    for arg in args:
        if isinstance(arg, str):
            found += filter_ts_from_regex(_graph_for(arg, graph), arg.removeprefix("(?#ts)"))
        else:
            found += make_list_of_t(arg, ignore_ops=True)
    chosen = list(dict.fromkeys(found))
    return chosen if positive_filter is None else [t for t in chosen if positive_filter(t)]


def _graph_for(text: str, graph: Graph | None) -> Graph:
    if graph is None:
        raise InvalidTypeError(f"graph_editor: {text!r} is given without a graph; graph= is required")
    return graph


def get_generating_ops(ts: Any) -> list[Operation]:
    """Returns the operations that make tensors."""
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """Returns the operations that use tensors, each once."""
    found = make_list_of_t(ts, allow_graph=False)
    users = _consumers(found[0].graph) if found else {}
    return list(dict.fromkeys(op for t in found for op in users.get(t, ())))


def _consumers(graph: Graph) -> dict[Tensor, list[Operation]]:
    users: dict[Tensor, list[Operation]] = {}
    for op in graph.get_operations():
        for t in op.inputs:
            users.setdefault(t, []).append(op)
    return users


def get_forward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
    stop_at_ts: Any = (),
    control_outputs: Any = None,
) -> list[Operation]:
    """Returns the operations that depend on some, which are tensors or operations.

    inclusive: with these (those that use the tensors). within_ops, within_ops_fn: no way leads out of these.
    stop_at_ts: no way passes these tensors. control_outputs: a ControlOutputs whose ways count, too, or True.
    """
    seeds = _seeds(seed_ops, get_consuming_ops)
    if not seeds:
        return []
    users, stops = _consumers(seeds[0].graph), set(make_list_of_t(stop_at_ts))
    waiting = ControlOutputs(seeds[0].graph) if control_outputs is True else control_outputs or None

    def following(op: Operation) -> Iterable[Operation]:
        after = [user for t in op.outputs if t not in stops for user in users.get(t, ())]
        return after if waiting is None else [*after, *waiting.get(op)]

    return _walk(seeds, following, inclusive, within_ops, within_ops_fn)


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
    stop_at_ts: Any = (),
    control_inputs: bool = False,
) -> list[Operation]:
    """Returns the operations that some, which are tensors or operations, depend on; see get_forward_walk_ops."""
    stops = set(make_list_of_t(stop_at_ts))

    def following(op: Operation) -> Iterable[Operation]:
        before = [t.op for t in op.inputs if t not in stops]
        return [*before, *op.control_inputs] if control_inputs else before

    return _walk(_seeds(seed_ops, get_generating_ops), following, inclusive, within_ops, within_ops_fn)


def _seeds(given: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    leaves = make_list_of_op(given) if isinstance(given, Graph | SubGraphView) else nest.flatten(_as_list(given))
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    return of_tensors(tensors) if tensors else make_list_of_op(leaves)


def _walk(
    seeds: list[Operation],
    following: Callable[[Operation], Iterable[Operation]],
    inclusive: bool,
    within_ops: Any,
    within: Callable[[Any], bool] | None,
) -> list[Operation]:
    allowed = None if within_ops is None else set(make_list_of_op(within_ops))

    def is_allowed(op: Operation) -> bool:
        return (allowed is None or op in allowed) and (within is None or within(op))

    wave = [op for op in seeds if is_allowed(op)]
    found = dict.fromkeys(wave)
    while wave:
        reached = [op for before in wave for op in following(before) if is_allowed(op)]
        wave = list(dict.fromkeys(op for op in reached if op not in found))
        found.update(dict.fromkeys(wave))
    return list(found) if inclusive else [op for op in found if op not in set(seeds)]


def get_walks_intersection_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True, backward_inclusive: bool = True,
    within_ops: Any = None, within_ops_fn: Any = None, control_inputs: bool = False, control_outputs: Any = None,
) -> list[Operation]:  # fmt: skip
    """Returns the operations on ways from some operations to others."""
    forward = get_forward_walk_ops(
        forward_seed_ops, forward_inclusive, within_ops, within_ops_fn, control_outputs=control_outputs
    )
    backward = get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, within_ops, within_ops_fn, control_inputs=control_inputs
    )
    return [op for op in forward if op in set(backward)]


def get_within_boundary_ops(
    ops: Any, seed_ops: Any, boundary_ops: Any = (), inclusive: bool = True, control_inputs: bool = False,
    control_outputs: Any = None,
) -> list[Operation]:  # fmt: skip
    """Returns those operations that are reached from some, both ways, without passing the boundary."""
    edge = set(make_list_of_op(boundary_ops))
    within = [op for op in make_list_of_op(ops) if op not in edge]
    seeds = make_list_of_op(seed_ops)
    found: dict[Operation, None] = dict.fromkeys(op for op in seeds if op in set(within))
    count = -1
    while count != len(found):
        count = len(found)
        for op in [
            *get_forward_walk_ops(list(found), within_ops=within, control_outputs=control_outputs),
            *get_backward_walk_ops(list(found), within_ops=within, control_inputs=control_inputs),
        ]:
            found[op] = None
    return [op for op in make_list_of_op(ops) if op in found or (inclusive and op in edge)]


def get_ops_ios(ops: Any, control_inputs: bool = False, control_outputs: Any = None) -> list[Operation]:
    """Returns the operations that have something to do with some: their sources and users."""
    found: dict[Operation, None] = {}
    for op in make_list_of_op(ops):
        found.update(dict.fromkeys(t.op for t in op.inputs))
        found.update(dict.fromkeys(get_consuming_ops(list(op.outputs))))
        if control_inputs:
            found.update(dict.fromkeys(op.control_inputs))
        if isinstance(control_outputs, ControlOutputs):
            found.update(dict.fromkeys(control_outputs.get(op)))
    return list(found)


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """Returns a view of operations, which are given as select_ops takes them."""
    return SubGraphView(select_ops(*args, **kwargs), select_ts(*(a for a in args if isinstance(a, Tensor))))


def sgv(*args: Any, **kwargs: Any) -> SubGraphView:
    """Returns a view of operations; see make_view."""
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    return make_view(*args, **kwargs)

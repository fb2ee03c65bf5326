"""`tf.profiler`: parameters and floating operations of a graph, and times of its runs, by the scopes of names."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timberframe.boundary import guard
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef import messages
from timberframe_core.ops.definition.work import floating_operations

__all__ = ["GraphNodeProto", "ProfileOptionBuilder", "Profiler", "profile"]

_VIEWS = ("graph", "scope", "op", "code")
_ALL = 10000  # levels of scopes


class GraphNodeProto:
    """A scope or operation in a profile, with what is in it.

    parameters: elements of its variables. float_ops: floating operations of a run. exec_micros: microseconds that runs
    took. The totals count what is in it, too. children: the scopes and operations in it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters = self.float_ops = self.exec_micros = 0
        self.total_parameters = self.total_float_ops = self.total_exec_micros = 0
        self.children: list[GraphNodeProto] = []

    def __str__(self) -> str:
        return "\n".join(_lines(self, ["params", "float_ops", "micros"], 0, _ALL))


class ProfileOptionBuilder:
    """Settings of a profile, as a dict that `build` gives; each `with_` method returns the builder."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = {**_DEFAULTS, **(options or {})}

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Returns settings that show the parameters of trainable variables."""
        return {**_DEFAULTS, "account_type_regexes": ["_trainable_variables"], "select": ["params"]}

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Returns settings that show floating operations."""
        return {**_DEFAULTS, "min_float_ops": 1, "select": ["float_ops"], "order_by": "float_ops"}

    @staticmethod
    def time_and_memory(min_micros: int = 1, min_bytes: int = 1, **_: Any) -> dict[str, Any]:
        """Returns settings that show how long operations took."""
        return {**_DEFAULTS, "min_micros": min_micros, "select": ["micros"], "order_by": "micros"}

    def _with(self, **options: Any) -> ProfileOptionBuilder:
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Shows so many levels of scopes."""
        return self._with(max_depth=max_depth)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts operations whose types match one of these; "_trainable_variables" is that of trainable variables."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(self, show_name_regexes: Sequence[str] = (".*",), **_: Any) -> ProfileOptionBuilder:
        """Shows scopes and operations whose names match one of these."""
        return self._with(show_name_regexes=list(show_name_regexes))

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows what has so many parameters."""
        return self._with(min_params=min_params)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows what has so many floating operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_min_execution_time(self, min_micros: int = 0, **_: Any) -> ProfileOptionBuilder:
        """Shows what took so many microseconds."""
        return self._with(min_micros=min_micros)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """Shows these of "params", "float_ops" and "micros"."""
        return self._with(select=list(attributes))

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Shows what has the most of an attribute first; "name" is the order of names."""
        return self._with(order_by=attribute)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints to standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Shows the runs of a step that `Profiler.add_step` got; -1 for all."""
        return self._with(step=step)

    def build(self) -> dict[str, Any]:
        """Returns the settings."""
        return dict(self._options)


_DEFAULTS: dict[str, Any] = {
    "max_depth": _ALL, "min_params": 0, "min_float_ops": 0, "min_micros": 0, "account_type_regexes": [".*"],
    "show_name_regexes": [".*"], "select": ["params", "float_ops", "micros"], "order_by": "name", "output": "stdout",
    "step": -1,
}  # fmt: skip


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | None = None,
) -> GraphNodeProto:
    """Shows a graph by scopes, with parameters, floating operations and times; returns what it shows.

    graph: the default graph if None. run_meta: a RunMetadata of a traced run. op_log: must be None. cmd: "scope",
    "graph", "op" or "code", which are all shown by scopes but for "op", by types. options: of a ProfileOptionBuilder.
    """
    if op_log is not None:
        raise InvalidArgumentError("tf.profiler.profile: op_log is given; None is required")
    if cmd not in _VIEWS:
        raise InvalidArgumentError(f"tf.profiler.profile: cmd is {cmd!r}; it must be one of {', '.join(_VIEWS)}")
    settings = {**_DEFAULTS, **(options or {})}
    root = GraphNodeProto("_TFProfRoot")
    nodes = {"": root}
    times = _times(run_meta)
    of = get_default_graph() if graph is None else graph
    variables = {v.op.name for v in of.get_collection("trainable_variables") if hasattr(v, "op")}
    for op in of.get_operations():
        if _is_counted(op, variables, settings["account_type_regexes"]):
            node = _node(nodes, op.type if cmd == "op" else op.name)
            node.parameters += _parameters(op)
            node.float_ops += _float_ops(op)
            node.exec_micros += times.get(op.name, 0)
    _add_up(root)
    _select(root, settings)
    _print(root, settings)
    return root


def _node(nodes: dict[str, GraphNodeProto], name: str) -> GraphNodeProto:
    found = nodes.get(name)
    if found is None:
        found = nodes[name] = GraphNodeProto(name)
        _node(nodes, name.rpartition("/")[0]).children.append(found)
    return found


def _is_counted(op: Operation, trainable: set[str], types: Sequence[str]) -> bool:
    return any(
        op.name in trainable if kind == "_trainable_variables" else re.fullmatch(kind, op.type) is not None
        for kind in types
    )


def _parameters(op: Operation) -> int:
    if op.op_def.role not in ("variable", "reference"):
        return 0
    shape = op.attrs["shape"]
    return 0 if shape is None or None in shape else math.prod(shape)


def _float_ops(op: Operation) -> int:
    tensors = [*op.inputs, *op.outputs]
    if any(t.static_shape is None or None in t.static_shape for t in tensors):
        return 0
    written = sum(math.prod(_sizes(t)) for t in op.outputs if t.dtype.is_floating or t.dtype.is_complex)
    return floating_operations(op.op_def, op.attrs, [_stand_in(t) for t in op.inputs], written)


def _sizes(tensor: Tensor) -> list[int]:
    return [d or 0 for d in tensor.static_shape or ()]


def _stand_in(tensor: Tensor) -> np.ndarray:
    """Returns an array of the tensor's shape that needs no memory; its value where that is known."""
    if tensor.host_value is not None:
        return np.asarray(tensor.host_value)
    return np.broadcast_to(np.zeros((), tensor.dtype.base_dtype.numpy), _sizes(tensor))


def _times(run_meta: Any) -> dict[str, int]:
    """Returns the microseconds of operations by name."""
    found: dict[str, int] = {}
    if run_meta is None:
        return found
    recorded = messages.as_message(run_meta.SerializeToString(), messages.RunMetadataMessage, "tf.profiler: run_meta")
    for device in recorded.step_stats.dev_stats:
        for stats in device.node_stats:
            found[stats.node_name] = found.get(stats.node_name, 0) + stats.op_end_rel_micros - stats.op_start_rel_micros
    return found


def _add_up(node: GraphNodeProto) -> None:
    for child in node.children:
        _add_up(child)
    for kind in ("parameters", "float_ops", "exec_micros"):
        total = getattr(node, kind) + sum(getattr(child, f"total_{kind}") for child in node.children)
        setattr(node, f"total_{kind}", total)


def _select(node: GraphNodeProto, settings: Mapping[str, Any]) -> None:
    """Leaves out what is too small or has another name, but for what is in it."""
    kept: list[GraphNodeProto] = []
    for child in node.children:
        _select(child, settings)
        shown = any(re.fullmatch(pattern, child.name) for pattern in settings["show_name_regexes"])
        large = all(
            getattr(child, f"total_{kind}") >= settings[least]
            for kind, least in (
                ("parameters", "min_params"),
                ("float_ops", "min_float_ops"),
                ("exec_micros", "min_micros"),
            )
        )
        kept += [child] if shown and large else child.children
    order = _KINDS.get(settings["order_by"])
    kept.sort(key=lambda c: c.name if order is None else -getattr(c, f"total_{order}"))
    node.children = kept


_KINDS = {"params": "parameters", "float_ops": "float_ops", "micros": "exec_micros"}
_UNITS = {"params": "params", "float_ops": "flops", "micros": "us"}


def _lines(node: GraphNodeProto, select: Sequence[str], level: int, depth: int) -> Iterator[str]:
    shown = [k for k in select if k in _KINDS]
    figures = ", ".join(
        f"{getattr(node, _KINDS[k]):,}/{getattr(node, f'total_{_KINDS[k]}'):,} {_UNITS[k]}" for k in shown
    )
    yield f"{'  ' * level}{node.name} ({figures})"
    if level < depth:
        for child in node.children:
            yield from _lines(child, select, level + 1, depth)


def _print(root: GraphNodeProto, settings: Mapping[str, Any]) -> None:
    where, _, file = settings["output"].partition(":outfile=")
    text = "\n".join(_lines(root, settings["select"], 0, settings["max_depth"])) + "\n"
    if where == "stdout":
        sys.stdout.write(text)
    elif where == "file":
        Path(file).write_text(text)


class Profiler:
    """Profiles of a graph over several steps."""

    def __init__(self, graph: Graph | None = None, op_log: Any = None) -> None:
        if op_log is not None:
            raise InvalidArgumentError("tf.profiler.Profiler: op_log is given; None is required")
        self._graph = get_default_graph() if graph is None else graph
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Takes the RunMetadata of a traced run."""
        self._steps[step] = run_meta

    def _run_meta(self, options: Mapping[str, Any]) -> Any:
        step = options.get("step", -1)
        return self._steps.get(max(self._steps, default=0) if step == -1 else step)

    def profile_name_scope(self, options: Mapping[str, Any]) -> GraphNodeProto:
        """Shows the graph by scopes, with the times of the step that the options name, or of the last one."""
        return profile(self._graph, self._run_meta(options), cmd="scope", options=options)

    profile_graph = profile_name_scope
    profile_python = profile_name_scope

    def profile_operations(self, options: Mapping[str, Any]) -> GraphNodeProto:
        """Shows the graph by the types of operations."""
        return profile(self._graph, self._run_meta(options), cmd="op", options=options)


guard([sys.modules[__name__]])

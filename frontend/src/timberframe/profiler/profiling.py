"""Profiles of graphs: parameters and floating operations, and times of runs."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from timberframe.profiler.counting import float_ops, own_types, variable_shape
from timberframe.profiler.nodes import GraphNodeProto, add_up, lines, select
from timberframe.profiler.op_log import entries_of
from timberframe.profiler.options import DEFAULTS
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graphdef import messages

_VIEWS = ("graph", "scope", "op", "code")


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | None = None,
) -> GraphNodeProto:
    """Shows a graph by scopes, with parameters, floating operations and times; returns what it shows.

    graph: the default graph if None. run_meta: a RunMetadata of a traced run. op_log: an OpLogProto with further types
    of operations, and their floating operations where the graph does not tell. cmd: "scope", "graph", "op" or "code",
    which are all shown by scopes but for "op", by types. options: of a ProfileOptionBuilder.
    """
    if cmd not in _VIEWS:
        raise InvalidArgumentError(f"tf.profiler.profile: cmd is {cmd!r}; it must be one of {', '.join(_VIEWS)}")
    settings = {**DEFAULTS, **(options or {})}
    regexes = settings["account_type_regexes"]
    of = get_default_graph() if graph is None else graph
    logged, own, times = entries_of(op_log), own_types(of), _times(run_meta)
    scopes = _matches([""], regexes)
    root = GraphNodeProto("_TFProfRoot")
    nodes = {"": root}
    for op in of.get_operations():
        entry = logged.get(op.name)
        more = own.get(op.name, []) + (list(entry.types) if entry else [])
        if _matches([op.type, op.device, *more], regexes):
            node = _node(nodes, op.type if cmd == "op" else op.name, scopes)
            node.accounted = True
            shape = variable_shape(op)
            if shape is not None:
                node.shape = "x".join(map(str, shape)) or "1"
                node.parameters += math.prod(shape)
            node.float_ops += (entry.float_ops if entry else 0) or float_ops(op)
            node.exec_micros += times.get(op.name, 0)
    add_up(root)
    select(root, settings)
    _print(root, settings)
    return root


def _matches(types: Iterable[str], regexes: Sequence[str]) -> bool:
    return any(re.fullmatch(regex, kind) is not None for kind in types for regex in regexes)


def _node(nodes: dict[str, GraphNodeProto], name: str, accounted: bool) -> GraphNodeProto:
    found = nodes.get(name)
    if found is None:
        found = nodes[name] = GraphNodeProto(name, accounted)
        _node(nodes, name.rpartition("/")[0], accounted).children.append(found)
    return found


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


def _print(root: GraphNodeProto, settings: Mapping[str, Any]) -> None:
    where, _, file = settings["output"].partition(":outfile=")
    file = file or settings.get("dump_to_file", "")
    text = "\n".join(lines(root, settings["select"], settings["max_depth"])) + "\n"
    if file:
        Path(file).write_text(text)
    elif where == "stdout":
        sys.stdout.write(text)


class Profiler:
    """Profiles of a graph over several steps."""

    def __init__(self, graph: Graph | None = None, op_log: Any = None) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._op_log = op_log
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Takes the RunMetadata of a traced run."""
        self._steps[step] = run_meta

    def _run_meta(self, options: Mapping[str, Any]) -> Any:
        step = options.get("step", -1)
        return self._steps.get(max(self._steps, default=0) if step == -1 else step)

    def profile_name_scope(self, options: Mapping[str, Any]) -> GraphNodeProto:
        """Shows the graph by scopes, with the times of the step that the options name, or of the last one."""
        return profile(self._graph, self._run_meta(options), self._op_log, cmd="scope", options=options)

    profile_graph = profile_name_scope
    profile_python = profile_name_scope

    def profile_operations(self, options: Mapping[str, Any]) -> GraphNodeProto:
        """Shows the graph by the types of operations."""
        return profile(self._graph, self._run_meta(options), self._op_log, cmd="op", options=options)

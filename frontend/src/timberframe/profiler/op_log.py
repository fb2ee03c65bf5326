"""Logs of operations for TensorFlow's profiler: floating operations, types and lines of code, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from timberframe.profiler.counting import float_ops, own_types
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation
from timberframe_core.graphdef import messages


def entries_of(op_log: Any) -> dict[str, Any]:
    """Returns the entries of an OpLogProto by the names of their operations; none for None."""
    if op_log is None:
        return {}
    message = messages.as_message(op_log, messages.OpLogProto, "tf.profiler: op_log")
    return {entry.name: entry for entry in message.log_entries}


def write_op_log(
    graph: Graph | None, log_dir: str, op_log: Any = None, run_meta: Any = None, add_trace: bool = True
) -> None:
    """Writes the file `tfprof_log`, an OpLogProto about the operations of a graph, into a folder that exists.

    graph: the default graph if None. op_log: entries that are written, too; where one tells more of an operation than
    the graph, that stays. run_meta: accepted as by TensorFlow; floating operations are those of the shapes that the
    graph knows. add_trace: with the line of code that made each operation.
    """
    of = get_default_graph() if graph is None else graph
    types, merged = own_types(of), entries_of(op_log)
    strings = {"none": 0}
    for op in of.get_operations():
        entry = messages.OpLogEntry(name=op.name, float_ops=float_ops(op), types=types.get(op.name, ()))
        if add_trace:
            _add_trace(entry, op, strings)
        if entry.float_ops or entry.types or entry.code_def.traces:
            _merge(merged, entry)
    log = messages.OpLogProto(log_entries=merged.values(), id_to_string={i: text for text, i in strings.items()})
    (Path(log_dir) / "tfprof_log").write_bytes(log.SerializeToString())


def _merge(entries: dict[str, Any], found: Any) -> None:
    """Adds what the graph tells of an operation to what a log tells of it."""
    entry = entries.setdefault(found.name, found)
    if entry is not found:
        entry.types.extend(found.types)
        entry.float_ops = entry.float_ops or found.float_ops
        if not entry.code_def.traces:
            entry.code_def.CopyFrom(found.code_def)


def _add_trace(entry: Any, op: Operation, strings: dict[str, int]) -> None:
    for frame in op.traceback:
        file, function, line = (strings.setdefault(t or "none", len(strings)) for t in (frame[0], frame[2], frame[3]))
        entry.code_def.traces.add(file_id=file, lineno=frame[1], function_id=function, line_id=line, func_start_line=-1)

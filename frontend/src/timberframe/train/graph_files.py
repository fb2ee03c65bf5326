"""Graphs as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef import messages


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph to the file `name` in logdir, which is made, as text or with as_text=False in binary.

    graph_or_graph_def: a Graph or GraphDef. Returns the file's path.
    """
    given = graph_or_graph_def
    definition = given.as_graph_def() if isinstance(given, Graph) else given
    message = messages.as_message(definition, messages.GraphDef, "write_graph: graph_or_graph_def")
    path = Path(logdir) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if as_text:
        path.write_text(messages.format_text(message))
    else:
        path.write_bytes(message.SerializeToString(deterministic=True))
    return str(path)

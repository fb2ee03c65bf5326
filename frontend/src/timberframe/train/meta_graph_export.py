"""`tf.train.export_meta_graph`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timberframe.saving.files import replace_file
from timberframe.saving.meta_graph import build_meta_graph
from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.importer import import_graph_def


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> Any:
    """Returns the MetaGraphDef of a graph (the current one by default), which is also written
    where a filename is given.

    graph_def: to write in the graph's place. collection_list: the collections to keep, by default all. as_text: writes
    protobuf's text form. export_scope must be None. The others are TensorFlow's and change nothing.
    """
    if export_scope:
        raise UnimplementedError(f"export_meta_graph: export_scope is '{export_scope}'; only whole graphs are written")
    if graph_def is not None:
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="")
    meta = build_meta_graph(
        graph or get_default_graph(), saver_def, collections=collection_list, clear_devices=clear_devices
    )
    if meta_info_def is not None:
        meta.meta_info_def.MergeFromString(meta_info_def.SerializeToString())
    if filename:
        text = messages.format_text(meta).encode() if as_text else meta.SerializeToString(deterministic=True)
        replace_file(Path(filename), text)
    return meta

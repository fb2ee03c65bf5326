"""`tf.train.export_meta_graph` and `tf.train.import_meta_graph`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.saving.files import replace_file
from timberframe.saving.meta_graph import build_meta_graph, load_meta_graph, saver_def_of
from timberframe.train.saver import Saver
from timberframe_core.errors import InvalidArgumentError, NotFoundError, UnimplementedError
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
    """The MetaGraphDef of a graph (the current one by default), which is also written where a filename is given.

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


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds a graph with its collections to the current one; returns a Saver of its variables, None without variables.

    meta_graph_or_file: a MetaGraphDef (ours, TensorFlow's or its bytes) or a file of one, also in text form.
    import_scope: a name scope for all of it; the Saver's checkpoints have names without it. kwargs: input_map.
    """
    unknown = kwargs.keys() - {"input_map"}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InvalidArgumentError(f"import_meta_graph: got {names}; the only further keyword is input_map")
    meta = meta_graph_or_file
    if isinstance(meta, str | os.PathLike):
        meta = read_meta_graph(os.fspath(meta))
    meta = load_meta_graph(meta, import_scope, clear_devices, kwargs.get("input_map"))
    has_variables = GraphKeys.GLOBAL_VARIABLES in meta.collection_def
    return Saver.from_proto(saver_def_of(meta), import_scope) if has_variables else None


def read_meta_graph(path: str) -> Any:
    """The MetaGraphDef of a file, in binary or in text form."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"file '{path}': does not exist; give the .meta file of a checkpoint") from None
    try:
        return messages.as_message(data, messages.MetaGraphDef, f"file '{path}'")
    except InvalidArgumentError as not_binary:
        try:
            return messages.parse_text(data, messages.MetaGraphDef, f"file '{path}'")
        except InvalidArgumentError:
            raise not_binary from None

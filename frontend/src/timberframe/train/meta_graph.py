"""`tf.train.import_meta_graph`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.saving.meta_graph import load_meta_graph, saver_def_of
from timberframe.train.saver import Saver
from timberframe_core.errors import InvalidArgumentError, MissingFileError
from timberframe_core.graphdef import messages


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
    """Returns the MetaGraphDef of a file, in binary or in text form."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f"file '{path}': does not exist; give the .meta file of a checkpoint") from None
    try:
        return messages.as_message(data, messages.MetaGraphDef, f"file '{path}'")
    except InvalidArgumentError as not_binary:
        try:
            return messages.parse_text(data, messages.MetaGraphDef, f"file '{path}'")
        except InvalidArgumentError:
            raise not_binary from None

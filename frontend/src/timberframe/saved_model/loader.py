"""Reads models from folders: those that are written here, and TensorFlow's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.saved_model.constants import (
    INIT_SIGNATURE,
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from timberframe.saving.formats import exists
from timberframe.saving.meta_graph import load_meta_graph
from timberframe.saving.session_values import check_session
from timberframe.train.saver import Saver
from timberframe_core.errors import InvalidArgumentError, InvalidFileError, MissingFileError, MissingGraphError
from timberframe_core.graphdef import messages
from timberframe_core.runtime.session import BaseSession


def contains_saved_model(export_dir: Any) -> bool:
    """Returns whether a folder is a saved model, ours or TensorFlow's."""
    folder = Path(os.fsdecode(export_dir))
    return any((folder / name).is_file() for name in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT))


def read_saved_model(export_dir: str) -> Any:
    """Returns the SavedModel message of a folder."""
    binary, text = (Path(export_dir) / name for name in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT))
    if binary.is_file():
        try:
            return messages.as_message(binary.read_bytes(), messages.SavedModel, f"file '{binary}'")
        except InvalidArgumentError as e:
            raise InvalidFileError(e.message) from e
    if not text.is_file():
        raise MissingFileError(
            f"saved model '{export_dir}': has no {SAVED_MODEL_FILENAME_PB}; give the folder of a saved model"
        )
    return messages.parse_text(text.read_bytes(), messages.SavedModel, f"file '{text}'")


def load(sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
    """Adds the graph with exactly these tags to the session's graph and gives its variables their values.

    export_dir: a path, as text or bytes. Returns the MetaGraphDef; its signature_def has the names of inputs and
    outputs. Raises NotFoundError where there is no such folder, or no graph of these tags, and as Saver.restore does.
    """
    session = check_session(sess, [])
    export_dir = os.fsdecode(export_dir)
    model = read_saved_model(export_dir)
    wanted = {tags} if isinstance(tags, str) else set(tags)
    found = next((m for m in model.meta_graphs if set(m.meta_info_def.tags) == wanted), None)
    if found is None:
        there = "; ".join(", ".join(sorted(m.meta_info_def.tags)) or "none" for m in model.meta_graphs)
        raise MissingGraphError(
            f"saved model '{export_dir}': has no graph of the tags {', '.join(sorted(wanted)) or 'none'}; "
            f"its graphs have the tags: {there}"
        )
    with session.graph.as_default():
        load_meta_graph(found, import_scope, input_map=saver_kwargs.pop("input_map", None))
        _restore(session, found, Path(export_dir), import_scope)
        _initialize(session, found, Path(export_dir), import_scope)
    return found


def _restore(session: BaseSession, meta: Any, folder: Path, import_scope: str | None) -> None:
    checkpoint = str(folder / VARIABLES_DIRECTORY / VARIABLES_FILENAME)
    if GraphKeys.GLOBAL_VARIABLES in meta.collection_def:
        saver = Saver.from_proto(None, import_scope)
        if saver.variables:
            saver.restore(session, checkpoint)
    elif meta.saver_def.restore_op_name and exists(checkpoint):  # a model of TensorFlow 2 has no collections
        prefix = f"{import_scope}/" if import_scope else ""
        file_name, restore = meta.saver_def.filename_tensor_name, meta.saver_def.restore_op_name
        session.run(prefix + restore, {prefix + file_name: checkpoint})


def _initialize(session: BaseSession, meta: Any, folder: Path, import_scope: str | None) -> None:
    """Runs the operation that the model names for this, with the paths of its assets."""
    prefix = f"{import_scope}/" if import_scope else ""
    keys = [key for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY) if key in meta.collection_def]
    names = [name for key in keys for name in meta.collection_def[key].node_list.value]
    if not names and INIT_SIGNATURE in meta.signature_def:
        names = [meta.signature_def[INIT_SIGNATURE].outputs[INIT_SIGNATURE].name]
    if names:
        assets = {prefix + a.tensor_info.name: str(folder / "assets" / a.filename) for a in meta.asset_file_def}
        session.run(prefix + names[0], assets)

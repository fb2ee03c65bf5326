"""Writes models as folders.

`saved_model.pb` is TensorFlow's SavedModel message, a graph with collections and signatures for each set of tags;
`variables/variables` is one checkpoint in TensorFlow's format for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.saved_model.constants import (
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    MAIN_OP_KEY,
    SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT,
    SAVED_MODEL_SCHEMA_VERSION,
    SERVING,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from timberframe.saved_model.saver_nodes import add_saver_nodes
from timberframe.saved_model.signatures import predict_signature_def
from timberframe.saving.bundle_writer import write_bundle
from timberframe.saving.files import file_errors, replace_file
from timberframe.saving.meta_graph import build_meta_graph
from timberframe.saving.session_values import check_session, current_values
from timberframe.train.saver import Saver, by_name
from timberframe_core.errors import InvalidArgumentError, NotEmptyError, NotFoundError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation
from timberframe_core.graphdef import messages


class Builder:
    """Collects graphs with their signatures, and writes them as a folder; the variables are written once.

    The folder must be new or empty. It becomes a saved model when `save` returns.
    """

    def __init__(self, export_dir: str) -> None:
        self._folder = Path(export_dir)
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise NotEmptyError(f"saved model '{export_dir}': exists and is not empty; a new folder is required")
        self._model = messages.SavedModel(saved_model_schema_version=SAVED_MODEL_SCHEMA_VERSION)
        self._has_variables = False

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the session's graph under these tags, and writes the values of its variables: the first one to be added.

        main_op (also legacy_init_op): runs when the model is loaded. saver: says which variables, by default all global
        ones. assets_collection must be empty. strip_default_attrs changes nothing.
        """
        if self._has_variables:
            raise NotEmptyError("saved model: its variables are written; further graphs go to add_meta_graph")
        chosen = sess.graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if saver is None else saver.variables
        variables = by_name(chosen)
        session = check_session(sess, list(variables.values()))
        if variables:
            target = self._folder / VARIABLES_DIRECTORY / VARIABLES_FILENAME
            with file_errors(f"saved model '{self._folder}' cannot be written"):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bundle(str(target), current_values(session, variables))
        self._has_variables = True
        with session.graph.as_default():
            self.add_meta_graph(
                tags, signature_def_map, assets_collection, legacy_init_op, clear_devices, main_op, saver=saver
            )

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the current graph under these tags, for the same variables. saver: says which, by default all global."""
        if not self._has_variables:
            raise InvalidArgumentError("saved model: has no variables yet; add_meta_graph_and_variables comes first")
        if assets_collection:
            raise InvalidArgumentError("saved model: assets_collection is given; further files are not saved")
        graph = get_default_graph()
        meta = build_meta_graph(graph, None, tags, signature_def_map, clear_devices=clear_devices)
        started = main_op or legacy_init_op
        if started is not None:
            del meta.collection_def[MAIN_OP_KEY].node_list.value[:]
            meta.collection_def[MAIN_OP_KEY].node_list.value.append(started.name)
        for key, signature in meta.signature_def.items():
            for info in (*signature.inputs.values(), *signature.outputs.values()):
                _check_there(graph, key, info.name)
        chosen = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if saver is None else saver.variables
        add_saver_nodes(meta, by_name(chosen))
        self._model.meta_graphs.add().CopyFrom(meta)

    def save(self, as_text: bool = False) -> str:
        """Writes the graphs, which makes the folder a saved model; returns the path of that file."""
        if as_text:
            path, data = SAVED_MODEL_FILENAME_PBTXT, messages.format_text(self._model).encode()
        else:
            path, data = SAVED_MODEL_FILENAME_PB, self._model.SerializeToString(deterministic=True)
        with file_errors(f"saved model '{self._folder}' cannot be written"):
            replace_file(self._folder / path, data)
        return str(self._folder / path)


def _check_there(graph: Graph, key: str, name: str) -> None:
    try:
        graph.get_tensor_by_name(name)
    except NotFoundError as e:
        raise InvalidArgumentError(f"signature '{key}': names tensor '{name}', which the graph lacks ({e})") from None


def simple_save(
    session: Any,
    export_dir: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:
    """Writes the session's graph and variables as a folder with one signature, `serving_default`, and the tag `serve`.

    inputs, outputs: tensors by argument name. legacy_init_op: runs when the model is loaded. Raises NotEmptyError
    for a folder that is not empty.
    """
    builder = Builder(export_dir)
    with session.graph.as_default():
        signature = predict_signature_def(inputs, outputs)
    builder.add_meta_graph_and_variables(
        session, [SERVING], {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature}, legacy_init_op=legacy_init_op
    )
    builder.save()

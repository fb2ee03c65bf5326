"""Graphs with their collections, signatures and savers as MetaGraphDef messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys
from timberframe.api.variables import Variable
from timberframe.saving.collections import (
    get_collection_proto_type,
    get_from_proto_function,
    get_to_proto_function,
)
from timberframe_core import __version__, logging
from timberframe_core.errors import OpError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.export import export_graph
from timberframe_core.graphdef.importer import import_graph_def

_VARIABLES = frozenset({
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.GLOBAL_STEP, GraphKeys.METRIC_VARIABLES,
})  # fmt: skip
_SAVER = "timberframe_saver"
"""Collection for the settings of a Saver: TensorFlow accepts a saver_def only with nodes that save and restore."""

_OMITTED = frozenset({GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT, GraphKeys.SAVERS, _SAVER})
"""Collections of bookkeeping, which are no part of the graph."""


def build_meta_graph(
    graph: Graph,
    saver_def: Any = None,
    tags: Iterable[str] = (),
    signatures: Mapping[str, Any] | None = None,
    collections: Sequence[str] | None = None,
    clear_devices: bool = False,
) -> Any:
    """Returns the MetaGraphDef of a graph. collections: those to keep, by default all that can be written."""
    meta = messages.MetaGraphDef()
    meta.meta_info_def.tags.extend(sorted(set(tags)))
    meta.meta_info_def.tensorflow_git_version = f"timberframe {__version__}"
    meta.graph_def.CopyFrom(export_graph(graph, add_shapes=True))
    if clear_devices:
        remove_devices(meta.graph_def)
    if saver_def is not None:
        meta.collection_def[_SAVER].bytes_list.value.append(saver_def.SerializeToString())
    for key, signature in (signatures or {}).items():
        meta.signature_def[key].CopyFrom(signature)
    for key in graph.get_all_collection_keys() if collections is None else collections:
        items = [x for x in graph.get_collection(key) if not _is_in_a_body(x, graph)]
        if items and key not in _OMITTED:
            _write_collection(meta, key, items)
    return meta


def _is_in_a_body(item: Any, graph: Graph) -> bool:
    """Returns whether no name in the graph can mean the item: names within a body may be
    those of other nodes outside.
    """
    return isinstance(item, Tensor | Operation) and item.graph is not graph


def saver_def_of(meta: Any) -> Any:
    """Returns the settings of the Saver that a MetaGraphDef was written with, ours or TensorFlow's."""
    kept = meta.collection_def[_SAVER].bytes_list.value if _SAVER in meta.collection_def else ()
    return messages.as_message(kept[0], messages.SaverDef, "saver_def") if kept else meta.saver_def


def remove_devices(graph_def: Any) -> None:
    """Removes the device requests from a GraphDef."""
    for node in graph_def.node:
        node.device = ""
    for function in graph_def.library.function:
        for node in function.node_def:
            node.device = ""


def _write_collection(meta: Any, key: str, items: Sequence[Any]) -> None:
    target = meta.collection_def[key]
    to_proto = get_to_proto_function(key)
    if to_proto is not None:
        messages_of = (to_proto(x, export_scope=None) for x in items)
        target.bytes_list.value.extend(m.SerializeToString() for m in messages_of if m)
    elif all(isinstance(x, Variable) for x in items):
        target.bytes_list.value.extend(x.to_proto().SerializeToString() for x in items)
    elif all(isinstance(x, Tensor | Operation) for x in items):
        target.node_list.value.extend(x.name for x in items)
    elif all(isinstance(x, str | bytes) for x in items):
        target.bytes_list.value.extend(x.encode() if isinstance(x, str) else x for x in items)
    elif all(isinstance(x, int | np.integer) for x in items):
        target.int64_list.value.extend(int(x) for x in items)
    elif all(isinstance(x, int | float | np.number) for x in items):
        target.float_list.value.extend(float(x) for x in items)
    else:
        del meta.collection_def[key]
        kinds = ", ".join(sorted({type(x).__name__ for x in items}))
        logging.warning("collection '%s' holds %s; it is not written with the graph", key, kinds)


def load_meta_graph(
    meta_graph: Any,
    import_scope: str | None = None,
    clear_devices: bool = False,
    input_map: Mapping[str, Any] | None = None,
) -> Any:
    """Adds a MetaGraphDef's graph and collections to the current graph, and returns the message.

    import_scope: a name scope for all of it. What a collection names and the graph does not have is left out with a
    warning.
    """
    meta = messages.as_message(meta_graph, messages.MetaGraphDef, "meta_graph")
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = messages.GraphDef()
        graph_def.CopyFrom(meta.graph_def)
        remove_devices(graph_def)
    graph = get_default_graph()
    scope = ""
    if import_scope:
        with graph.name_scope(import_scope) as entered:
            scope = entered
    _warn_of_taken_names(graph, graph_def, scope)
    import_graph_def(graph_def, input_map=input_map, name=scope)
    known: dict[bytes, Variable] = {}
    for key, collection in sorted(meta.collection_def.items()):
        if key not in _OMITTED:
            for item in _items(graph, key, collection, scope.rstrip("/"), known):
                graph.add_to_collection(key, item)
    return meta


def _warn_of_taken_names(graph: Graph, graph_def: Any, scope: str) -> None:
    """Warns where the graph has operations of the same names: as in TensorFlow, collections name those."""
    present = {op.name for op in graph.get_operations()}
    taken = [name for node in graph_def.node if (name := f"{scope}{node.name}") in present]
    if taken:
        logging.warning(
            "meta_graph: the graph has %d of its operations already, such as '%s'; they are imported under other "
            "names, and names in collections mean those that were there. An empty graph (tf.reset_default_graph()) or "
            "an import_scope has no such names",
            len(taken),
            taken[0],
        )


def _items(graph: Graph, key: str, collection: Any, scope: str, known: dict[bytes, Variable]) -> Iterable[Any]:
    kind = collection.WhichOneof("kind")
    if kind is None or kind == "any_list":
        return
    if kind != "bytes_list" and key in _VARIABLES and key != GraphKeys.GLOBAL_STEP:
        logging.warning("collection '%s' holds a %s and no variables; its items are left out", key, kind)
        return
    proto_type, from_proto = get_collection_proto_type(key), get_from_proto_function(key)
    for value in getattr(collection, kind).value:
        try:
            if kind == "bytes_list" and proto_type is not None and from_proto is not None:
                message = messages.as_message(value, proto_type, f"collection '{key}'")
                yield from_proto(message, import_scope=scope or None)
            elif kind == "node_list":
                yield graph.as_graph_element(f"{scope}/{value}" if scope else value)
            elif kind == "bytes_list" and key in _VARIABLES:
                yield _variable(value, scope, known)
            else:
                yield value
        except OpError as e:
            logging.warning("collection '%s': %s; this item is left out", key, e)


def _variable(value: bytes, scope: str, known: dict[bytes, Variable]) -> Variable:
    """Returns one object for each variable, in whichever collections it is."""
    name = messages.as_message(value, messages.VariableDef, "variable_def").variable_name.encode()
    if name not in known:
        known[name] = Variable.from_proto(value, import_scope=scope or None)
    return known[name]

"""Wrong structure in MetaGraphDefs: collections, signatures, savers, assets, and the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from timberframe_conformance.hostile.mutators import graphdef
from timberframe_conformance.hostile.mutators.values import (
    DTYPES,
    SIZES,
    TEXTS,
    change_bytes,
    change_integer,
    change_shape,
    parsed,
    pick,
)
from timberframe_core.graphdef.messages import VariableDef


def _graph(rng: random.Random, meta: Any) -> None:
    rng.choice(graphdef.MUTATORS)(rng, meta.graph_def)


def _drop_collection(rng: random.Random, meta: Any) -> None:
    del meta.collection_def[pick(rng, sorted(meta.collection_def))]


def _other_collection(rng: random.Random, meta: Any) -> None:
    """Writes the items of one collection under the name of another one."""
    keys = sorted(meta.collection_def)
    meta.collection_def[pick(rng, [*keys, "trainable_variables", "global_step", "new"])].CopyFrom(
        meta.collection_def[pick(rng, keys)]
    )


def _collection_items(rng: random.Random, meta: Any) -> None:
    collection = meta.collection_def[pick(rng, sorted(meta.collection_def))]
    kind = rng.choice([collection.WhichOneof("kind") or "node_list"] * 3 + ["node_list", "bytes_list", "int64_list"])
    values = getattr(collection, kind).value
    if kind == "bytes_list" and len(values) and rng.random() < 0.6:
        at = rng.randrange(len(values))
        values[at] = change_bytes(rng, values[at])
    elif kind == "int64_list":
        values.append(rng.choice(SIZES))
    elif kind == "float_list":
        values.append(float("nan"))
    else:
        text = rng.choice([*TEXTS, "nowhere:0"])
        values.append(text if kind == "node_list" else text.encode())


def _variable_def(rng: random.Random, meta: Any) -> None:
    """Writes a VariableDef that names other parts of the graph."""
    keys = [
        k for k, c in sorted(meta.collection_def.items()) if "variables" in k and c.WhichOneof("kind") == "bytes_list"
    ]
    values = meta.collection_def[pick(rng, keys)].bytes_list.value
    at = rng.randrange(len(values) or 1)
    variable = parsed(VariableDef, values[at] if len(values) else pick(rng, values))
    field = rng.choice(["variable_name", "initial_value_name", "initializer_name", "snapshot_name"])
    names = [n.name for n in meta.graph_def.node] or [""]
    setattr(
        variable, field, rng.choice([*TEXTS, rng.choice(names), rng.choice(names) + ":0", getattr(variable, field)])
    )
    if rng.random() < 0.3:
        variable.is_resource = not variable.is_resource
    if rng.random() < 0.2:
        variable.save_slice_info_def.full_shape.append(rng.choice(SIZES))
        variable.synchronization = rng.choice([0, 1, 99])
    values[at] = variable.SerializeToString()


def _saver(rng: random.Random, meta: Any) -> None:
    saver = meta.saver_def
    kind = rng.randrange(5)
    if kind == 0:
        saver.max_to_keep = change_integer(rng, saver.max_to_keep, 32)
    elif kind == 1:
        saver.keep_checkpoint_every_n_hours = rng.choice([float("nan"), float("inf"), -1.0])
    elif kind == 2:
        saver.version = rng.choice([0, 1, 2, 99, -1])
    else:
        field = rng.choice(["filename_tensor_name", "save_tensor_name", "restore_op_name"])
        names = [n.name for n in meta.graph_def.node] or [""]
        setattr(saver, field, rng.choice([*TEXTS, rng.choice(names), rng.choice(names) + ":0"]))


def _saver_collection(rng: random.Random, meta: Any) -> None:
    values = meta.collection_def["timberframe_saver"].bytes_list.value
    if len(values) and rng.random() < 0.5:
        del values[:]
    else:
        values.append(rng.choice([b"", b"\xff", change_bytes(rng, meta.saver_def.SerializeToString())]))


def _signature(rng: random.Random, meta: Any) -> None:
    signature = meta.signature_def[pick(rng, [*sorted(meta.signature_def), "__saved_model_init_op", "new"])]
    target = rng.choice([signature.inputs, signature.outputs])
    info = target[pick(rng, [*sorted(target), "x"])]
    kind = rng.randrange(4)
    names = [n.name for n in meta.graph_def.node] or [""]
    if kind == 0:
        info.name = rng.choice([*TEXTS, "nowhere:0", rng.choice(names), rng.choice(names) + ":0"])
    elif kind == 1:
        info.dtype = rng.choice(DTYPES)
    elif kind == 2:
        change_shape(rng, info.tensor_shape)
    else:
        info.coo_sparse.values_tensor_name = rng.choice(names)


def _drop_signature(rng: random.Random, meta: Any) -> None:
    del meta.signature_def[pick(rng, sorted(meta.signature_def))]


def _asset(rng: random.Random, meta: Any) -> None:
    asset = rng.choice(list(meta.asset_file_def)) if len(meta.asset_file_def) else meta.asset_file_def.add()
    if rng.random() < 0.5:
        asset.filename = rng.choice([*TEXTS, "../../x", "/nowhere", "nowhere.txt"])
    else:
        asset.tensor_info.name = rng.choice([*TEXTS, "nowhere:0", *[n.name for n in meta.graph_def.node][:3]])


def _tags(rng: random.Random, meta: Any) -> None:
    meta.meta_info_def.tags.append(rng.choice(TEXTS))


MUTATORS: Sequence[Callable[[random.Random, Any], None]] = (
    _graph, _graph, _graph, _graph, _drop_collection, _other_collection, _collection_items, _collection_items,
    _variable_def, _variable_def, _saver, _saver_collection, _signature, _drop_signature, _asset, _tags,
)  # fmt: skip

"""The kinds of files that are mutated: how they are made, damaged and used."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from timberframe_conformance.hostile import checkpoints, graphs, models, storage_uses, uses
from timberframe_conformance.hostile.kinds import Files, Format, Limits
from timberframe_conformance.hostile.mutators import bundles, graphdef, libraries, metagraphs, safetensors
from timberframe_conformance.hostile.mutators.values import NothingToChangeError, change_bytes, pick
from timberframe_core.graphdef.messages import GraphDef, MetaGraphDef, SavedModel

RAW = 0.15  # of the mutations change bytes without knowledge of the format
DEEP = 0.01  # of the mutations of graphs add functions nested deeply

GRAPH, META = "graph.pb", "model.meta"
SAFETENSORS = "model.safetensors"


def _change_message(rng: random.Random, raw: bytes, kind: Any, change: Callable[[random.Random, Any], None]) -> bytes:
    """Returns a serialised message with one thing changed: in its structure, or in its bytes
    where it has none any more.
    """
    message = kind()
    try:
        if rng.random() < RAW:
            return change_bytes(rng, raw)
        message.ParseFromString(raw)
    except DecodeError:
        return change_bytes(rng, raw)
    change(rng, message)
    return bytes(message.SerializeToString(deterministic=True))


def _change_graph(rng: random.Random, graph: Any) -> None:
    rng.choice(libraries.DEEP if rng.random() < DEEP else graphdef.MUTATORS)(rng, graph)


def _change_meta(rng: random.Random, meta: Any) -> None:
    rng.choice(metagraphs.MUTATORS)(rng, meta)


def _make_graph(rng: random.Random) -> Files:
    return {GRAPH: graphs.named_graph(graphs.choose(rng))}


def _mutate_graph(rng: random.Random, files: Files) -> None:
    files[GRAPH] = _change_message(rng, files[GRAPH], GraphDef, _change_graph)


def _use_graph(files: Files, folder: Path, rng: random.Random, limits: Limits) -> None:
    uses.use_graph_def(files[GRAPH], rng, limits)


def _make_meta(rng: random.Random) -> Files:
    return {META: models.meta_graph(rng.choice(models.META_GRAPHS))}


def _mutate_meta(rng: random.Random, files: Files) -> None:
    files[META] = _change_message(rng, files[META], MetaGraphDef, _change_meta)


def _make_bundle(rng: random.Random) -> Files:
    return checkpoints.bundle()


def _mutate_bundle(rng: random.Random, files: Files) -> None:
    kind = rng.random()
    if kind < 0.75:
        files[checkpoints.INDEX] = bundles.damaged_table(rng)
        files[storage_uses.CHECKSUMS_RECOMPUTED] = b""
    else:
        name = pick(rng, sorted(n for n in files if n != storage_uses.CHECKSUMS_RECOMPUTED))
        files[name] = change_bytes(rng, files[name])


def _make_safetensors(rng: random.Random) -> Files:
    return {SAFETENSORS: checkpoints.safetensors_file(), storage_uses.CHECKSUMS_RECOMPUTED: b""}


def _mutate_safetensors(rng: random.Random, files: Files) -> None:
    files[SAFETENSORS] = safetensors.change_safetensors(rng, files[SAFETENSORS])


def _make_model(rng: random.Random) -> Files:
    return dict(models.saved_model(rng.choice(list(models.MODELS))))


def _mutate_model(rng: random.Random, files: Files) -> None:
    kind = rng.random()
    if kind < 0.1:
        del files[pick(rng, sorted(files))]
    elif kind < 0.2:
        one, other = pick(rng, sorted(files)), pick(rng, sorted(files))
        files[one], files[other] = files[other], files[one]
    elif kind < 0.3:
        name = pick(rng, sorted(files))
        files[name] = change_bytes(rng, files[name])
    elif models.PB in files:
        files[models.PB] = _change_message(rng, files[models.PB], SavedModel, _change_model)
    elif models.PBTXT in files:
        files[models.PBTXT] = _change_text(rng, files[models.PBTXT])


def _change_model(rng: random.Random, model: Any) -> None:
    kind = rng.random()
    if kind < 0.05:
        model.saved_model_schema_version = rng.choice([0, -1, 2, 2**62])
    elif kind < 0.1:
        model.meta_graphs.add().CopyFrom(pick(rng, model.meta_graphs))
    elif kind < 0.13:
        del model.meta_graphs[:]
    else:
        _change_meta(rng, pick(rng, model.meta_graphs))


def _change_text(rng: random.Random, raw: bytes) -> bytes:
    """Returns another message, or another text."""
    if rng.random() < 0.3:
        return rng.choice([b"meta_graphs {" * 5000, raw + b"\xff", raw.replace(b'"', b"'", 1), change_bytes(rng, raw)])
    try:
        model = text_format.Parse(raw.decode(), SavedModel())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError):
        raise NothingToChangeError from None
    _change_model(rng, model)
    return text_format.MessageToString(model).encode()


FORMATS: Mapping[str, Format] = {
    f.name: f
    for f in (
        Format("graphdef", _make_graph, _mutate_graph, _use_graph),
        Format("metagraph", _make_meta, _mutate_meta, storage_uses.use_meta_graph),
        Format("checkpoint", _make_bundle, _mutate_bundle, storage_uses.use_checkpoint),
        Format("safetensors", _make_safetensors, _mutate_safetensors, storage_uses.use_checkpoint),
        Format("savedmodel", _make_model, _mutate_model, storage_uses.use_saved_model),
    )
}

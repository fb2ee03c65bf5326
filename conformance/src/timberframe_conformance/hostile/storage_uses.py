"""What a user does with MetaGraphs, checkpoints and saved models."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.hostile import checkpoints, uses
from timberframe_conformance.hostile.attempts import WrongUseError, attempt
from timberframe_conformance.hostile.kinds import Files, Limits
from timberframe_core.errors import OpError
from timberframe_core.graph.apply import apply_op

CHECKSUMS_RECOMPUTED = "checksums are right"
"""Marks files whose checksums were recomputed, so that their changed content is what must be read."""


def _write(files: Files, folder: Path) -> bool:
    """Writes the files; returns whether damage to them must show."""
    damage_shows = files.pop(CHECKSUMS_RECOMPUTED, None) is None
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return damage_shows


def use_meta_graph(files: Files, folder: Path, rng: random.Random, limits: Limits) -> None:
    """Imports a MetaGraphDef from its file; saves, restores and exports what there is."""
    _write(files, folder)
    path = next(p for p in folder.iterdir())
    with tf.Graph().as_default() as graph:
        saver = attempt(tf.train.import_meta_graph, str(path))
        if isinstance(saver, OpError):
            return
        with tf.Session(graph=graph, config=uses.session_config(limits)) as session:
            uses.run_fetches(session, graph, rng, limits)
            if saver is not None and not isinstance(attempt(saver.save, session, str(folder / "again")), OpError):
                attempt(saver.restore, session, str(folder / "again"))
        exported = attempt(tf.train.export_meta_graph)
    if not isinstance(exported, OpError):
        with tf.Graph().as_default():
            again = attempt(tf.train.import_meta_graph, exported)
        if isinstance(again, OpError):
            raise WrongUseError(f"the export of an imported MetaGraph cannot be imported: {again}")


def use_checkpoint(files: Files, folder: Path, rng: random.Random, limits: Limits) -> None:
    """Lists and reads all tensors of a checkpoint, restores variables, and copies it."""
    damage_shows = _write(files, folder)
    name = "model.safetensors" if "model.safetensors" in files else checkpoints.PREFIX
    prefix = str(folder / name)
    attempt(tf.train.list_variables, prefix)
    reader = attempt(tf.train.load_checkpoint, prefix)
    if not isinstance(reader, OpError):
        _read_all(reader, damage_shows)
    _restore(prefix, damage_shows, limits)
    attempt(tf.train.latest_checkpoint, str(folder))
    with tf.Graph().as_default(), tf.Session(config=uses.session_config(limits)) as session:
        names = list(checkpoints.tensors())
        kinds = [tf.as_dtype(a.dtype) for a in checkpoints.tensors().values()]
        read = attempt(apply_op, "RestoreV2", [prefix, names, [""] * len(names)], {"dtypes": kinds})
        attempt(session.run, read)
        merge = attempt(apply_op, "MergeV2Checkpoints", [[prefix], str(folder / "merged")], {"delete_old_dirs": False})
        attempt(session.run, merge)


def _read_all(reader: Any, damage_shows: bool) -> None:
    shapes, kinds = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    reader.debug_string()
    for name, shape in shapes.items():
        value = attempt(reader.get_tensor, name)
        if isinstance(value, OpError):
            continue
        if list(value.shape) != list(shape) or value.dtype != kinds[name].numpy:
            raise WrongUseError(f"tensor {name!r} is {value.dtype}{list(value.shape)}; {kinds[name]}{shape} was listed")
        if damage_shows:
            _check(name, value)


def _check(name: str, value: Any) -> None:
    wanted = checkpoints.tensors().get("kernel" if name == "parts" else name)
    if wanted is None or not np.array_equal(value, wanted):
        raise WrongUseError(f"damage that the checksums show was not noticed: tensor {name!r} is {value!r}")


def _restore(prefix: str, damage_shows: bool, limits: Limits) -> None:
    with tf.Graph().as_default(), tf.Session(config=uses.session_config(limits)) as session:
        plain = {n: a for n, a in checkpoints.tensors().items() if n in ("bias", "kernel", "step", "words")}
        variables = {n: tf.Variable(np.zeros_like(a) if a.dtype != object else a, name=n) for n, a in plain.items()}
        session.run(tf.global_variables_initializer())
        chosen = {n: v for n, v in variables.items() if n != "words"} if prefix.endswith("safetensors") else variables
        if isinstance(attempt(tf.train.Saver(chosen).restore, session, prefix), OpError):
            values = session.run(variables)
            if any(np.any(values[n]) for n in values if n != "words"):
                raise WrongUseError("a restore that failed has changed a variable")
        elif damage_shows:
            for name, value in session.run(chosen).items():
                _check(name, value)


def use_saved_model(files: Files, folder: Path, rng: random.Random, limits: Limits) -> None:
    """Loads a saved model and runs its signatures."""
    _write(files, folder)
    attempt(tf.saved_model.contains_saved_model, str(folder))
    with tf.Graph().as_default() as graph, tf.Session(config=uses.session_config(limits)) as session:
        meta = attempt(tf.saved_model.load, session, ["serve"], str(folder))
        if isinstance(meta, OpError):
            return
        for _, signature in sorted(meta.signature_def.items()):
            infos = [*signature.inputs.values(), *signature.outputs.values()]
            tensors = [attempt(tf.saved_model.get_tensor_from_tensor_info, info) for info in infos]
            found = [t for t in tensors if not isinstance(t, OpError)]
            outputs, inputs = found[len(signature.inputs) :], found[: len(signature.inputs)]
            attempt(session.run, outputs, {t: uses.example(t) for t in inputs if graph.is_feedable(t)})
        uses.run_fetches(session, graph, rng, limits)

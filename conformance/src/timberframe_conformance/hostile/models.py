"""MetaGraphs and saved models to be mutated; they are built here."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import text_format

import timberframe as tf
from timberframe_conformance.hostile import checkpoints, graphs
from timberframe_conformance.hostile.tables import Table
from timberframe_core.graph.apply import apply_op
from timberframe_core.graphdef.messages import SavedModel

PB, PBTXT = "saved_model.pb", "saved_model.pbtxt"

META_GRAPHS = ("training", "variables", "layers", "loop_gradient", "arrays", "old_variables", "calls")


@functools.cache
def meta_graph(name: str) -> bytes:
    """Returns the MetaGraphDef of a graph of `graphs.BUILDERS`, with a Saver, several kinds of
    collections and a signature.
    """
    with tf.Graph().as_default() as graph:
        graphs.BUILDERS[name]()
        _collections(graph)
        saver_def = tf.train.Saver().as_saver_def() if tf.global_variables() else None
        meta = tf.train.export_meta_graph(saver_def=saver_def)
        operations = [op for op in graph.get_operations() if op.outputs]
        inputs = {"x": operations[0].outputs[0]}
        signature = tf.saved_model.predict_signature_def(inputs, {"y": operations[-1].outputs[0]})
        meta.signature_def["serving_default"].CopyFrom(signature)
    return bytes(meta.SerializeToString(deterministic=True))


def _collections(graph: Any) -> None:
    operations = graph.get_operations()
    graph.add_to_collection("operations", operations[-1])
    graph.add_to_collection("tensors", next(t for op in operations for t in op.outputs))
    graph.add_to_collection("numbers", 3)
    graph.add_to_collection("rates", 0.5)
    graph.add_to_collection("words", "text")


def _own_model(folder: Path) -> None:
    """Makes a model as this project writes it: variables, a signature and an operation to run first."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], "x")
        w = tf.get_variable("w", [3, 2], tf.float32, tf.random_normal_initializer(seed=1))
        y = tf.nn.softmax(tf.matmul(x, w), name="y")
        start = tf.group(tf.constant(1), name="start")
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(folder))
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        signatures = {"serving_default": signature}
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=start)
        builder.save()


def _later_model(folder: Path) -> None:
    """Makes a model as TensorFlow 2 writes it: no collections, a checkpoint of its own,
    restored by a node of the graph.
    """
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None], "x")
        handle = apply_op("VarHandleOp", (), {"dtype": tf.float32, "shape": (3,), "shared_name": "bias"}, "bias")
        apply_op("AddV2", [x, apply_op("ReadVariableOp", [handle], {"dtype": tf.float32})], name="y")
        file_name = tf.placeholder(tf.string, [], "saver_filename")
        (value,) = apply_op("RestoreV2", [file_name, ["bias"], [""]], {"dtypes": [tf.float32]})
        assign = apply_op("AssignVariableOp", [handle, value], {"dtype": tf.float32})
        tf.group(assign, name="restore_all")
        vocabulary = tf.placeholder(tf.string, [], "vocabulary")
        initial = tf.group(tf.identity(vocabulary), name="initialise")
        meta = tf.train.export_meta_graph()
        meta.collection_def.clear()
        meta.meta_info_def.tags.append("serve")
        meta.saver_def.filename_tensor_name, meta.saver_def.restore_op_name = "saver_filename:0", "restore_all"
        meta.signature_def["serving_default"].inputs["x"].name = "x:0"
        meta.signature_def["serving_default"].outputs["y"].name = "y:0"
        meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = initial.name
        meta.asset_file_def.add(filename="words.txt").tensor_info.name = "vocabulary:0"
    model = SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().MergeFromString(meta.SerializeToString())
    for name in ("variables", "assets"):
        (folder / name).mkdir(parents=True)
    (folder / "assets" / "words.txt").write_text("a\nb\n")
    rows, data = checkpoints.bundle_rows()
    (folder / PB).write_bytes(model.SerializeToString(deterministic=True))
    (folder / "variables" / "variables.index").write_bytes(Table(rows).encode())
    (folder / "variables" / "variables.data-00000-of-00001").write_bytes(data)


def _text_model(folder: Path) -> None:
    """Makes the first one, in protobuf's text form."""
    _own_model(folder)
    model = SavedModel.FromString((folder / PB).read_bytes())
    (folder / PB).unlink()
    (folder / PBTXT).write_text(text_format.MessageToString(model))


MODELS: Mapping[str, Callable[[Path], None]] = {"own": _own_model, "later": _later_model, "text": _text_model}


@functools.cache
def saved_model(name: str) -> Mapping[str, bytes]:
    """Returns the files of one of MODELS."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "model"
        MODELS[name](folder)
        files = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    if PB in files:
        files[PB] = SavedModel.FromString(files[PB]).SerializeToString(deterministic=True)
    return files

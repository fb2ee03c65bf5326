"""Graphs with their collections as files, and graphs with their own ops for saving and restoring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def trained(session: tf.Session, folder: Path) -> str:
    """Returns a model of one layer, trained one step and saved; returns the checkpoint's path."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("layer/w", [3, 1], initializer=tf.ones_initializer())
    b = tf.get_variable("layer/b", [1], initializer=tf.zeros_initializer(), trainable=False)
    y = tf.add(tf.matmul(x, w), b, name="y")
    step = tf.train.get_or_create_global_step()
    tf.add_to_collection("train_op", tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(y * y), step))
    for key, value in (("out", y), ("sizes", 3), ("rates", 0.5), ("words", "one")):
        tf.add_to_collection(key, value)
    session.run(tf.global_variables_initializer())
    session.run(tf.get_collection("train_op"), {x: X})
    path = tf.train.Saver(max_to_keep=3).save(session, str(folder / "model"), global_step=step)
    assert path is not None
    return path


@pytest.mark.parametrize("scope", [None, "a/b"])
def test_queue_runners_come_back(session: tf.Session, scope: str | None) -> None:
    tf.train.batch(tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue(), 3, name="pairs")
    meta = tf.train.export_meta_graph()
    assert len(meta.collection_def["queue_runners"].bytes_list.value) == 2
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        tf.train.import_meta_graph(meta, import_scope=scope)
        other.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(other, coordinator)
        taken = f"{scope}/pairs:0" if scope else "pairs:0"
        assert [other.run(taken).tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(tf.errors.OutOfRangeError):
            other.run(taken)
        coordinator.request_stop()
        coordinator.join(threads)


def test_a_queue_runner_keeps_what_closes_its_queue() -> None:
    queue = tf.FIFOQueue(2, tf.float32, name="q")
    closed_by = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2, queue_closed_exception_types=closed_by)
    copy = tf.train.QueueRunner.from_proto(runner.to_proto())
    assert (copy.name, copy.enqueue_ops, copy.close_op) == (runner.name, runner.enqueue_ops, runner.close_op)
    assert (copy.cancel_op, copy.queue_closed_exception_types) == (runner.cancel_op, closed_by)


def test_graph_and_collections_come_back(session: tf.Session, tmp_path: Path) -> None:
    path = trained(session, tmp_path)
    expected = session.run(["y:0", tf.get_collection("train_op")[0], "y:0"], {"x:0": X})[0]
    names = [[v.name for v in c] for c in (tf.global_variables(), tf.trainable_variables())]
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        assert saver.as_saver_def().max_to_keep == 3
        saver.restore(other, path)
        assert [[v.name for v in c] for c in (tf.global_variables(), tf.trainable_variables())] == names
        assert tf.get_collection("out") == [graph.get_tensor_by_name("y:0")]
        assert [tf.get_collection(k) for k in ("sizes", "rates", "words")] == [[3], [0.5], [b"one"]]
        assert tf.trainable_variables()[0] in tf.global_variables()
        np.testing.assert_array_equal(other.run("y:0", {"x:0": X}), expected)
        other.run(tf.get_collection("train_op"), {"x:0": X})
        assert other.run(tf.train.get_global_step()) == 2


def test_import_into_a_scope_restores_names_without_it(session: tf.Session, tmp_path: Path) -> None:
    path = trained(session, tmp_path)
    expected = session.run("y:0", {"x:0": X})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope="a/b")
        assert "a/b/layer/w:0" in [v.name for v in tf.global_variables()]
        saver.restore(other, path)
        np.testing.assert_array_equal(other.run("a/b/y:0", {"a/b/x:0": X}), expected)


def test_text_form_and_input_map(session: tf.Session, tmp_path: Path) -> None:
    trained(session, tmp_path)
    tf.train.export_meta_graph(str(tmp_path / "graph.txt"), as_text=True, clear_devices=True)
    with tf.Graph().as_default():
        mine = tf.placeholder(tf.float32, [2, 3], name="mine")
        tf.train.import_meta_graph(str(tmp_path / "graph.txt"), input_map={"x:0": mine})
        assert mine in tf.get_default_graph().get_operation_by_name("MatMul").inputs


def test_graph_without_variables_has_no_saver(session: tf.Session) -> None:
    tf.constant(1, name="one")
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph:
        assert tf.train.import_meta_graph(meta) is None
        assert graph.get_operation_by_name("one")


def test_a_graph_is_imported_a_second_time_as_tensorflow_does(
    session: tf.Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = trained(session, tmp_path)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        tf.train.import_meta_graph(f"{path}.meta")
        assert not caplog.messages
        saver = tf.train.import_meta_graph(f"{path}.meta")
        saver.restore(other, path)
        wanted, found = session.run("y:0", {"x:0": X}), other.run("y:0", {"x:0": X})
        assert graph.get_operation_by_name("y_1")
        assert [x.name for x in tf.get_collection("out")] == ["y:0", "y:0"]
    np.testing.assert_array_equal(found, wanted)
    assert "operations already, such as" in caplog.text


def test_bad_files_and_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"does not exist; give the \.meta file"):
        tf.train.import_meta_graph(str(tmp_path / "no.meta"))
    (tmp_path / "bad.meta").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 bytes do not parse as MetaGraphDef"):
        tf.train.import_meta_graph(str(tmp_path / "bad.meta"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="got colour; the only further keyword is input_map"):
        tf.train.import_meta_graph(tf.train.export_meta_graph(), colour="red")


def strings(*values: str) -> tf.Tensor:
    return tf.constant([v.encode() for v in values])


def test_graphs_save_and_restore_by_themselves(session: tf.Session, tmp_path: Path) -> None:
    prefix, names, whole = tf.constant(str(tmp_path / "m")), strings("a", "b"), strings("", "")
    values = [X, np.array([b"x", b"yz"], object)]
    save = apply_op("SaveV2", [prefix, names, whole, values])
    restored = apply_op("RestoreV2", [prefix, names, whole], {"dtypes": (tf.float32, tf.string)})
    v = tf.Variable(tf.zeros([2, 3]))
    assign = v.assign(tf.reshape(restored[0] * 2.0, [2, 3]), read_value=False)
    session.run(save)
    session.run(assign)
    np.testing.assert_array_equal(session.run(v), 2 * X)
    np.testing.assert_array_equal(session.run(restored[1]), values[1])


def test_parts_of_a_checkpoint_are_merged(session: tf.Session, tmp_path: Path) -> None:
    parts = [str(tmp_path / "parts" / f"part-{i}") for i in range(2)]
    for i, part in enumerate(parts):
        session.run(apply_op("SaveV2", [part, strings(f"v{i}"), strings(""), [X + i]]))
    session.run(apply_op("MergeV2Checkpoints", [strings(*parts), str(tmp_path / "m")]))
    np.testing.assert_array_equal(tf.train.load_variable(str(tmp_path / "m"), "v1"), X + 1)
    assert not (tmp_path / "parts").exists()


def test_errors_of_restoring_nodes_name_the_node(session: tf.Session, tmp_path: Path) -> None:
    def restore(prefix: Any, name: str, dtype: tf.DType, part: str = "") -> Any:
        return apply_op("RestoreV2", [prefix, strings(name), strings(part)], {"dtypes": (dtype,)}, name="restore")[0]

    path = str(tmp_path / "m")
    session.run(apply_op("SaveV2", [path, strings("a"), strings(""), [X]]))
    with pytest.raises(tf.errors.NotFoundError, match=r"RestoreV2 'restore': checkpoint '.*/no': .*\[.*graph.py:\d+\]"):
        session.run(restore(str(tmp_path / "no"), "a", tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tensor 'a' is float32 in checkpoint '.*'; it must"):
        session.run(restore(path, "a", tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"slice '4 3 0,1:-' and has shape \[2, 3\] in checkpoint"):
        session.run(restore(path, "a", tf.float32, "4 3 0,1:-"))


def test_strings_of_file_names(session: tf.Session) -> None:
    joined = apply_op("StringJoin", [[["a", "b"], "x"]], {"separator": "/"})
    name = apply_op("ShardedFilename", ["m", 3, 12])
    pattern = apply_op("ShardedFilespec", ["m", 12])
    matches = apply_op("StaticRegexFullMatch", [["s3://a", "a"]], {"pattern": "^s3://.*"})
    assert session.run(joined).tolist() == [b"a/x", b"b/x"]
    assert session.run([name, pattern]) == [b"m-00003-of-00012", b"m-?????-of-00012"]
    assert session.run(matches).tolist() == [True, False]
    with pytest.raises(tf.errors.InvalidArgumentError, match="all that are no scalars must have the same"):
        apply_op("StringJoin", [[["a", "b"], ["a", "b", "c"]]])


def test_reference_variables_of_a_graph_are_variables(session: tf.Session) -> None:
    ref = apply_op("VariableV2", attrs={"shape": (2,), "dtype": tf.float32}, name="v")
    initializer = apply_op("Assign", [ref, [1.0, 2.0]], name="v/Assign").op
    read = apply_op("Identity", [ref], name="v/read")
    proto = tf.VariableDef(variable_name=ref.name, initializer_name=initializer.name, snapshot_name=read.name)
    v = tf.Variable.from_proto(proto)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a Assign in the graph; a VarHandleOp is required"):
        tf.Variable.from_proto(tf.VariableDef(variable_name="v/Assign:0"))
    assert session.run(tf.report_uninitialized_variables([v])).tolist() == [b"v"]
    session.run(v.initializer)
    assert session.run(v.assign_add([1.0, 1.0])).tolist() == [2, 3]
    assert session.run(tf.scatter_update(v, [0], [7.0])).tolist() == [7, 3]
    assert session.run(tf.gather(v, [1])).tolist() == [3]
    v.load([5.0, 6.0], session)
    assert session.run(v * 2.0).tolist() == [10, 12]
    assert not v.to_proto().is_resource

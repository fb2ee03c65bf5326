"""Checkpoints that TensorFlow writes, restored by us, and ours, restored by TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

SHAPES = {"large": (700, 1001), "rows": (33, 7), "scalar": (), "empty": (0, 5), "scope/deep/v": (2, 3, 4)}


def written(tf: Any, folder: Path, dtype: str, **settings: Any) -> tuple[str, dict[str, Any]]:
    """Returns a checkpoint of TensorFlow with variables of one dtype, and their values."""
    with tf.Graph().as_default(), tf.Session() as session:
        rng = np.random.default_rng(3)
        for name, shape in SHAPES.items():
            value = tf.cast(rng.integers(0, 100, shape), dtype)
            tf.Variable(value, name=name, use_resource=True)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver(**settings).save(session, str(folder / "model.ckpt"))
        return path, {v.op.name: np.asarray(session.run(v)) for v in tf.global_variables()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "bool", "complex64"])
def test_values_are_tensorflows(tensorflow: Any, tmp_path: Path, dtype: str) -> None:
    path, values = written(tensorflow, tmp_path, dtype)
    reader = timberframe.train.load_checkpoint(str(tmp_path))
    assert sorted(reader.entries) == sorted(values)
    for name, value in values.items():
        found = reader.get_tensor(name)
        assert str(found.dtype) == str(value.dtype)
        np.testing.assert_array_equal(found, value)
    assert timberframe.train.latest_checkpoint(str(tmp_path)) == path


def test_sharded_checkpoint_restores(tensorflow: Any, tmp_path: Path) -> None:
    config = tensorflow.ConfigProto(device_count={"CPU": 2})
    with tensorflow.Graph().as_default(), tensorflow.Session(config=config) as session:
        for i in range(2):
            with tensorflow.device(f"/cpu:{i}"):
                tensorflow.Variable(np.full(5, i + 1.0), name=f"v{i}", use_resource=True)
        session.run(tensorflow.global_variables_initializer())
        path = tensorflow.train.Saver(sharded=True).save(session, str(tmp_path / "model.ckpt"))
    found = timberframe.train.load_checkpoint(path)
    assert [found.get_tensor(f"v{i}").tolist() for i in range(2)] == [[1.0] * 5, [2.0] * 5]


def test_strings_are_tensorflows(tensorflow: Any, tmp_path: Path) -> None:
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        words = np.array([b"", b"abc", b"y" * 1000], object)
        v = tensorflow.Variable(words, name="words", use_resource=True)
        session.run(v.initializer)
        path = tensorflow.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    assert timberframe.train.load_variable(path, "words").tolist() == words.tolist()


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
def test_training_goes_on_from_tensorflows_graph_and_checkpoint(
    tensorflow: Any, tmp_path: Path, resource: bool
) -> None:
    tf, x = tensorflow, np.ones((4, 3), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        feed = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.variable_scope("layer", use_resource=resource):
            w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
        y = tf.matmul(feed, w, name="y")
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(y * y), step, name="train")
        tf.add_to_collection("train_op", train)
        session.run(tf.global_variables_initializer())
        session.run(train, {feed: x})
        path = tf.train.Saver().save(session, str(tmp_path / "model"), global_step=step)
        session.run(train, {feed: x})
        expected = session.run(y, {feed: x})
    with timberframe.Graph().as_default() as graph, timberframe.Session(graph=graph) as session:
        saver = timberframe.train.import_meta_graph(f"{path}.meta")
        saver.restore(session, path)
        session.run(timberframe.get_collection("train_op"), {"x:0": x})
        np.testing.assert_allclose(session.run("y:0", {"x:0": x}), expected, rtol=1e-6)
        session.run("save/restore_all", {"save/Const:0": path})
        assert session.run(timberframe.get_collection("global_step")[0].value()) == 1


def loaded(folder: Path) -> Any:
    """Returns what the signature of a folder gives for ones."""
    with timberframe.Graph().as_default() as graph, timberframe.Session(graph=graph) as session:
        meta = timberframe.saved_model.load(session, ["serve"], str(folder))
        signature = meta.signature_def["serving_default"]
        (given,), (made,) = signature.inputs.values(), signature.outputs.values()
        return session.run(made.name, {given.name: np.ones((1, 3), np.float32)})


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
def test_saved_model_of_tensorflow_1_runs(tensorflow: Any, tmp_path: Path, resource: bool) -> None:
    tf = tensorflow
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.get_variable("w", initializer=np.full((3, 2), 2.0, np.float32), use_resource=resource)
        y = tf.matmul(x, w)
        session.run(w.initializer)
        tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    assert loaded(tmp_path / "m").tolist() == [[6, 6]]


def test_saved_model_of_tensorflow_2_runs(tensorflow: Any, tmp_path: Path) -> None:
    import tensorflow as tf2

    class Model(tf2.Module):  # type: ignore[misc] # without tensorflow's types it is Any
        def __init__(self) -> None:
            self.w = tf2.Variable(tf2.ones([3, 2]) * 2.0)

        @tf2.function(input_signature=[tf2.TensorSpec([None, 3], tf2.float32)])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            return tf2.matmul(x, self.w)

    with tf2.init_scope():
        if not tf2.executing_eagerly():
            pytest.skip("an earlier test switched eager execution off")
        tf2.saved_model.save(Model(), str(tmp_path / "m"))
    assert loaded(tmp_path / "m").tolist() == [[6, 6]]


def test_partitioned_variables_are_joined(tensorflow: Any, tmp_path: Path) -> None:
    tf, value = tensorflow, np.arange(300 * 70, dtype=np.float32).reshape(300, 70)
    with tf.Graph().as_default(), tf.Session() as session:
        for name, axis in (("rows", 0), ("columns", 1)):
            sliced = tf.get_variable(
                name,
                value.shape,
                initializer=tf.zeros_initializer(),
                partitioner=tf.fixed_size_partitioner(3, axis),
            )
            session.run([v.initializer for v in sliced])
            for part, piece in zip(sliced, np.array_split(value, 3, axis), strict=True):
                part.load(piece, session)
        path = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    for name in ("rows", "columns"):
        np.testing.assert_array_equal(timberframe.train.load_variable(path, name), value)


def test_tensorflow_reads_our_graph_and_trains_it(tensorflow: Any, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.ones((3, 2), np.float32))
        y = tf.matmul(x, w, name="y")
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(y * y), step, name="train")
        tf.add_to_collection("train_op", train)

    def train(tf: Any) -> Any:
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(tf.get_collection("train_op"), {"x:0": np.ones((2, 3))})
            return session.run("y:0", {"x:0": np.ones((1, 3))})

    with timberframe.Graph().as_default():
        build(timberframe)
        timberframe.train.Saver().export_meta_graph(str(tmp_path / "m.meta"))
        found = train(timberframe)
    with tensorflow.Graph().as_default():
        tensorflow.train.import_meta_graph(str(tmp_path / "m.meta"))
        assert [v.name for v in tensorflow.trainable_variables()] == ["w:0"]
        np.testing.assert_allclose(train(tensorflow), found, rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_to_keep": 1},
        {"max_to_keep": 2, "save_relative_paths": True},
        {"max_to_keep": None},
        {"max_to_keep": 0, "pad_step_number": True},
        {"max_to_keep": 1, "keep_checkpoint_every_n_hours": 0.0},
    ],
    ids=str,
)
def test_same_checkpoints_stay(tensorflow: Any, tmp_path: Path, settings: dict[str, Any]) -> None:
    def outcome(tf: Any) -> Any:
        folder = tmp_path / tf.__name__
        folder.mkdir()
        with tf.Graph().as_default(), tf.Session() as session:
            tf.Variable(1.0, name="v")
            session.run(tf.global_variables_initializer())
            saver = tf.train.Saver(**settings)
            paths = [saver.save(session, str(folder / "m"), global_step=i) for i in (3, 4, 5, 4)]
            state = tf.train.get_checkpoint_state(str(folder))
            latest = tf.train.latest_checkpoint(str(folder))
        here = [state.model_checkpoint_path, latest, *paths]
        kept = sorted(p for p in set(paths) if tf.train.checkpoint_exists(p))
        names = [
            [Path(p).name for p in group]
            for group in (here, kept, saver.last_checkpoints, state.all_model_checkpoint_paths)
        ]
        raw = (folder / "checkpoint").read_text().splitlines()
        return names, sorted(Path(p).name for p in folder.glob("*.meta")), raw[0].replace(str(folder), "")

    assert outcome(timberframe) == outcome(tensorflow)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "bool", "complex64", "string"])
@pytest.mark.parametrize("times", [1, 2], ids=["new", "replaced"])
def test_tensorflow_restores_ours(tensorflow: Any, tmp_path: Path, dtype: str, times: int) -> None:
    tf, rng = timberframe, np.random.default_rng(3)
    values = {name: rng.integers(0, 100, shape) for name, shape in SHAPES.items()}
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in values.items():
            tf.Variable(tf.as_string(value) if dtype == "string" else tf.cast(value, dtype), name=name)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        for _ in range(times):
            path = saver.save(session, str(tmp_path / "model.ckpt"))
        saved = {v.op.name: np.asarray(session.run(v)) for v in tf.global_variables()}
    assert tensorflow.train.latest_checkpoint(str(tmp_path)) == path
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        variables = {n: tensorflow.Variable(tensorflow.zeros(v.shape, dtype), name=n) for n, v in saved.items()}
        tensorflow.train.Saver().restore(session, path)
        for name, found in session.run(variables).items():
            np.testing.assert_array_equal(found, saved[name])


def test_tensorflow_restores_parts_of_our_partitioned_variables(tensorflow: Any, tmp_path: Path) -> None:
    value = np.arange(35, dtype=np.float32).reshape(7, 5)
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        w = timberframe.get_variable(
            "w", initializer=timberframe.constant(value), partitioner=timberframe.fixed_size_partitioner(2)
        )
        session.run(timberframe.global_variables_initializer())
        path = timberframe.train.Saver([w]).save(session, str(tmp_path / "m"))
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        other = tensorflow.get_variable("w", [7, 5], partitioner=tensorflow.fixed_size_partitioner(3))
        tensorflow.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(tensorflow.convert_to_tensor(other)), value)


def test_tensorflow_imports_our_meta_graph_and_restores(tensorflow: Any, tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        fed = timberframe.placeholder(timberframe.float32, [None, 3], name="x")
        y = timberframe.identity(timberframe.layers.dense(fed, 4), name="y")
        session.run(timberframe.global_variables_initializer())
        expected = session.run(y, {fed: x})
        path = timberframe.train.Saver().save(session, str(tmp_path / "m"))
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        tensorflow.train.import_meta_graph(f"{path}.meta")
        tensorflow.train.Saver().restore(session, path)
        np.testing.assert_allclose(session.run("y:0", {"x:0": x}), expected, rtol=1e-5)


def test_tensorflow_goes_on_in_our_folder(tensorflow: Any, tmp_path: Path) -> None:
    value, name = np.arange(6, dtype=np.float32), "scope/v"
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        session.run(timberframe.Variable(value, name=name).initializer)
        ours = timberframe.train.Saver()
        path = [ours.save(session, str(tmp_path / "m")) for _ in range(2)][1]
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        v = tensorflow.Variable(np.zeros_like(value), name=name)
        saver = tensorflow.train.Saver(max_to_keep=1)
        saver.restore(session, path)
        saver.recover_last_checkpoints(tensorflow.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths)
        session.run(v.assign(-v))
        theirs = saver.save(session, str(tmp_path / "m"), global_step=1)
    assert not list(tmp_path.glob("m.*"))
    np.testing.assert_array_equal(timberframe.train.load_variable(theirs, name), -value)


def test_tensorflow_finds_our_many_names(tensorflow: Any, tmp_path: Path) -> None:
    names = [f"scope_{i % 7}/layer_{i}/a_long_name_of_a_variable" for i in range(3000)]
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        variables = [timberframe.Variable(float(i), name=name) for i, name in enumerate(names)]
        session.assign_variables(variables, [np.float32(i) for i in range(len(names))])
        path = timberframe.train.Saver().save(session, str(tmp_path / "m"), write_meta_graph=False)
    reader = tensorflow.train.load_checkpoint(path)
    assert [float(reader.get_tensor(name)) for name in names] == list(range(3000))


def test_monitored_training_goes_on_in_tensorflow_and_back(tensorflow: Any, tmp_path: Path) -> None:
    def train(tf: Any, last: int) -> Any:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=np.float32(1.0))
            update = tf.train.MomentumOptimizer(0.1, 0.9).minimize(w * w, step)
            hooks = [tf.train.StopAtStepHook(last_step=last)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=5, log_step_count_steps=None
            ) as session:
                first = session.run(step)
                while not session.should_stop():
                    session.run(update)
            return first, tf.train.load_variable(str(tmp_path), "w")

    assert train(timberframe, 6)[0] == 0
    assert train(tensorflow, 9)[0] == 6
    first, found = train(timberframe, 12)
    assert first == 9
    w, momentum = 1.0, 0.0
    for _ in range(12):
        momentum = 0.9 * momentum + 2 * w
        w -= 0.1 * momentum
    np.testing.assert_allclose(found, w, rtol=1e-5)

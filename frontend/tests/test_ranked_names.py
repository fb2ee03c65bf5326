"""Names of TensorFlow 1 that stopped public programs, by the paths that these import."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.compat.absent import hint
from timberframe.compat.programs import resolve

pytestmark = pytest.mark.usefixtures("graph")

NAMES = [
    "compat.complex_types",
    "compat.integral_types",
    "compat.real_types",
    "contrib.framework.python.ops.add_arg_scope",
    "contrib.graph_editor.graph_replace",
    "contrib.graph_editor.reroute.add_control_inputs",
    "contrib.layers.python.layers.batch_norm",
    "contrib.layers.python.layers.layer_norm",
    "contrib.learn.MetricSpec",
    "contrib.learn.RunConfig",
    "contrib.learn.datasets.mnist.read_data_sets",
    "contrib.learn.python.learn.datasets.base.Datasets",
    "contrib.learn.python.learn.datasets.mnist.DataSet",
    "contrib.learn.python.learn.monitored_session.MonitoredSession",
    "contrib.metrics.python.ops.set_ops.set_difference",
    "contrib.slim.queues.QueueRunners",
    "contrib.staging.StagingArea",
    "contrib.tensorboard.plugins.projector.visualize_embeddings",
    "profiler.Profiler",
    "python.framework.tensor_shape.unknown_shape",
    "python.ops.control_flow_ops.with_dependencies",
    "python.ops.data_flow_ops.StagingArea",
    "python.ops.rnn_cell_impl._Linear",
    "python.pywrap_tensorflow.EventsWriter",
    "python.training.monitored_session._HookedSession",
    "python.training.summary_io.SummaryWriterCache",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there(name: str) -> None:
    assert resolve(name) is not None
    assert hint(name) == ""


def test_a_value_waits_for_operations() -> None:
    v = tf.Variable(1.0)
    after = resolve("python.ops.control_flow_ops.with_dependencies")([tf.assign_add(v, 1.0)], tf.constant(3))
    with tf.Session() as session:
        session.run(v.initializer)
        assert (session.run(after), session.run(v)) == (3, 2)


def test_numbers_are_of_the_types_that_numpy_has_too() -> None:
    assert isinstance(np.int8(1), tf.compat.integral_types)
    assert isinstance(3, tf.compat.integral_types)
    assert not isinstance(3.0, tf.compat.integral_types)
    assert isinstance(np.float32(1), tf.compat.real_types)
    assert isinstance(1j, tf.compat.complex_types)


def test_shapes_by_their_ranks() -> None:
    shapes = resolve("python.framework.tensor_shape")
    assert [shapes.unknown_shape().ndims, shapes.unknown_shape(2).as_list()] == [None, [None, None]]
    assert [shapes.vector(3).as_list(), shapes.matrix(2, None).as_list(), shapes.scalar().as_list()] == [
        [3],
        [2, None],
        [],
    ]


@pytest.mark.parametrize("bias", [False, True])
def test_an_affine_map_is_called_again_with_its_variables(bias: bool) -> None:
    x = tf.constant([[1.0, 2.0]])
    made = resolve("python.ops.rnn_cell_impl._Linear")([x, x], 3, bias, tf.ones_initializer(), tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(made([x, x * 10.0])).tolist() == [[33 + bias] * 3]
    assert len(tf.trainable_variables()) == 1 + bias


def test_elements_wait_in_a_staging_area() -> None:
    area = tf.contrib.staging.StagingArea([tf.float32, tf.int32], [[], [2]], names=["x", "n"], capacity=2)
    put, get, size = area.put({"x": 1.0, "n": [2, 3]}), area.get(), area.size()
    clear = area.clear()
    with tf.Session() as session:
        session.run(put)
        session.run(put)
        assert session.run(size) == 2
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(put, options=tf.RunOptions(timeout_in_ms=50))
        found = session.run(get)
        assert (found["x"], found["n"].tolist()) == (1, [2, 3])
        session.run(clear)
        assert session.run(size) == 0
    with pytest.raises(ValueError, match="capacity is -1"):
        tf.contrib.staging.StagingArea([tf.float32], capacity=-1)


def test_peeking_leaves_elements_in_a_staging_area() -> None:
    area = tf.contrib.staging.StagingArea([tf.float32], shared_name="shared")
    index, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
    put, peek, get = area.put(x), area.peek(index), area.get()
    with tf.Session() as session:
        for value in (1.0, 2.0):
            session.run(put, {x: value})
        assert [session.run(peek, {index: i}) for i in (1, 0, 1)] == [[2], [1], [2]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="index is -1"):
            session.run(peek, {index: -1})
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(peek, {index: 2}, options=tf.RunOptions(timeout_in_ms=50))
        peeking: list[Any] = []
        thread = threading.Thread(target=lambda: peeking.append(session.run(peek, {index: 2})))
        thread.start()
        session.run(put, {x: 3.0})
        thread.join()
        assert peeking == [[3]]
        assert [session.run(get) for _ in range(3)] == [[1], [2], [3]]


def test_a_staging_area_holds_no_more_bytes_than_its_limit() -> None:
    area = tf.contrib.staging.StagingArea([tf.float32], memory_limit=12)
    x = tf.placeholder(tf.float32, [None])
    put, get = area.put(x), area.get()
    with tf.Session() as session:
        session.run(put, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(put, {x: [3.0, 4.0]}, options=tf.RunOptions(timeout_in_ms=50))
        with pytest.raises(tf.errors.ResourceExhaustedError, match="16 bytes; memory_limit is 12"):
            session.run(put, {x: [1.0] * 4})
        session.run(get)
        session.run(put, {x: [3.0, 4.0]})


def test_queues_run_within_a_block() -> None:
    queues = tf.contrib.slim.queues
    item = tf.train.input_producer([7.0], shuffle=False).dequeue()
    with tf.Session() as session, queues.QueueRunners(session):
        assert session.run(item) == 7
        with pytest.raises(queues.NestedQueueRunnerError), queues.QueueRunners(session):
            pass


def test_an_error_within_a_block_of_queue_runners_passes() -> None:
    with tf.Session() as session, pytest.raises(ZeroDivisionError), tf.contrib.slim.queues.QueueRunners(session):
        raise ZeroDivisionError


def test_a_projector_reads_which_variables_to_show(tmp_path: Path) -> None:
    projector = resolve("contrib.tensorboard.plugins.projector")
    config = projector.ProjectorConfig()
    config.embeddings.add(tensor_name="words", metadata_path="words.tsv").sprite.single_image_dim.extend([28, 28])
    with tf.summary.FileWriter(tmp_path) as writer:
        projector.visualize_embeddings(writer, config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "words"' in text
    assert text.count("single_image_dim: 28") == 2


def test_events_are_written_to_a_file_of_a_prefix(tmp_path: Path) -> None:
    writer = resolve("python.pywrap_tensorflow.EventsWriter")(f"{tmp_path}/run".encode())
    writer.WriteEvent(tf.Event(step=3))
    writer.Close()
    assert Path(writer.FileName().decode()).name.startswith("run.out.tfevents.")
    assert [e.step for e in tf.train.summary_iterator(writer.FileName().decode())] == [0, 3]


def test_a_metric_is_given_what_its_keys_name() -> None:
    spec = tf.contrib.learn.MetricSpec(tf.metrics.mean_absolute_error, "p", "l", "w")
    _, update = spec.create_metric_ops({"w": [[1.0], [0.0]]}, {"l": [[1.0], [2.0]]}, {"p": [[4.0], [9.0]]})
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(update) == 3
    with pytest.raises(ValueError, match="'x' must be among them"):
        tf.contrib.learn.MetricSpec(tf.metrics.accuracy, "x").create_metric_ops({}, [1.0], {"p": [1.0], "q": [1.0]})


def test_a_configuration_of_learn_is_one_of_estimators(tmp_path: Path) -> None:
    config = tf.contrib.learn.RunConfig(model_dir=str(tmp_path), log_device_placement=True, save_checkpoints_secs=9)
    assert isinstance(config, tf.estimator.RunConfig)
    assert (config.model_dir, config.save_checkpoints_secs) == (str(tmp_path), 9)
    assert config.session_config.log_device_placement


def network() -> Any:
    x = tf.placeholder(tf.float32, [8, 6], name="x")
    return tf.layers.dense(tf.layers.dense(x, 5, use_bias=False, name="a"), 3, use_bias=False, name="b")


def test_a_profile_counts_parameters_by_scopes(capsys: pytest.CaptureFixture[str]) -> None:
    network()
    options: Any = tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
    found = tf.profiler.profile(tf.get_default_graph(), options=options)
    assert found.total_parameters == 45
    assert [(c.name, c.total_parameters) for c in found.children] == [("a", 30), ("b", 15)]
    assert capsys.readouterr().out.splitlines()[:3] == [
        "_TFProfRoot (--/45 params)", "  a (--/30 params)", "    a/kernel (6x5, 30/30 params)",
    ]  # fmt: skip


def test_a_profile_counts_floating_operations(tmp_path: Path) -> None:
    network()
    builder = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.float_operation())
    options = builder.with_accounted_types(["MatMul"]).with_file_output(str(tmp_path / "x")).build()
    assert tf.profiler.profile(options=options).total_float_ops == 2 * 8 * 6 * 5 + 2 * 8 * 5 * 3
    assert "720" in (tmp_path / "x").read_text()


def test_a_profiler_shows_times_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    y = network()
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {"x:0": np.ones([8, 6])}, options=trace, run_metadata=metadata)
    profiler = tf.profiler.Profiler(tf.get_default_graph())
    profiler.add_step(0, metadata)
    found = profiler.profile_operations(tf.profiler.ProfileOptionBuilder().with_empty_output().build())
    assert any(child.name == "MatMul" for child in found.children)
    assert capsys.readouterr().out == ""

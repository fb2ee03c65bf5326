"""tf.summary: what summaries hold, and the files that TensorBoard reads."""

from __future__ import annotations

import io
import os
import shutil
import threading
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import timberframe as tf
from timberframe_core.graphdef import messages

pytestmark = pytest.mark.usefixtures("session")


def summary_of(session: tf.Session, tensor: Any) -> Any:
    return tf.summary.Summary.FromString(session.run(tensor))


def events(folder: Path) -> list[Any]:
    (file,) = folder.iterdir()
    return list(tf.train.summary_iterator(file))


def test_scalars_have_their_scope_as_tag(session: tf.Session) -> None:
    with tf.name_scope("net"):
        made = tf.summary.scalar("my loss", tf.constant(2.5))
    (value,) = summary_of(session, made).value
    assert (value.tag, value.simple_value) == ("net/my_loss", 2.5)


def test_family_comes_first(session: tf.Session) -> None:
    (value,) = summary_of(session, tf.summary.scalar("a", 1.0, family="f")).value
    assert value.tag == "f/f/a"


def test_histogram_counts_all_values(session: tf.Session) -> None:
    values = np.array([-1.0, 0.0, 0.0, 1e-13, 2.0, 1e30])
    (value,) = summary_of(session, tf.summary.histogram("h", values)).value
    histogram = value.histo
    assert (histogram.min, histogram.max, histogram.num) == (-1.0, 1e30, 6)
    assert (sum(histogram.bucket), histogram.sum) == (6, values.sum())
    below = dict(zip(histogram.bucket_limit, np.cumsum(histogram.bucket), strict=True))
    assert below[1e-12] == 4


def test_histogram_of_infinite_values_is_refused(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    made = tf.summary.histogram("h", x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="HistogramSummary 'h': values for tag 'h' have NaN"):
        session.run(made, {x: [1.0, np.nan]})


def test_an_image_without_a_color_of_its_own_goes_through_a_graphdef(session: tf.Session) -> None:
    pixels = np.full((1, 2, 2, 3), np.nan, np.float32)
    made = tf.raw_ops.ImageSummary(tag="i", tensor=pixels, name="made")
    (again,) = tf.import_graph_def(tf.get_default_graph().as_graph_def(), return_elements=["made:0"], name="again")
    assert session.run(again) == session.run(made)


def test_images_are_png(session: tf.Session) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3)).astype(np.uint8)
    first, second = summary_of(session, tf.summary.image("i", pixels)).value
    assert [first.tag, second.tag] == ["i/image/0", "i/image/1"]
    assert (second.image.height, second.image.width, second.image.colorspace) == (4, 5, 3)
    assert np.asarray(Image.open(io.BytesIO(second.image.encoded_image_string))).tolist() == pixels[1].tolist()


@pytest.mark.parametrize(
    ("pixels", "wanted"),
    [([0.0, 0.5, 2.0], [0, 63, 255]), ([-1.0, 0.0, 0.5], [1, 128, 191]), ([0.0, 0.0, 0.0], [0, 0, 0])],
)
def test_floats_are_scaled(session: tf.Session, pixels: list[float], wanted: list[int]) -> None:
    (value,) = summary_of(session, tf.summary.image("i", np.reshape(pixels, (1, 1, 3, 1)), 1)).value
    assert value.tag == "i/image"
    assert np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string))).ravel().tolist() == wanted


def test_sounds_are_wav(session: tf.Session) -> None:
    (value,) = summary_of(session, tf.summary.audio("a", [[0.0, 1.0, -2.0]], 8000.0, 1)).value
    with wave.open(io.BytesIO(value.audio.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [0, 32767, -32767]


def test_texts_name_their_plugin(session: tf.Session) -> None:
    (value,) = summary_of(session, tf.summary.text("t", ["a", "b"])).value
    assert value.metadata.plugin_data.plugin_name == "text"
    assert tf.make_ndarray(value.tensor).tolist() == [b"a", b"b"]


def test_merge_all_is_of_the_collection(session: tf.Session) -> None:
    assert tf.summary.merge_all() is None
    tf.summary.scalar("a", 1.0)
    tf.summary.scalar("b", 2.0, collections=["others"])
    assert [v.tag for v in summary_of(session, tf.summary.merge_all()).value] == ["a"]
    assert [v.tag for v in summary_of(session, tf.summary.merge_all("others")).value] == ["b"]


def test_tags_must_differ(session: tf.Session) -> None:
    a = tf.summary.scalar("a", 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="tag 'a' comes twice; tags must differ"):
        session.run(tf.summary.merge([a, a]))


def test_files_hold_events_in_order(tmp_path: Path, session: tf.Session) -> None:
    made = tf.summary.scalar("loss", 3.0)
    with tf.summary.FileWriter(tmp_path / "run", session.graph) as writer:
        writer.add_summary(session.run(made), 7)
        writer.add_session_log(tf.summary.SessionLog(status=tf.summary.SessionLog.STOP), 8)
    version, graph, summary, log = events(tmp_path / "run")
    assert version.file_version == "brain.Event:2"
    assert "loss" in [n.name for n in tf.GraphDef.FromString(graph.graph_def).node]
    assert (summary.step, summary.summary.value[0].simple_value) == (7, 3.0)
    assert log.session_log.status == tf.summary.SessionLog.STOP


def test_times_of_nodes_are_written_for_the_graph_page(tmp_path: Path, session: tf.Session) -> None:
    metadata = tf.RunMetadata()
    x = tf.random_uniform([4, 4])
    product = tf.matmul(x, x, name="product")
    looked_at = tf.py_func(lambda v: v, [product], tf.float32, name="looked_at")
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(looked_at, options=traced, run_metadata=metadata)
    with tf.summary.FileWriter(tmp_path) as writer:
        writer.add_run_metadata(metadata, "step 3", 3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="tag 'step 3' is in use"):
            writer.add_run_metadata(metadata, "step 3", 4)
        with pytest.raises(TypeError, match=r"a tf\.RunMetadata is required"):
            writer.add_run_metadata(b"", "step 5")
    _, event = events(tmp_path)
    assert (event.step, event.tagged_run_metadata.tag) == (3, "step 3")
    read = messages.RunMetadataMessage.FromString(event.tagged_run_metadata.run_metadata)
    (device,) = read.step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    stats = {node.node_name: node for node in device.node_stats}
    assert {"product", "looked_at", x.op.name} == set(stats)
    assert stats["product"].timeline_label == "product = MatMul()"
    assert stats["product"].all_end_rel_nanos > 0
    assert stats["product"].all_start_nanos > stats[x.op.name].all_start_nanos


def test_metadata_is_written_once_for_a_tag(tmp_path: Path, session: tf.Session) -> None:
    made = tf.summary.text("t", ["a"])
    with tf.summary.FileWriter(tmp_path) as writer:
        for step in range(2):
            writer.add_summary(session.run(made), step)
    found = [e.summary.value[0] for e in events(tmp_path)[1:]]
    assert [v.HasField("metadata") for v in found] == [True, False]


def test_events_reach_the_file_with_flush(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path)
    writer.add_summary(tf.summary.Summary(value=[tf.summary.Summary.Value(tag="a", simple_value=1)]), 1)
    writer.flush()
    assert len(events(tmp_path)) == 2
    writer.close()


def test_events_reach_the_file_after_flush_secs(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path, flush_secs=0.05)
    writer.add_summary(b"", 1)
    ends = time.monotonic() + 10
    while len(events(tmp_path)) < 2 and time.monotonic() < ends:
        time.sleep(0.01)
    assert len(events(tmp_path)) == 2
    writer.close()


def test_a_writer_without_waiting_events_needs_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    writer = tf.summary.FileWriter(tmp_path)
    writer.add_summary(b"", 1)
    writer.flush()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
    writer.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not report open files")
def test_a_writer_without_waiting_events_holds_no_file_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    writers = [tf.summary.FileWriter(tmp_path / str(i)) for i in range(20)]
    assert len(os.listdir("/proc/self/fd")) < before + 20
    for step in range(2):
        writers[0].add_summary(b"", step)
        writers[0].flush()
    assert [e.step for e in events(tmp_path / "0")] == [0, 0, 1]


def test_a_writer_whose_folder_was_removed_begins_another_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = tf.summary.FileWriter(folder)
    shutil.rmtree(folder)
    writer.add_summary(b"", 7)
    writer.flush()
    version, event = events(folder)
    assert (version.file_version, event.step) == ("brain.Event:2", 7)


def test_a_closed_writer_refuses_and_opens_again(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path)
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="FileWriter: is closed; `reopen`"):
        writer.add_summary(b"", 1)
    writer.reopen()
    writer.add_summary(b"", 1)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_two_writers_of_one_second_have_files_of_their_own(tmp_path: Path) -> None:
    for _ in range(2):
        tf.summary.FileWriter(tmp_path).close()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tf.summary.image("i", np.zeros((1, 2, 2, 2), np.float32)),
            r"has shape \(1, 2, 2, 2\).*1, 3 or 4 channels",
        ),
        (lambda: tf.summary.text("t", 3.0), "tensor has dtype float32; string is required"),
        (lambda: tf.summary.audio("a", [1.0], 8000.0), r"tensor has shape \(1,\)"),
    ],
)
def test_wrong_arguments(session: tf.Session, call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(call())

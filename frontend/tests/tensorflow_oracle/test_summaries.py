"""Summaries equal TensorFlow's, byte for byte but for the order of sums and the compression of pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import timberframe

RNG = np.random.default_rng(1)
VALUES = [
    RNG.standard_normal(1000),
    np.zeros(3),
    np.array([]),
    np.array([1e-13, 1e25, -5, 0]),
    RNG.integers(-5, 5, 40),
]
PICTURES = [
    RNG.random((4, 3, 5, 3)).astype(np.float32),
    RNG.standard_normal((2, 3, 5, 1)).astype(np.float32),
    np.zeros((1, 2, 2, 4), np.float32),
    RNG.integers(0, 255, (1, 5, 5, 3)).astype(np.uint8),
    np.where(RNG.random((1, 4, 4, 3)) < 0.1, np.nan, RNG.standard_normal((1, 4, 4, 3))).astype(np.float32),
]


def both(build: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Returns the summary that TensorFlow makes, and ours, as messages of ours."""
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            made.append(timberframe.summary.Summary.FromString(session.run(build(tf))))
    return made[0], made[1]


@pytest.mark.parametrize("values", VALUES, ids=["normal", "zeros", "none", "wide", "integers"])
def test_histograms(values: np.ndarray) -> None:
    theirs, ours = both(lambda tf: tf.summary.histogram("a b", values, family="f"))
    for name in ("sum", "sum_squares"):
        wanted, got = (getattr(s.value[0].histo, name) for s in (theirs, ours))
        assert got == pytest.approx(wanted, rel=1e-12)
        setattr(ours.value[0].histo, name, wanted)
    assert ours == theirs


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("pictures", PICTURES, ids=["positive", "signed", "zeros", "bytes", "nan"])
def test_images(pictures: np.ndarray, most: int) -> None:
    theirs, ours = both(lambda tf: tf.summary.image("i", pictures, most))
    for a, b in zip(theirs.value, ours.value, strict=True):
        pixels = [np.asarray(Image.open(io.BytesIO(v.image.encoded_image_string))) for v in (a, b)]
        assert pixels[1].tolist() == pixels[0].tolist()
        b.image.encoded_image_string = a.image.encoded_image_string
        assert b == a


def test_numbers_and_texts() -> None:
    for build in (
        lambda tf: tf.summary.scalar("x y/z", 3.0),
        lambda tf: tf.summary.text("t", tf.constant(["a", "b"])),
        lambda tf: tf.summary.merge([tf.summary.scalar("a", 1.0), tf.summary.scalar("b", 2.0)]),
    ):
        theirs, ours = both(build)
        assert ours == theirs


def test_tensorflow_reads_the_times_of_nodes() -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    metadata = timberframe.RunMetadata()
    options = timberframe.RunOptions(trace_level=timberframe.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        x = timberframe.random_uniform([4, 4], name="x")
        session.run(timberframe.matmul(x, x, name="product"), options=options, run_metadata=metadata)
    read = tensorflow.RunMetadata.FromString(metadata.SerializeToString())
    nodes = [node for device in read.step_stats.dev_stats for node in device.node_stats]
    assert "product" in [node.node_name for node in nodes]
    assert all(node.all_end_rel_micros == node.all_end_rel_nanos // 1000 for node in nodes)
    assert "product" in [node.name for graph in read.partition_graphs for node in graph.node]

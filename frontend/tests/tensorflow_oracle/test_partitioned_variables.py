"""Variables in parts have TensorFlow's names and parts, and its checkpoints fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as ours

VALUE = np.arange(14, dtype=np.float32).reshape(7, 2)


def build(tf: Any, count: int) -> Any:
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(count)):
        v = tf.get_variable("v", initializer=tf.constant(VALUE), use_resource=True)
    step = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(tf.square(tf.convert_to_tensor(v))))
    return v, step


def test_parts_have_the_same_names_and_shapes(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default():
            build(tf, 3)
            found.append(sorted((v.op.name, v.shape.as_list()) for v in tf.global_variables()))
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [3, 2])
def test_checkpoints_of_tensorflow_fit(tensorflow: Any, tmp_path: Path, count: int) -> None:
    values = []
    for tf, parts in ((tensorflow, 3), (ours, count)):
        with tf.Graph().as_default(), tf.Session() as session:
            v, step = build(tf, parts)
            saver = tf.train.Saver()
            if tf is tensorflow:
                session.run(tf.global_variables_initializer())
                session.run(step)
                saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, str(tmp_path / "model"))
            session.run(step)
            values.append(session.run(tf.convert_to_tensor(v)))
    np.testing.assert_allclose(*values, rtol=1e-6)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_lookups_are_the_same(tensorflow: Any, strategy: str) -> None:
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            v, _ = build(tf, 3)
            rows = tf.nn.embedding_lookup(v, [[6, 0], [3, 4]], partition_strategy=strategy)
            session.run(tf.global_variables_initializer())
            found.append(session.run(rows).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("shape", [[10, 5], [3, 4], [1, 100]])
def test_partitioners_divide_alike(tensorflow: Any, shape: list[int]) -> None:
    found = []
    for tf in (ours, tensorflow):
        made = [
            tf.fixed_size_partitioner(4), tf.fixed_size_partitioner(4, 1), tf.variable_axis_size_partitioner(64),
            tf.variable_axis_size_partitioner(64, max_shards=2), tf.min_max_variable_partitioner(3, 0, 50),
        ]  # fmt: skip
        found.append([list(p(shape=tf.TensorShape(shape), dtype=tf.float32)) for p in made])
    assert found[0] == found[1]

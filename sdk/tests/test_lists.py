"""Lists of tensors on a device whose memory the host does not see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

ROWS = np.arange(140, dtype=np.float32).reshape(70, 2)  # more rows than one kernel puts together


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device("/device:ASYNC:0"), tf.Session(graph=graph) as session:
        yield session


def test_rows_go_apart_and_together(session: tf.Session) -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    array = tf.TensorArray(tf.float32, 70).unstack(rows + rows)
    found = session.run([array.read(69), array.stack(), array.gather([3, 0])], {rows: ROWS})
    assert [f.tolist() for f in found] == [x.tolist() for x in (2 * ROWS[69], 2 * ROWS, 2 * ROWS[[3, 0]])]


def test_pieces_go_apart_and_together(session: tf.Session) -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).split(rows + rows, [1, 60, 9])
    found = session.run([array.read(2), array.concat()], {rows: ROWS})
    assert [f.tolist() for f in found] == [(2 * ROWS[61:]).tolist(), (2 * ROWS).tolist()]


def test_lists_are_added(session: tf.Session) -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    lists = [apply_op("TensorListFromTensor", [x, [2]], {"shape_type": tf.int32}) for x in (rows, rows * rows)]
    total = apply_op("TensorListStack", [apply_op("AddN", [lists]), [2]], {"element_dtype": tf.float32})
    assert session.run(total, {rows: ROWS}).tolist() == (ROWS + ROWS * ROWS).tolist()


@pytest.mark.parametrize("dense", [True, False])
def test_loop_and_its_gradient(session: tf.Session, dense: bool) -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    squares = tf.map_fn(lambda r: r * r, rows)
    fetches = [squares, tf.gradients(squares, rows)[0]]
    with tf.Session(graph=session.graph, config=tf.SessionConfig(optimizations={"dense_lists": dense})) as chosen:
        found = chosen.run(fetches, {rows: ROWS[:5]})
    assert [f.tolist() for f in found] == [(ROWS[:5] ** 2).tolist(), (2 * ROWS[:5]).tolist()]

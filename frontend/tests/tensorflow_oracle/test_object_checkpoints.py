"""Checkpoints of objects: TensorFlow restores ours, and its are restored here, with nothing left on either side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe.eager.context import eager_mode

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
OPTIMIZERS = {
    "adam": lambda tf: tf.train.AdamOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.1, centered=True),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(0.1),
}


@pytest.fixture
def eager(tensorflow: Any) -> Iterator[Any]:
    """TensorFlow, with eager execution in both libraries."""
    from tensorflow.python.eager import context

    with context.eager_mode(), eager_mode():
        yield tensorflow


def trained(tf: Any, optimizer: str, start: float, steps: int) -> tuple[Any, list[Any]]:
    """Returns a Checkpoint of what has been trained eagerly so many steps, and its variables."""
    weights = tf.Variable(np.full([2, 3], start, np.float32), name="weights")
    parts = [tf.Variable(np.full([3], start, np.float32)), tf.Variable(np.int64(steps), trainable=False)]
    names = tf.Variable([b"a", b"", b"ccc" * steps], trainable=False)
    own = OPTIMIZERS[optimizer](tf)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(X, weights) + parts[0] - 1.0))
        own.apply_gradients(zip(tape.gradient(loss, [weights, parts[0]]), [weights, parts[0]], strict=True))
    inner = tf.train.Checkpoint(names=names, again=weights)
    made = tf.train.Checkpoint(**{"weights": weights, "parts": parts, "inner.x/y": inner, "optimizer": own})
    return made, [weights, *parts, names, *sorted(own.variables(), key=lambda v: (v.name, v.shape.as_list()))]


def carried(source: Any, target: Any, optimizer: str, folder: Path) -> tuple[list[Any], list[Any]]:
    """Returns the values of a training in one library, and those of the other after it has restored them."""
    checkpoint, variables = trained(source, optimizer, 0.5, 3)
    path = checkpoint.save(str(folder / "ckpt"))
    other, restored = trained(target, optimizer, 0.25, 1)
    other.restore(path).assert_consumed()
    assert int(other.save_counter) == 1
    saved, found = ([v.numpy().tolist() for v in vs] for vs in (variables, restored))
    return saved, found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_tensorflow_restores_ours(eager: Any, tmp_path: Path, optimizer: str) -> None:
    ours, theirs = carried(timberframe, eager, optimizer, tmp_path)
    assert theirs == ours


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_we_restore_tensorflows(eager: Any, tmp_path: Path, optimizer: str) -> None:
    theirs, ours = carried(eager, timberframe, optimizer, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_equal_objects_have_equal_names(eager: Any, tmp_path: Path, optimizer: str) -> None:
    found = []
    for tf in (timberframe, eager):
        path = trained(tf, optimizer, 0.5, 1)[0].save(str(tmp_path / "ckpt"))
        found.append(eager.train.list_variables(path))
        assert timberframe.train.list_variables(path) == found[-1]
    assert found[0] == found[1]


def test_tensorflow_finds_the_latest_of_a_manager(eager: Any, tmp_path: Path) -> None:
    v = timberframe.Variable(0.0)
    manager = timberframe.train.CheckpointManager(timberframe.train.Checkpoint(v=v), str(tmp_path), max_to_keep=2)
    for i in range(4):
        v.assign(float(i))
        manager.save()
    other = eager.Variable(9.0)
    checkpoint = eager.train.Checkpoint(v=other)
    theirs = eager.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert theirs.checkpoints == manager.checkpoints
    checkpoint.restore(theirs.latest_checkpoint).assert_consumed()
    assert float(other) == 3.0


def test_graphs_carry_over(tensorflow: Any, tmp_path: Path) -> None:
    def step(tf: Any, start: float, restored: str | None) -> tuple[str, list[Any]]:
        with tf.Graph().as_default():
            v = tf.get_variable("v", initializer=np.full([2], start, np.float32), use_resource=True)
            optimizer = tf.train.AdamOptimizer(0.1)
            train = optimizer.minimize(tf.reduce_sum(v * v))
            checkpoint = tf.train.Checkpoint(v=v, optimizer=optimizer)
            with tf.Session() as session:
                status = checkpoint.restore(restored)
                status.initialize_or_restore(session)
                if restored is None:
                    session.run(train)
                else:
                    status.assert_consumed()
                return checkpoint.save(str(tmp_path / "ckpt"), session), session.run([v, *optimizer.variables()])

    for source, target in ((timberframe, tensorflow), (tensorflow, timberframe)):
        path, values = step(source, 3.0, None)
        np.testing.assert_equal(step(target, 5.0, path)[1], values)

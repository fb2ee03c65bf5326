"""tf.train.Checkpoint in graphs with sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")


def test_variables_are_restored_when_the_status_is_asked_to(session: tf.Session, tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    session.run(v.initializer)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    session.run(v.assign([5.0, 6.0]))
    status = checkpoint.restore(path)
    assert session.run(v).tolist() == [5, 6]
    status.assert_consumed().run_restore_ops()
    assert session.run(v).tolist() == [1, 2]


def test_what_the_checkpoint_lacks_is_initialized(session: tf.Session, tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    session.run(v.initializer)
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "ckpt"))
    other, new = tf.Variable(0.0), tf.Variable(7.0)
    tf.train.Checkpoint(v=other, new=new).restore(path).initialize_or_restore(session)
    assert session.run([other, new]) == [1, 7]


def test_without_a_checkpoint_all_is_initialized(session: tf.Session) -> None:
    v, optimizer = tf.Variable(2.0), tf.train.AdamOptimizer(0.1)
    optimizer.minimize(v * v)
    tf.train.Checkpoint(v=v, optimizer=optimizer).restore(None).initialize_or_restore()
    assert session.run(optimizer.get_slot(v, "m")) == 0


def test_training_goes_on_with_its_optimizer(session: tf.Session, tmp_path: Path) -> None:
    def build() -> tuple[Any, Any, Any]:
        v, optimizer = tf.Variable([3.0, 4.0]), tf.train.AdamOptimizer(0.1)
        step = optimizer.minimize(tf.reduce_sum(v * v))
        return v, step, tf.train.Checkpoint(v=v, optimizer=optimizer)

    (v, step, checkpoint), (w, other_step, other) = build(), build()
    session.run(tf.global_variables_initializer())
    session.run(step)
    other.restore(checkpoint.save(str(tmp_path / "ckpt"))).assert_consumed().run_restore_ops()
    session.run([step, other_step])
    np.testing.assert_array_equal(*session.run([v, w]))


def test_saves_are_counted(session: tf.Session, tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    session.run(v.initializer)
    checkpoint = tf.train.Checkpoint(v=v)
    assert [checkpoint.save(str(tmp_path / "c"), session)[-2:] for _ in range(3)] == ["-1", "-2", "-3"]
    assert session.run(checkpoint.save_counter) == 3


def test_a_manager_saves_by_the_default_session(session: tf.Session, tmp_path: Path) -> None:
    step = tf.train.get_or_create_global_step()
    session.run(step.initializer)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), str(tmp_path), max_to_keep=1)
    session.run(step.assign(12))
    assert manager.save(step) == str(tmp_path / "ckpt-12")


def test_a_variable_without_a_value_is_named(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0, name="weights"))
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"Checkpoint: 1 of 1 variables .* value: 'weights'"):
        checkpoint.write(str(tmp_path / "ckpt"))
    assert not list(tmp_path.iterdir())


def test_a_damaged_checkpoint_changes_nothing(session: tf.Session, tmp_path: Path) -> None:
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
    session.run([v.initializer, w.initializer])
    checkpoint = tf.train.Checkpoint(v=v, w=w)
    path = checkpoint.write(str(tmp_path / "ckpt"))
    session.run([v.assign([5.0, 6.0]), w.assign([7.0])])
    (data,) = tmp_path.glob("*.data-*")
    data.write_bytes(data.read_bytes()[:-1] + b"?")
    with pytest.raises(tf.errors.DataLossError, match="its checksum is wrong"):
        checkpoint.restore(path).run_restore_ops()
    assert [x.tolist() for x in session.run([v, w])] == [[5, 6], [7]]

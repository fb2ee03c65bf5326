"""tf.train.Checkpoint and CheckpointManager in eager execution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

X: Any = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def restored(checkpoint: Any, **objects: Any) -> Any:
    """Returns the status of other objects that were restored from the latest checkpoint."""
    return tf.train.Checkpoint(**objects).restore(checkpoint)


def test_a_variable_has_the_path_of_its_attributes_as_its_name(tmp_path: Path) -> None:
    inner = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    path = tf.train.Checkpoint(**{"a/b": inner, "many": [tf.Variable(3), {"x": tf.Variable(4)}]}).save(
        str(tmp_path / "ckpt")
    )
    assert path == str(tmp_path / "ckpt-1")
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    names = [name for name, _ in tf.train.list_variables(path) if name[0] != "_"]
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert names == [f"{x}{ending}" for x in ("a.Sb/v", "many/0", "many/1/x", "save_counter")]
    assert tf.train.load_variable(path, f"a.Sb/v{ending}").tolist() == [1, 2]


def test_a_variable_is_restored_at_once(tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    v.assign([5.0, 6.0])
    checkpoint.restore(path).assert_consumed()
    assert v.numpy().tolist() == [1, 2]


def test_an_attribute_that_is_set_later_is_restored_then(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(str(tmp_path / "ckpt"))
    later = tf.train.Checkpoint(a=tf.Variable(0.0))
    status = later.restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint .*: b/\.ATTRIBUTES/VARIABLE_VALUE;"):
        status.assert_consumed()
    later.b = tf.Variable(0.0)
    assert (float(later.a), float(later.b)) == (1, 2)
    status.assert_consumed()


def test_a_layer_that_is_built_later_is_restored_then(tmp_path: Path) -> None:
    layer = tf.layers.Dense(3)
    expected = layer(X).numpy()
    path = tf.train.Checkpoint(layer=layer).save(str(tmp_path / "ckpt"))
    other = tf.layers.Dense(3)
    status = restored(path, layer=other)
    np.testing.assert_array_equal(other(X).numpy(), expected)
    status.assert_consumed()


def test_slots_that_are_made_later_are_restored_then(tmp_path: Path) -> None:
    def trained(optimizer: Any, v: Any, steps: int) -> list[float]:
        for _ in range(steps):
            optimizer.minimize(lambda: tf.reduce_sum(v * v))
        found: list[float] = v.numpy().tolist()
        return found

    v, optimizer = tf.Variable([3.0, 4.0]), tf.train.AdamOptimizer(0.1)
    trained(optimizer, v, 2)
    path = tf.train.Checkpoint(v=v, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    w, other = tf.Variable([0.0, 0.0]), tf.train.AdamOptimizer(0.1)
    status = restored(path, v=w, optimizer=other)
    assert trained(other, w, 2) == trained(optimizer, v, 2)
    status.assert_consumed()


def test_what_a_value_was_changed_to_after_a_restore_stays(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(str(tmp_path / "ckpt"))
    later = tf.train.Checkpoint(a=tf.Variable(0.0))
    later.restore(path)
    later.a.assign(7.0)
    later.b = tf.Variable(0.0)
    assert (float(later.a), float(later.b)) == (7, 2)


def test_a_metric_is_restored(tmp_path: Path) -> None:
    metric = tf.contrib.eager.metrics.Mean()
    metric([1.0, 2.0])
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    other = tf.contrib.eager.metrics.Mean()
    restored(path, metric=other).assert_consumed()
    assert float(other.result()) == 1.5


def test_an_object_that_the_checkpoint_does_not_have_is_named(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0)).save(str(tmp_path / "ckpt"))
    status = restored(path, a=tf.Variable(0.0), b=tf.Variable(0.0))
    with pytest.raises(AssertionError, match=r"not bound to values of checkpoint .*: b/\.ATTRIBUTES/VARIABLE_VALUE;"):
        status.assert_existing_objects_matched()
    assert status.assert_nontrivial_match() is status


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0)).write(str(tmp_path / "ckpt"))
    with pytest.raises(AssertionError, match="Nothing except the root object"):
        restored(path, b=tf.Variable(0.0)).assert_nontrivial_match()


def test_another_shape_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable([1.0, 2.0])).save(str(tmp_path / "ckpt"))
    a, b = tf.Variable(0.0), tf.Variable([0.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'b/\.ATTRIBUTES/VARIABLE_VALUE' has shape \(2,\) in it"):
        restored(path, a=a, b=b)
    assert float(a) == 0


def test_a_checkpoint_of_a_saver_is_restored_by_the_names_of_variables(tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0], name="weights")
    path = tf.train.Saver([v]).save(None, str(tmp_path / "model"))
    other, unknown = tf.Variable([0.0, 0.0], name="weights"), tf.Variable(0.0, name="unknown")
    restored(path, v=other).assert_consumed()
    assert other.numpy().tolist() == [1, 2]
    with pytest.raises(AssertionError, match=r"u/\.ATTRIBUTES"):
        restored(path, v=other, u=unknown).assert_existing_objects_matched()


def test_no_checkpoint_restores_nothing() -> None:
    v = tf.Variable(1.0)
    status = tf.train.Checkpoint(v=v).restore(None)
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_consumed()
    status.initialize_or_restore()
    assert float(v) == 1


def test_what_has_no_variables_is_an_error() -> None:
    with pytest.raises(ValueError, match="Checkpoint: rate is a float; a variable, optimizer"):
        tf.train.Checkpoint(rate=0.1)


def test_an_overwritten_checkpoint_is_the_new_one(tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    path = tf.train.Saver({"v": v}).save(None, str(tmp_path / "ckpt"))
    checkpoint = tf.train.Checkpoint(v=v)
    for value in (2.0, 3.0):
        v.assign(value)
        assert checkpoint.write(path) == path
    assert tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE") == 3


def test_a_manager_keeps_the_latest(tmp_path: Path) -> None:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), str(tmp_path), max_to_keep=2)
    paths = [manager.save() for _ in range(4)]
    assert paths == [str(tmp_path / f"ckpt-{i}") for i in range(1, 5)]
    assert manager.checkpoints == paths[2:]
    assert manager.latest_checkpoint == tf.train.latest_checkpoint(str(tmp_path)) == paths[3]
    assert sorted(p.name for p in tmp_path.glob("*.index")) == ["ckpt-3.index", "ckpt-4.index"]
    assert len(list(tmp_path.iterdir())) == 5


def test_a_manager_goes_on_with_the_checkpoints_of_its_folder(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    kept = [first.save(), first.save()]
    second = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert (second.checkpoints, second.latest_checkpoint) == (kept, kept[1])
    assert second.save(checkpoint_number=tf.constant(9)) == str(tmp_path / "ckpt-9")
    assert second.checkpoints == [kept[1], str(tmp_path / "ckpt-9")]
    assert not tf.train.checkpoint_exists(kept[0])


def test_a_manager_preserves_one_of_each_period(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 1, keep_checkpoint_every_n_hours=1e-12)
    paths = [manager.save() for _ in range(3)]
    assert manager.checkpoints == paths[2:]
    assert all(tf.train.checkpoint_exists(path) for path in paths)


def test_a_manager_of_no_checkpoints_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_to_keep is 0; it must be positive"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), 0)

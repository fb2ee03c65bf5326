"""Trainings that go on from checkpoints: values, random numbers, elements of datasets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def model() -> Any:
    """Returns a small training with dropout on random numbers, none of which has a seed."""
    x = tf.random_normal([8, 4])
    hidden = tf.nn.dropout(tf.layers.dense(x, 5, tf.nn.relu), rate=0.5)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - tf.reduce_sum(x, 1, keepdims=True)))
    return tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())


def final(folder: Path) -> dict[str, np.ndarray]:
    """Returns the values of the latest checkpoint."""
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def train(
    folder: Path, last: int, build: Callable[[], Any] = model, every: int = 2, seed: int | None = 3, **settings: Any
) -> None:
    """Trains up to a step, from the latest checkpoint on."""
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        step = build()
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder),
            save_checkpoint_steps=every,
            hooks=[tf.train.StopAtStepHook(last_step=last)],
            **settings,
        ) as session:
            while not session.should_stop():
                session.run(step)


def test_checkpoints_have_the_names_of_their_steps(tmp_path: Path) -> None:
    train(tmp_path, 5)
    names = [os.path.basename(p) for p in tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths]
    assert names == ["model.ckpt-0", "model.ckpt-2", "model.ckpt-4", "model.ckpt-5"]


def test_training_that_goes_on_ends_as_training_that_was_not_interrupted(tmp_path: Path) -> None:
    train(tmp_path / "one", 7)
    train(tmp_path / "two", 3)
    train(tmp_path / "two", 7)
    one, two = final(tmp_path / "one"), final(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def shuffled() -> Any:
    """Returns a training on a shuffled dataset, with dropout."""
    rows = tf.data.Dataset.from_tensor_slices(np.arange(20, dtype=np.float32)).shuffle(20).repeat()
    x = tf.nn.dropout(rows.batch(3).make_one_shot_iterator().get_next(), rate=0.4)
    total = tf.get_variable("total", [], initializer=tf.random_normal_initializer())
    with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
        return tf.train.get_or_create_global_step().assign_add(1)


def test_training_without_seeds_goes_on_as_it_would_have(tmp_path: Path) -> None:
    train(tmp_path, 9, shuffled, every=4, seed=None)
    expected = final(tmp_path)["total"]
    tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "model.ckpt-4"))
    train(tmp_path, 9, shuffled, every=4, seed=None)
    assert final(tmp_path)["total"] == expected


def test_positions_are_removed_with_their_checkpoint(tmp_path: Path) -> None:
    train(tmp_path, 8, every=1)
    assert sorted(p.name for p in tmp_path.glob("*.positions")) == [f"model.ckpt-{i}.positions" for i in range(4, 9)]


def test_positions_of_equal_trainings_are_equal_files(tmp_path: Path) -> None:
    train(tmp_path / "one", 3)
    train(tmp_path / "two", 3)
    one, two = ((tmp_path / name / "model.ckpt-3.positions").read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_hooks_draw_when_a_session_is_made_does_not_change_the_training(tmp_path: Path) -> None:
    class Draws(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            if session.run(tf.train.get_global_step()):
                session.run([op for op in session.graph.get_operations() if op.type == "RandomStandardNormal"])

    train(tmp_path / "one", 5)
    train(tmp_path / "two", 3)
    train(tmp_path / "two", 5, chief_only_hooks=[Draws()])
    one, two = final(tmp_path / "one"), final(tmp_path / "two")
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def rows_of(*numbers: float) -> Callable[[], Any]:
    """Returns a model that adds the elements of a dataset."""

    def build() -> Any:
        x = tf.data.Dataset.from_tensor_slices(list(numbers)).make_one_shot_iterator().get_next()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        with tf.control_dependencies([total.assign_add(x)]):
            return tf.train.get_or_create_global_step().assign_add(1)

    return build


def test_a_dataset_goes_on(tmp_path: Path) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))
    train(tmp_path, 3, rows_of(1.0, 2.0, 3.0))
    assert final(tmp_path)["total"] == 6.0


def test_a_dataset_that_has_ended_begins_again(tmp_path: Path) -> None:
    train(tmp_path, 9, rows_of(1.0, 2.0, 3.0))
    train(tmp_path, 9, rows_of(1.0, 2.0, 3.0))
    assert final(tmp_path)["total"] == 12.0


def test_a_dataset_that_has_ended_begins_again_without_a_block(tmp_path: Path) -> None:
    for expected in (6.0, 12.0):
        with tf.Graph().as_default():
            step = rows_of(1.0, 2.0, 3.0)()
            session = tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=1)
            with pytest.raises(tf.errors.OutOfRangeError):
                _run_for_ever(session, step)
            session.close()
        assert final(tmp_path)["total"] == expected


def _run_for_ever(session: Any, step: Any) -> None:
    while True:
        session.run(step)


def test_a_dataset_of_another_form_begins_at_its_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))

    def batched() -> Any:
        x = tf.data.Dataset.from_tensor_slices([10.0, 20.0]).batch(2).make_one_shot_iterator().get_next()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
            return tf.train.get_or_create_global_step().assign_add(1)

    train(tmp_path, 3, batched)
    assert final(tmp_path)["total"] == 33.0
    assert "its position is of another dataset" in caplog.text


def test_an_evaluation_begins_at_the_start_of_its_dataset(tmp_path: Path) -> None:
    train(tmp_path, 2, rows_of(1.0, 2.0, 3.0))
    with tf.Graph().as_default():
        x = tf.data.Dataset.from_tensor_slices([5.0, 6.0]).make_one_shot_iterator().get_next()
        tf.get_variable("total", [])
        tf.train.get_or_create_global_step()
        with tf.train.SingularMonitoredSession(checkpoint_dir=str(tmp_path)) as session:
            assert session.run(x) == 5.0


def test_damaged_positions_are_an_error(tmp_path: Path) -> None:
    train(tmp_path, 3)
    path = tmp_path / "model.ckpt-3.positions"
    path.write_bytes(path.read_bytes()[:-3] + b"abc")
    with pytest.raises(tf.errors.DataLossError, match="positions"):
        train(tmp_path, 5)


def test_an_evaluation_does_without_damaged_positions(tmp_path: Path) -> None:
    train(tmp_path, 3)
    (tmp_path / "model.ckpt-3.positions").write_bytes(b"damaged")
    model()
    with tf.train.SingularMonitoredSession(checkpoint_dir=str(tmp_path)) as session:
        assert session.run(tf.train.get_global_step()) == 3


def test_listeners_are_called_around_each_checkpoint(step: Any, tmp_path: Path) -> None:
    calls: list[Any] = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self) -> None:
            calls.append("begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            calls.append(("before", global_step_value))

        def after_save(self, session: Any, global_step_value: int) -> bool:
            calls.append(("after", global_step_value))
            return global_step_value == 2

        def end(self, session: Any, global_step_value: int) -> None:
            calls.append(("end", global_step_value))

    saver = tf.train.Saver()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1, saver=saver, listeners=[Listener()])
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            session.run(step)
    saves = [(moment, i) for i in range(3) for moment in ("before", "after")]
    assert calls == ["begin", *saves, ("end", 2)]


def test_a_checkpoint_that_is_named_and_missing_is_an_error(tmp_path: Path) -> None:
    train(tmp_path, 2)
    for path in tmp_path.glob("model.ckpt-2*"):
        path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match=r"model\.ckpt-2"):
        train(tmp_path, 4)


@pytest.mark.slow
def test_killed_trainings_end_with_the_bits_of_one_that_was_not() -> None:
    script = Path(__file__).parents[1] / "killing/kill_training.py"
    done = subprocess.run([sys.executable, script, "--kills", "4"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every time the result had the same bits" in done.stdout

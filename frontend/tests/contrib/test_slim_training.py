"""slim.learning and slim.evaluation: a training under a Supervisor, and metrics of its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

slim = tf.contrib.slim
X = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
Y = 3 * X + 1


def linear_loss() -> Any:
    made = slim.fully_connected(tf.constant(X), 1, activation_fn=None, scope="line")
    return tf.losses.mean_squared_error(Y, made), made


def train(logdir: str | None, steps: int) -> Any:
    with tf.Graph().as_default():
        loss, _ = linear_loss()
        tf.summary.scalar("loss", loss)
        train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.3))
        return slim.learning.train(train_op, logdir, number_of_steps=steps, log_every_n_steps=10)


def test_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    folder = str(tmp_path)
    first = train(folder, 5)
    assert tf.train.latest_checkpoint(folder) == f"{folder}/model.ckpt-5"
    last = train(folder, 80)
    assert last < 1e-6 < first
    assert tf.train.latest_checkpoint(folder) == f"{folder}/model.ckpt-80"


def test_training_without_a_folder_writes_nothing() -> None:
    assert train(None, 60) < 1e-4


def test_a_step_function_decides_when_to_stop(tmp_path: Path) -> None:
    def step(session: Any, train_op: Any, global_step: Any, arguments: Any) -> tuple[Any, Any]:
        loss, _ = slim.learning.train_step(session, train_op, global_step, arguments)
        losses.append(loss)
        return loss, len(losses) == 3

    losses: list[float] = []
    loss, _ = linear_loss()
    train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    assert slim.learning.train(train_op, str(tmp_path), train_step_fn=step) == losses[-1]
    assert losses[0] > losses[1] > losses[2]


def test_a_synchronous_optimizer_takes_its_steps() -> None:
    loss, _ = linear_loss()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.3), 1)
    train_op = slim.learning.create_train_op(loss, optimizer)
    assert slim.learning.train(train_op, None, number_of_steps=60, sync_optimizer=optimizer) < 1e-4


def test_timelines_of_steps_are_written(tmp_path: Path) -> None:
    loss, _ = linear_loss()
    train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    slim.learning.train(train_op, str(tmp_path), number_of_steps=5, trace_every_n_steps=2)
    assert sorted(f.name for f in tmp_path.glob("tf_trace-*")) == [f"tf_trace-{step}.json" for step in (1, 3, 5)]


def test_a_replica_begins_at_its_step() -> None:
    step = tf.train.create_global_step()
    queue = tf.FIFOQueue(5, tf.int64)
    with tf.control_dependencies([tf.assign_add(step, 1)]):  # what the other replicas do
        enqueue = queue.enqueue(1)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
    first = slim.learning.train(
        tf.constant(0.0), None, lambda session, *_: (session.run(step), True), is_chief=False, ready_op=None,
        local_init_op=tf.global_variables_initializer(), startup_delay_steps=3,
    )  # fmt: skip
    assert first >= 3


def test_checkpoints_are_evaluated(tmp_path: Path) -> None:
    train(str(tmp_path / "model"), 80)
    _, made = linear_loss()
    error, update = tf.metrics.mean_absolute_error(Y, made)
    tf.summary.scalar("error", error)
    path = tf.train.latest_checkpoint(str(tmp_path / "model"))
    once = slim.evaluation.evaluate_once("", path, str(tmp_path / "once"), 2, eval_op=update, final_op=error)
    assert once < 1e-3
    values = [e for f in (tmp_path / "once").iterdir() for e in tf.train.summary_iterator(str(f)) if e.summary.value]
    assert [(e.step, e.summary.value[0].tag) for e in values] == [(80, "error")]


def test_a_loop_evaluates_each_latest_checkpoint(tmp_path: Path) -> None:
    folder = str(tmp_path)
    train(folder, 40)
    _, made = linear_loss()
    error, update = tf.metrics.mean_absolute_error(Y, made)
    value = slim.evaluation.evaluation_loop(
        "", folder, None, eval_op=update, final_op=error, eval_interval_secs=0, timeout=0.01
    )
    assert value < 0.1
    assert tf.contrib.training.wait_for_new_checkpoint(folder, f"{folder}/model.ckpt-40", 0.001, 0.01) is None


def test_gradients_are_clipped_and_multiplied() -> None:
    v, w = tf.Variable([3.0, 4.0], name="v"), tf.Variable([1.0], name="w")
    pairs = [(tf.constant([3.0, 4.0]), v), (tf.constant([2.0]), w)]
    clipped = tf.contrib.training.clip_gradient_norms(pairs, 1.0)
    multiplied = tf.contrib.training.multiply_gradients(pairs, {"v": 2.0})
    with tf.Session() as session:
        values = session.run([[g for g, _ in made] for made in (clipped, multiplied)])
    np.testing.assert_allclose(values[0][0], [0.6, 0.8], rtol=1e-6)
    assert [g.tolist() for g in values[1]] == [[6.0, 8.0], [2.0]]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="number_of_steps is 0; it must be positive"):
        slim.learning.train(tf.constant(1.0), None, number_of_steps=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="trace_every_n_steps is 2 and logdir None; a folder is"):
        slim.learning.train(tf.constant(1.0), None, trace_every_n_steps=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="startup_delay_steps is 3 with a sync_optimizer"):
        slim.learning.train(tf.constant(1.0), None, startup_delay_steps=3, sync_optimizer=object())
    with pytest.raises(tf.errors.InvalidArgumentError, match="gradient_multipliers is empty"):
        slim.learning.multiply_gradients([], {})


def test_a_loss_that_is_not_finite_ends_the_training() -> None:
    v = tf.Variable(1.0)
    train_op = slim.learning.create_train_op(v * np.inf, tf.train.GradientDescentOptimizer(0.1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor is inf or nan"):
        slim.learning.train(train_op, None, number_of_steps=3)


def test_variables_and_operations_are_counted_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    analyzer = tf.contrib.slim.model_analyzer
    with tf.Graph().as_default() as graph:
        v = [tf.get_variable("w", [2, 3]), tf.get_variable("n", [], tf.int64, initializer=tf.zeros_initializer())]
        assert analyzer.analyze_vars(v, print_info=True) == (7, 32)
        assert "w:0 (float32 2x3) [6, bytes: 24]" in capsys.readouterr().out
        before = analyzer.analyze_ops(graph)
        tf.add(tf.ones([5]), tf.placeholder(tf.float32, [2, None]), name="sum")
        assert analyzer.analyze_ops(graph, print_info=True) == before + 5 + 10
    assert "sum -> (float32 2x5) [10, bytes: 40] [10]" in capsys.readouterr().out

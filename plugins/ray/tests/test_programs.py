"""Programs of TensorFlow 1 for a cluster: between-graph and in-graph replication, parameter servers, recovery."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray
from timberframe_ray import Cluster, engine
from timberframe_ray.cluster import end_workers
from timberframe_ray.target import read_address

CONFIG = tf.SessionConfig(plugins=["cpu"])
_ports = itertools.count(20000)


@pytest.fixture
def spec(cluster: Cluster) -> tf.train.ClusterSpec:
    """A parameter server and two workers whose addresses no other test has."""
    return new_spec()


def new_spec(workers: int = 2) -> tf.train.ClusterSpec:
    """Returns a parameter server and some workers, with addresses of their own."""
    return tf.train.ClusterSpec(
        {"ps": [f"here:{next(_ports)}"], "worker": [f"here:{next(_ports)}" for _ in range(workers)]}
    )


def model(spec: Any, task: int) -> Any:
    """Returns a line through two points, on a parameter server; what trains it."""
    setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task}", cluster=spec)
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        x = tf.constant([[1.0, 1.0], [1.0, 2.0]])
        loss = tf.reduce_sum(tf.square(tf.reduce_sum(x * w, 1) - [3.0, 5.0]))
        return loss, tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)


@pytest.mark.slow
def test_a_program_that_serves_ends_with_its_cluster(cluster: Cluster) -> None:
    server = tf.train.Server(tf.train.ClusterSpec({"ps": [f"here:{next(_ports)}"]}), "ps", 0)
    ended = threading.Event()

    def serve() -> None:
        try:
            server.join()
        except SystemExit:
            ended.set()

    threading.Thread(target=serve, daemon=True).start()
    name = read_address(server.target.removeprefix("ray:")).cluster
    process = engine.describe(engine.find_worker(name, "ps", 0))["process"]
    os.kill(process, signal.SIGKILL)  # Ray starts it again
    assert not ended.wait(5.0)
    assert engine.describe(engine.find_worker(name, "ps", 0))["process"] != process
    end_workers(name)
    assert ended.wait(10.0)


@pytest.mark.slow
def test_workers_train_the_variables_of_a_parameter_server_asynchronously(spec: Any, tmp_path: Path) -> None:
    servers = [tf.train.Server(spec, job, task) for job, task in (("ps", 0), ("worker", 0), ("worker", 1))]
    placed, errors = [], []

    def work(task: int) -> None:
        try:
            with tf.Graph().as_default():
                _, train = model(spec, task)
                hooks = [tf.train.StopAtStepHook(last_step=120)]
                with tf.train.MonitoredTrainingSession(
                    servers[1 + task].target, is_chief=task == 0, checkpoint_dir=str(tmp_path), hooks=hooks,
                    config=CONFIG, max_wait_secs=60, save_checkpoint_steps=50,
                ) as s:  # fmt: skip
                    placed.append([v.device for v in tf.global_variables()])
                    while not s.should_stop():
                        s.run(train)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(task,)) for task in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    assert placed == [["/job:ps/task:0"] * 2] * 2
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert 120 <= reader.get_tensor("global_step") <= 121
    np.testing.assert_allclose(reader.get_tensor("w"), [1, 2], atol=0.2)


ROWS = np.random.default_rng(5).standard_normal((16, 3)).astype(np.float32)
LABELS = ROWS @ np.array([1.0, -2.0, 0.5], np.float32) + np.float32(0.3)


def half_squares(rows: np.ndarray, labels: np.ndarray) -> Any:
    """Returns the loss of a linear model with an embedding, and what is shared: variables that are made with it."""
    w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
    found = tf.reduce_sum(rows * w, 1) + tf.nn.embedding_lookup(b, [i % 2 for i in range(len(rows))])
    return tf.reduce_mean(tf.square(found - labels)) / 2


class Together(tf.train.SessionRunHook):
    """Has all workers begin each run together: a quick one else may take the token of a slow one, and its turn."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def before_run(self, run_context: Any) -> None:
        self._barrier.wait(60)


def synchronous_losses(spec: Any, steps: int) -> list[list[float]]:
    """Returns the losses of the workers, each with its share of the rows, before each step."""
    count = spec.num_tasks("worker")
    servers = [tf.train.Server(spec, "ps", 0), *(tf.train.Server(spec, "worker", task) for task in range(count))]
    losses: list[list[float]] = [[] for _ in range(count)]
    barrier, errors = threading.Barrier(count), []

    def work(task: int) -> None:
        setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task}", cluster=spec)
        with tf.Graph().as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            loss = half_squares(ROWS[task::count], LABELS[task::count])
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.2, 0.9), count)
            train = optimizer.minimize(loss, global_step=step)
            hooks = [optimizer.make_session_run_hook(task == 0, num_tokens=0), Together(barrier)]
            try:
                with tf.train.MonitoredTrainingSession(
                    servers[1 + task].target, is_chief=task == 0, hooks=hooks, config=CONFIG, max_wait_secs=60
                ) as s:
                    for _ in range(steps):
                        losses[task].append(s.run([loss, train])[0])
            except Exception as e:
                errors.append(e)
                barrier.abort()

    threads = [threading.Thread(target=work, args=(task,)) for task in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    return losses


@pytest.mark.slow
def test_three_synchronous_workers_have_equal_bits_in_every_run(cluster: Cluster) -> None:
    first, *others = (synchronous_losses(new_spec(3), 12) for _ in range(3))
    assert others == [first, first]


@pytest.mark.slow
def test_synchronous_workers_have_the_losses_of_one_process_and_equal_bits(cluster: Cluster) -> None:
    def alone(steps: int) -> list[float]:
        with tf.Graph().as_default(), tf.Session(config=CONFIG) as s:
            halves = []
            for task in range(2):
                with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
                    halves.append(half_squares(ROWS[task::2], LABELS[task::2]))
            loss = (halves[0] + halves[1]) / 2
            train = tf.train.MomentumOptimizer(0.2, 0.9).minimize(loss)
            s.run(tf.global_variables_initializer())
            return [s.run([loss, train])[0] for _ in range(steps)]

    first, second = (synchronous_losses(new_spec(), 12) for _ in range(2))
    assert first == second
    both = np.mean(first, 0)
    assert both[-1] < both[0] / 10
    # Each loss follows from sums of 16 numbers in another order: their rounding, over 12 steps.
    np.testing.assert_allclose(both, alone(12), rtol=16 * 12 * np.finfo(np.float32).eps)


@pytest.mark.slow
def test_a_training_goes_on_from_its_checkpoint_when_the_parameter_server_was_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    class Kills(tf.train.SessionRunHook):
        runs = 0

        def before_run(self, run_context: Any) -> None:
            self.runs += 1
            if self.runs == 5:
                os.kill(cluster.process("ps", 0), signal.SIGKILL)

    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:1"):
        more = tf.cast(step, tf.float32) + 0.0
    with tf.device("/job:ps/task:0"), tf.control_dependencies([total.assign_add(more)]):
        train = step.assign_add(1)
    kills = Kills()
    hooks = [tf.train.StopAtStepHook(last_step=8), kills]
    with tf.train.MonitoredTrainingSession(
        cluster.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, hooks=hooks, config=CONFIG
    ) as s:
        while not s.should_stop():
            s.run(train)
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("global_step") == 8
    assert reader.get_tensor("total") == sum(range(8))
    assert kills.runs > 8
    tf.Session.reset(cluster.target)


def test_gradients_of_two_workers_give_the_losses_of_one_process_every_time(cluster: Cluster) -> None:
    def losses(target: str, placed: bool) -> list[float]:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0" if placed else None):
                w = tf.get_variable("w", initializer=tf.constant([1.0, -1.0]))
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            towers, total = [], []
            for task in range(2):
                with tf.device(f"/job:worker/task:{task}" if placed else None):
                    loss = tf.reduce_sum(tf.square(w - tf.constant([float(task), 3.0])))
                    towers.append(optimizer.compute_gradients(loss, [w])[0][0])
                    total.append(loss)
            with tf.device("/job:ps/task:0" if placed else None):
                step = optimizer.apply_gradients([(tf.add_n(towers) / 2.0, w)])
            with tf.Session(target, config=CONFIG) as s:
                s.run(tf.global_variables_initializer())
                return [float(s.run([tf.add_n(total), step])[0]) for _ in range(5)]

    found = losses(cluster.target, True)
    assert found == losses(cluster.target, True) == losses("", False)
    tf.Session.reset(cluster.target)


@pytest.mark.slow
def test_a_checkpoint_of_variables_of_several_tasks_is_restored(cluster: Cluster, tmp_path: Path) -> None:
    variables = []
    for task in ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        with tf.device(task):
            variables.append(tf.get_variable(f"v{len(variables)}", initializer=tf.constant([1.0, 2.0])))
    saver = tf.train.Saver()
    with tf.Session(cluster.target, config=CONFIG) as s:
        s.run(tf.global_variables_initializer())
        s.run([v.assign(v * 3.0) for v in variables])
        path = saver.save(s, str(tmp_path / "model"))
    tf.Session.reset(cluster.target)
    with tf.Session(cluster.target, config=CONFIG) as s:
        saver.restore(s, path)
        np.testing.assert_array_equal(s.run(variables), [[3, 6]] * 3)
    tf.Session.reset(cluster.target)


@pytest.mark.slow
def test_a_pipeline_over_workers_gives_the_gradients_of_one_process(cluster: Cluster) -> None:
    def gradients(target: str, devices: list[str]) -> list[np.ndarray]:
        with tf.Graph().as_default():
            x = tf.constant(np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32))

            def stage(y: Any) -> Any:
                with tf.variable_scope("stage", reuse=tf.AUTO_REUSE):
                    return y * tf.get_variable("w", [4], initializer=tf.constant_initializer(0.5))

            _, pairs = timberframe_ray.pipeline(
                tf.train.GradientDescentOptimizer(0.1), [stage, tf.tanh], devices, x, x,
                lambda y, labels: tf.reduce_mean(tf.square(y - labels)), 4,
            )  # fmt: skip
            with tf.Session(target, config=CONFIG) as s:
                s.run(tf.global_variables_initializer())
                return list(s.run([g for g, _ in pairs]))

    found = gradients(cluster.target, ["/job:worker/task:0", "/job:worker/task:1"])
    for x, y in zip(found, gradients("", ["/device:CPU:0"] * 2), strict=True):
        assert x.tobytes() == y.tobytes()
    tf.Session.reset(cluster.target)


def test_a_local_server_has_one_task(cluster: Cluster) -> None:
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target, config=CONFIG) as s:
        assert s.list_devices()[0].name == "/job:local/replica:0/task:0/device:CPU:0"
        assert s.run(tf.exp(0.0)) == 1

"""Workers that die, hang or are started again while sessions use them, runs that are cancelled, clients that end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe_ray import Cluster, engine
from timberframe_ray.link import ANSWER_SECONDS, PING_SECONDS
from timberframe_ray.step import CANCEL_SECONDS

DEVICE = "/job:worker/replica:0/task:0/device:CPU:0"
KILL_SECONDS = 2.0
SLACK_SECONDS = 3.0  # machines are busy


@pytest.fixture(autouse=True)
def small_graph(fresh_graph: Any) -> None:
    with tf.device(DEVICE):
        tf.exp(tf.placeholder(tf.float32, [], name="x"), name="y")


def session(cluster: Cluster, **settings: Any) -> tf.Session:
    return tf.Session(cluster.target, config=tf.SessionConfig(plugins=["cpu"], **settings))


def answers(s: tf.Session) -> bool:
    return bool(s.run("y:0", {"x:0": 0}) == 1)


def endless() -> Any:
    with tf.device(DEVICE):
        return tf.while_loop(lambda i: i >= 0.0, lambda i: tf.abs(i), [tf.constant(1.0)])


def described(cluster: Cluster) -> dict[str, Any]:
    worker = engine.find_worker(cluster.name, "worker", 0)
    assert worker is not None
    return engine.describe(worker)


def settles(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


class Failing(threading.Thread):
    """A run in another thread, its error and when it came."""

    def __init__(self, s: tf.Session, fetches: Any) -> None:
        super().__init__(daemon=True)
        self.session, self.fetches = s, fetches
        self.error: BaseException | None = None
        self.start()
        time.sleep(0.5)

    def run(self) -> None:
        try:
            self.session.run(self.fetches)
        except tf.errors.OpError as e:
            self.error = e
        self.end = time.monotonic()


@pytest.mark.slow
def test_a_killed_worker_is_unavailable_to_its_runs_and_old_sessions_are_aborted(cluster: Cluster) -> None:
    with tf.device("/job:worker/task:1"):
        elsewhere = tf.exp(0.0)
    with session(cluster) as old:
        assert old.run(elsewhere) == 1
        running = Failing(old, endless())
        start = time.monotonic()
        os.kill(cluster.process("worker", 0), signal.SIGKILL)
        running.join(30)
        assert isinstance(running.error, tf.errors.UnavailableError)
        assert f"device {DEVICE} of target '{cluster.target}': its process does not answer" in str(running.error)
        assert running.end - start < KILL_SECONDS + SLACK_SECONDS
        assert old.run(elsewhere) == 1
        with session(cluster) as new:
            assert answers(new)
            with suppress(tf.errors.UnavailableError, tf.errors.AbortedError):  # the first call finds it out
                answers(old)
            with pytest.raises(tf.errors.AbortedError, match=f"device {DEVICE} of target .* restarted"):
                answers(old)


@pytest.mark.slow
def test_variables_are_lost_with_their_process(cluster: Cluster) -> None:
    with tf.device(DEVICE):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with session(cluster) as s:
        s.run(v.initializer)
        os.kill(cluster.process("worker", 0), signal.SIGKILL)
    with session(cluster) as s, pytest.raises(tf.errors.FailedPreconditionError, match="has no value"):
        s.run(v)


@pytest.mark.slow
def test_reset_of_a_cluster_passes_by_a_worker_that_has_just_ended(cluster: Cluster) -> None:
    with tf.device("/job:worker/task:1"):
        v = tf.get_variable("v", initializer=tf.constant(1.0))
    with session(cluster) as s:
        s.run(v.initializer)
    os.kill(cluster.process("worker", 0), signal.SIGKILL)
    tf.Session.reset(cluster.target)
    with session(cluster) as s, pytest.raises(tf.errors.FailedPreconditionError, match="has no value"):
        s.run(v)


@pytest.mark.slow
def test_a_session_that_is_opened_waits_for_a_worker_that_starts_again(cluster: Cluster) -> None:
    for _ in range(3):
        os.kill(cluster.process("ps", 0), signal.SIGKILL)
        with session(cluster) as s:
            assert answers(s)


@pytest.mark.slow
def test_a_worker_that_hangs_is_unavailable_by_a_deadline_and_its_sessions_are_over(cluster: Cluster) -> None:
    with session(cluster) as old:
        assert answers(old)
        process = cluster.process("worker", 0)
        start = time.monotonic()
        os.kill(process, signal.SIGSTOP)
        with pytest.raises(tf.errors.UnavailableError):
            answers(old)
        assert time.monotonic() - start < PING_SECONDS + ANSWER_SECONDS + SLACK_SECONDS
        start = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError):
            answers(old)
        assert time.monotonic() - start < ANSWER_SECONDS
        os.kill(process, signal.SIGCONT)
        time.sleep(0.5)
        with pytest.raises(tf.errors.AbortedError, match="make a new"):
            answers(old)
    with session(cluster) as new:
        assert answers(new)


def test_a_time_limit_ends_a_run_in_a_worker(cluster: Cluster) -> None:
    loop = endless()
    with session(cluster) as s:
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(loop, options=tf.RunOptions(timeout_in_ms=200))
        assert answers(s)
        assert time.monotonic() - start < CANCEL_SECONDS + SLACK_SECONDS


@pytest.mark.slow
def test_closing_a_session_ends_its_run_in_the_worker(cluster: Cluster) -> None:
    with session(cluster) as other:
        s = session(cluster)
        running = Failing(s, endless())
        s.close()
        running.join(10)
        assert isinstance(running.error, tf.errors.CancelledError)
        assert answers(other)


@pytest.mark.slow
def test_an_interruption_ends_the_run_in_the_worker(cluster: Cluster) -> None:
    loop = endless()
    with session(cluster) as s:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            s.run(loop)
        assert answers(s)


@pytest.mark.slow
def test_what_a_killed_client_held_is_freed_and_its_variables_stay(cluster: Cluster) -> None:
    program = f"""
import time
import timberframe as tf
with tf.device({DEVICE!r}):
    v = tf.get_variable("kept", initializer=tf.constant(3.0))
    loop = tf.while_loop(lambda i: i >= 0.0, lambda i: tf.abs(i), [tf.constant(1.0)])
s = tf.Session({cluster.target!r}, config=tf.SessionConfig(plugins=["cpu"]))
s.run(v.initializer)
print("ready", flush=True)
s.run(loop)
"""
    assert settles(lambda: described(cluster)["sessions"] == 0)
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    assert described(cluster)["sessions"] == 1
    time.sleep(0.5)
    client.kill()
    client.wait(10)
    client.stdout.close()
    assert settles(lambda: described(cluster)["sessions"] == 0)
    with tf.device(DEVICE):
        v = tf.get_variable("kept", initializer=tf.constant(0.0))
    with session(cluster) as s:
        assert s.run(v) == 3
    tf.Session.reset(cluster.target)


@pytest.mark.slow
def test_a_client_that_loses_its_monitor_gets_another_one_and_new_sessions(cluster: Cluster) -> None:
    with session(cluster) as old:
        assert answers(old)
        engine.end(engine.monitor())
        assert settles(lambda: described_meanwhile(cluster)["sessions"] == 0)
        with pytest.raises(tf.errors.AbortedError, match="make a new session"):
            answers(old)
    with session(cluster) as new:
        assert answers(new)


def described_meanwhile(cluster: Cluster) -> dict[str, Any]:
    """Returns what the worker says of itself, by a monitor that may have just ended."""
    with suppress(tf.errors.UnavailableError):
        return described(cluster)
    return {"sessions": None}

"""Workers of a target that die, hang or are restarted while sessions use them: errors, deadlines, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import register_target
from timberframe_sdk.testing import process_target
from timberframe_sdk.testing.process_target.link import ANSWER_SECONDS, CANCEL_SECONDS, PING_SECONDS

register_target("process", process_target)
TARGET = "process:1"
DEVICE = "/job:worker/replica:0/task:0/device:CPU:0"
DEADLINE_SECONDS = PING_SECONDS + ANSWER_SECONDS
SLACK_SECONDS = 3.0  # machines are busy


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        with tf.device("/job:worker"):
            tf.exp(tf.placeholder(tf.float32, [], name="x"), name="y")
        yield


@pytest.fixture(autouse=True, scope="module")
def no_workers_are_left() -> Iterator[None]:
    yield
    process_target.workers_of("1").close()


def session() -> tf.Session:
    return tf.Session(TARGET, config=tf.SessionConfig(plugins=["cpu"]))


def worker() -> subprocess.Popen[bytes]:
    found = process_target.workers_of("1").processes[0]
    assert found is not None
    return found


def end(number: int) -> None:
    process = worker()
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(10)
    while number == signal.SIGSTOP and not _has_stopped(process.pid):
        time.sleep(0.001)  # a thread of it may still answer a call


def _has_stopped(process: int) -> bool:
    """Returns whether all threads of a process have come to the stop that a signal asked for."""
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return set(states) == {"T"}


def endless() -> Any:
    with tf.device("/job:worker"):
        return tf.while_loop(lambda i: i >= 0.0, lambda i: tf.abs(i), [tf.constant(1.0)])


def answers(s: tf.Session) -> bool:
    """Returns whether a small run in the worker gives its result; raises its error."""
    return bool(s.run("y:0", {"x:0": 0}) == 1)


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
@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 0.0), (signal.SIGSTOP, DEADLINE_SECONDS)])
def test_a_run_whose_worker_dies_or_hangs_fails_in_time(number: int, seconds: float) -> None:
    with session() as s:
        running = Failing(s, endless())
        start = time.monotonic()
        end(number)
        running.join(30)
        assert isinstance(running.error, tf.errors.UnavailableError)
        assert f"device {DEVICE} of target '{TARGET}': its process does not answer" in str(running.error)
        assert running.end - start < seconds + SLACK_SECONDS


@pytest.mark.slow
def test_a_session_whose_worker_hung_is_refused_at_once_and_over_when_it_answers() -> None:
    with session() as s:
        assert answers(s)
        end(signal.SIGSTOP)
        with pytest.raises(tf.errors.UnavailableError):
            answers(s)
        start = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError):
            answers(s)
        assert time.monotonic() - start < ANSWER_SECONDS
        end(signal.SIGCONT)
        time.sleep(1)
        with pytest.raises(tf.errors.AbortedError, match="make a new session"):
            answers(s)
    with session() as new:
        assert answers(new)


@pytest.mark.slow
def test_a_new_session_replaces_a_worker_that_hangs_and_old_ones_are_aborted() -> None:
    with session() as old:
        assert answers(old)
        hanging = worker()
        end(signal.SIGSTOP)
        with session() as new:
            assert answers(new)
            assert new.list_devices()[0].incarnation != old.list_devices()[0].incarnation
        assert hanging.poll() is not None
        with suppress(tf.errors.UnavailableError):  # what the first call may find out
            answers(old)
        with pytest.raises(tf.errors.AbortedError, match=f"device {DEVICE} of target '{TARGET}': .* restarted"):
            answers(old)


@pytest.mark.slow
def test_an_array_that_a_hanging_worker_does_not_take_is_given_up_in_time() -> None:
    x = tf.placeholder(tf.float32, [1 << 24])
    with tf.device("/job:worker"):
        y = tf.reduce_sum(x)
    with session() as s:
        end(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError):
            s.run(y, {x: np.zeros(1 << 24, np.float32)})
        assert time.monotonic() - start < 2 * DEADLINE_SECONDS + SLACK_SECONDS


def threads_of_worker() -> int:
    return len(os.listdir(f"/proc/{worker().pid}/task"))


def settled(count: Any, wanted: int) -> bool:
    """Returns whether a number goes down to what is wanted within some seconds."""
    limit = time.monotonic() + 10
    while count() > wanted and time.monotonic() < limit:
        time.sleep(0.05)
    return bool(count() <= wanted)


@pytest.mark.slow
def test_closing_a_session_ends_its_run_in_the_worker() -> None:
    with session():
        before = threads_of_worker()
        s = session()
        running = Failing(s, endless())
        s.close()
        running.join(10)
        assert isinstance(running.error, tf.errors.CancelledError)
        assert settled(threads_of_worker, before)


@pytest.mark.slow
def test_the_time_limit_of_one_run_is_kept_while_another_goes_on() -> None:
    loop = endless()
    with session() as s:
        running = Failing(s, loop)
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(loop, options=tf.RunOptions(timeout_in_ms=300))
        assert time.monotonic() - start < CANCEL_SECONDS + SLACK_SECONDS
        assert answers(s)
        assert running.error is None
    running.join(10)


@pytest.mark.slow
def test_a_time_limit_is_kept_by_a_kernel_that_looks_at_none() -> None:
    value = tf.placeholder_with_default(1.0, [])
    with tf.device("/job:worker"):
        square = tf.fill([7000, 7000], value)
        y = tf.matmul(square, square)[0, 0]
    with session() as s:
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(y, options=tf.RunOptions(timeout_in_ms=300))
        assert time.monotonic() - start < 0.3 + CANCEL_SECONDS + SLACK_SECONDS
        assert answers(s)
    end(signal.SIGKILL)


def children() -> list[str]:
    """Returns the processes that this one has started and that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.append(path.parent.name)
    return found


@pytest.mark.slow
def test_sessions_leave_no_threads_handles_or_processes() -> None:
    loop = endless()

    def once() -> None:
        with session() as s:
            assert answers(s)
            with pytest.raises(tf.errors.DeadlineExceededError):
                s.run(loop, options=tf.RunOptions(timeout_in_ms=100))
        for number in (signal.SIGSTOP, signal.SIGKILL):
            with session() as s:
                end(number)
                with pytest.raises(tf.errors.UnavailableError):
                    answers(s)

    def counts() -> tuple[int, int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children())

    once()
    before = counts()
    once()
    assert all(after <= most for after, most in zip(counts(), before, strict=True))


@pytest.mark.slow
def test_workers_end_when_their_client_is_killed(tmp_path: Path) -> None:
    code = (
        "import timberframe as tf, time\n"
        "from timberframe_sdk import register_target\n"
        "from timberframe_sdk.testing import process_target\n"
        "register_target('process', process_target)\n"
        "s = tf.Session('process:1', config=tf.SessionConfig(plugins=['cpu']))\n"
        "print(process_target.workers_of('1').processes[0].pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    client.kill()
    client.wait(10)
    client.stdout.close()

    def alive() -> int:
        with suppress(FileNotFoundError):
            return int(" Z " not in Path(f"/proc/{pid}/stat").read_text())
        return 0

    assert settled(alive, 0)

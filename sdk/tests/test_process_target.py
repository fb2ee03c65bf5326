"""Sessions on devices of other processes: where things run, what stays there, and what happens when a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import register_target
from timberframe_sdk.testing import process_target

register_target("process", process_target)
TARGET = "process:2"
CONFIG = tf.SessionConfig(plugins=["cpu"])
FIRST, SECOND = (f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(2))


pytestmark = pytest.mark.usefixtures("fresh_graph")


@pytest.fixture(autouse=True, scope="module")
def no_workers_are_left() -> Iterator[None]:
    yield
    process_target.workers_of("2").close()


def session(**settings: Any) -> tf.Session:
    return tf.Session(TARGET, config=tf.SessionConfig(plugins=["cpu"], **settings))


def end(task: int, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a worker."""
    process = process_target.workers_of("2").processes[task]
    assert process is not None
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(10)


@pytest.mark.slow
def test_devices_of_the_workers_come_before_those_of_this_process() -> None:
    with session() as s:
        names = [d.name for d in s.list_devices()]
    assert names == [FIRST, SECOND, "/job:localhost/replica:0/task:0/device:CPU:0"]


def test_a_node_runs_where_its_task_is() -> None:
    with tf.device("/job:worker/task:1"):
        y = tf.exp(tf.placeholder_with_default([1.0, 2.0], [2]), name="y")
    with session() as s:
        np.testing.assert_allclose(s.run(y), np.exp([1, 2]), rtol=1e-6)
        assert [p.device for p in s.explain(y).placements if p.node == "y"] == [SECOND]


def test_tensors_go_from_one_worker_to_another_and_to_this_process() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    with tf.device("/job:worker/task:0"):
        a = tf.matmul(x, x)
    with tf.device("/job:worker/task:1"):
        b = tf.tanh(a)
    with tf.device("/job:localhost"):
        c = tf.reduce_sum(b) + 1.0
    given = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32) / 100
    with session() as s:
        found = s.run(c, {x: given})
    with tf.Session(config=tf.SessionConfig(allow_soft_placement=True, plugins=["cpu"])) as local:
        assert found == local.run(c, {x: given})


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3), np.int64),
        np.array(2 + 3j),
        np.array([True]),
        np.array([1.5], tf.bfloat16.numpy),
        np.eye(3).T[::2],
    ],
)
def test_tensors_of_all_kinds_arrive_as_they_are(value: np.ndarray) -> None:
    x = tf.placeholder(value.dtype, value.shape)
    with tf.device("/job:worker/task:0"):
        y = tf.reshape(tf.reshape(x, [-1]), value.shape)
    with session() as s:
        found = s.run(y, {x: value})
        assert np.shape(found) == value.shape
        np.testing.assert_array_equal(found, value)


def test_loops_and_branches_run_in_a_worker() -> None:
    with tf.device("/job:worker/task:1"):
        _, y = tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, y * 2.0), [0, tf.constant(1.0)])
        z = tf.cond(y > 3.0, lambda: y + 1, lambda: y)
    with session() as s:
        assert s.run(z) == 1025


def test_a_model_trains_in_a_worker() -> None:
    with tf.device("/job:worker/task:0"):
        w = tf.Variable([1.0, -2.0])
        loss = tf.reduce_sum(tf.square(w))
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
    with session() as s:
        s.run(tf.global_variables_initializer())
        before = s.run(loss)
        for _ in range(20):
            s.run(step)
        assert s.run(loss) < before / 2
        np.testing.assert_array_equal(s.read_variables([w])[0], s.run(w))


def test_random_numbers_are_those_of_a_local_session() -> None:
    x = tf.random_uniform([3], seed=5)
    with session() as s, tf.Session(config=CONFIG) as local:
        for _ in range(2):
            np.testing.assert_array_equal(s.run(x), local.run(x))


def counter() -> Any:
    """Returns a variable of worker 1 and what adds one to it."""
    with tf.device("/job:worker/task:1"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    return v, v.assign_add(1.0)


def test_passes_are_switched_off_by_their_names() -> None:
    x = tf.placeholder(tf.float32, [3])
    with tf.device("/job:worker/task:0"):
        y = tf.exp(x * 2.0) + 1.0
    with session(optimizations={"fuse": False, "cse": False}) as s:
        np.testing.assert_array_equal(s.run(y, {x: np.zeros(3)}), [2, 2, 2])


def test_a_kernel_for_several_nodes_runs_in_a_worker() -> None:
    x = tf.placeholder(tf.float32, [1, 4, 4, 3])
    with tf.device("/job:worker/task:0"):
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, tf.ones([2, 2, 3, 5]), [1, 1, 1, 1], "VALID"), tf.ones([5])))
    with session() as s:
        np.testing.assert_array_equal(s.run(y, {x: np.ones((1, 4, 4, 3))}), np.full((1, 3, 3, 5), 13))


def test_variables_outlive_the_session_that_made_them() -> None:
    v, more = counter()
    with session() as s:
        s.run(v.initializer)
        s.run(more)
    with session() as s:
        assert s.run(v) == 1


def test_a_session_sees_that_another_one_initialized_a_variable() -> None:
    v, _ = counter()
    ready = tf.is_variable_initialized(v)
    tf.Session.reset(TARGET)
    with session() as s, session() as other:
        assert not other.run(ready)
        s.run(v.initializer)
        assert other.run(ready)


def test_two_sessions_share_a_variable_by_its_name() -> None:
    v, more = counter()
    with session() as s, session() as other:
        s.run(v.initializer)
        s.run(more)
        other.run(more)
        assert s.run(v) == 2


def test_reset_drops_variables() -> None:
    v, _ = counter()
    with session() as s:
        s.run(v.initializer)
    tf.Session.reset(TARGET)
    with session() as s, pytest.raises(tf.errors.FailedPreconditionError, match="'v' has no value"):
        s.run(v)


def in_container(name: str) -> Any:
    """Returns what assigns 1 to the variable `v` of a container of worker 1, and what reads it."""
    attrs = {"dtype": tf.float32, "shape": (), "shared_name": "v", "container": name}
    with tf.device("/job:worker/task:1"):
        handle = apply_op("VarHandleOp", attrs=attrs)
        return (
            apply_op("AssignVariableOp", [handle, tf.constant(1.0)]),
            apply_op("ReadVariableOp", [handle], {"dtype": tf.float32}),
        )


def test_reset_drops_the_containers_that_are_named() -> None:
    (set_kept, kept), (set_dropped, dropped) = in_container("kept"), in_container("dropped")
    with session() as s:
        s.run([set_kept, set_dropped])
    tf.Session.reset(TARGET, ["dropped"])
    with session() as s:
        assert s.run(kept) == 1
        with pytest.raises(tf.errors.FailedPreconditionError, match="'dropped:v' has no value"):
            s.run(dropped)


def test_errors_keep_device_node_and_line() -> None:
    x = tf.placeholder(tf.int32, [2])
    with tf.device("/job:worker/task:1"):
        y = tf.floordiv(x, [1, 0], name="quotient")
    with session() as s, pytest.raises(tf.errors.InvalidArgumentError) as raised:
        s.run(y, {x: [1, 1]})
    assert raised.value.node == "quotient"
    assert "FloorDiv 'quotient'" in str(raised.value)
    assert SECOND in str(raised.value)
    assert "test_process_target.py:" in str(raised.value)


def test_a_session_goes_on_after_an_error() -> None:
    x = tf.placeholder(tf.int32, [2])
    y = tf.floordiv(6, x)
    with session() as s:
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(y, {x: [1, 0]})
        assert s.run(y, {x: [2, 3]}).tolist() == [3, 2]


def endless() -> Any:
    with tf.device("/job:worker/task:1"):
        return tf.while_loop(lambda i: i >= 0.0, lambda i: tf.abs(i), [tf.constant(1.0)])


def test_a_time_limit_stops_a_run_in_a_worker() -> None:
    loop, small = endless(), tf.constant(1.0) + 1.0
    with session() as s:
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(loop, options=tf.RunOptions(timeout_in_ms=300))
        with tf.device("/job:worker/task:1"):
            assert s.run(tf.exp(small * 0.0)) == 1


def test_other_devices_go_on_when_a_worker_is_dead() -> None:
    x, results = tf.placeholder(tf.float32, []), []
    for task in ("/job:worker/task:1", "/job:worker/task:0", "/job:localhost"):
        with tf.device(task):
            results.append(tf.exp(x))
    with session() as s:
        assert s.run(results, {x: 0}) == [1, 1, 1]
        end(1)
        with pytest.raises(tf.errors.UnavailableError, match=SECOND):
            s.run(results[0], {x: 0})
        assert s.run(results[1:], {x: 0}) == [1, 1]


@pytest.mark.slow
def test_a_session_is_refused_by_another_incarnation_of_its_worker() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:worker/task:1"):
        y = tf.exp(x)
    with session() as s:
        assert s.run(y, {x: 0}) == 1
        end(1)
        with session() as new:
            assert new.run(y, {x: 0}) == 1
        with pytest.raises(tf.errors.UnavailableError):  # found out by the first call
            s.run(y, {x: 0})
        with pytest.raises(tf.errors.AbortedError, match=f"device {SECOND} of target '{TARGET}': .* restarted"):
            s.run(y, {x: 0})


def test_variables_are_lost_with_their_process() -> None:
    v, _ = counter()
    with session() as s:
        s.run(v.initializer)
        end(1)
    with session() as s, pytest.raises(tf.errors.FailedPreconditionError, match="has no value"):
        s.run(v)


def test_dropped_tensors_are_dropped_in_the_worker() -> None:
    x = tf.placeholder(tf.float32, [1000])
    with tf.device("/job:worker/task:0"):
        y = tf.exp(x)
    with session() as s:
        s.run(y, {x: np.ones(1000)})
        allocator = s.list_devices()[0].allocator
        before = allocator.statistics().used
        for _ in range(20):
            s.run(y, {x: np.ones(1000)})
        assert allocator.statistics().used <= before + 8000


def test_an_allocation_that_is_made_to_fail_in_a_worker_is_known_here() -> None:
    x = tf.placeholder(tf.float32, [1000])
    with tf.device("/job:worker/task:0"):
        y = tf.exp(x)
    with session() as s:
        allocator = s.list_devices()[0].allocator
        allocator.fail_at = 0
        assert allocator.fail_at == 0
        with pytest.raises(tf.errors.ResourceExhaustedError):
            s.run(y, {x: np.ones(1000)})
        assert allocator.fail_at is None


@pytest.mark.parametrize("address", ["", "0", "two", "-1"])
def test_a_target_without_a_number_of_processes_is_refused(address: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="a number of processes is required"):
        tf.Session(f"process:{address}")


def test_a_session_goes_on_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:worker/task:1"):
        y = tf.exp(x)
    with session() as s:
        assert s.run(y, {x: 0}) == 1

        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("timberframe_sdk.testing.process_target.link.Link._wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                s.run(y, {x: 0})
        assert s.run(y, {x: 0}) == 1


@pytest.mark.slow
def test_workers_start_again_after_they_were_closed() -> None:
    with session() as first:
        first.run(tf.constant(1.0))
    process_target.workers_of("2").close()
    with tf.device(FIRST):
        total = tf.constant(1.0) + 2.0
    with session() as second:
        assert second.run(total) == 3.0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_workers_go_on_when_a_forked_process_ends() -> None:
    program = """
import os, sys
import timberframe as tf
session = tf.Session("process:1", config=tf.SessionConfig(plugins=["cpu"]))
with tf.device("/job:worker/task:0"):
    total = tf.constant(1.0) + 2.0
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(session.run(total), tf.Session("process:1", config=tf.SessionConfig(plugins=["cpu"])).run(total))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "3.0 3.0\n"), done.stderr


def test_random_streams_of_workers_go_on_where_another_session_was() -> None:
    drawn = []
    for device in (FIRST, SECOND):
        with tf.device(device):
            drawn.append(tf.random_uniform([3]))
    with session() as first:
        first.run(drawn)
        positions = first.read_positions()
        wanted = first.run(drawn)
    with session() as second:
        second.run(drawn)  # compiled with seeds of its own
        second.set_positions(positions)
        np.testing.assert_array_equal(second.run(drawn), wanted)
    tasks = {key.partition(" in ")[2] for key in positions}
    assert {"/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"} <= tasks


@pytest.mark.slow
def test_sessions_share_a_queue_of_a_worker_by_its_shared_name() -> None:
    with tf.device("/job:worker/task:1"):
        queue = tf.FIFOQueue(3, tf.float32, shapes=[[2]], shared_name="shared")
        x = tf.placeholder(tf.float32, [2])
        add, taken = queue.enqueue(x * 2.0), queue.dequeue() + 1.0
    with session() as one, session() as other:
        one.run(add, {x: [1, 2]})
        assert other.run(queue.size()) == 1
        assert other.run(taken).tolist() == [3, 5]
    tf.Session.reset(TARGET)


@pytest.mark.slow
def test_strings_do_not_go_into_a_queue_of_a_worker() -> None:
    with tf.device("/job:worker/task:1"):
        queue = tf.FIFOQueue(3, tf.string, shapes=[[]], shared_name="words")
    add = queue.enqueue("word")
    with session() as s, pytest.raises(tf.errors.UnimplementedError, match="strings stay in the process"):
        s.run(add)
    tf.Session.reset(TARGET)

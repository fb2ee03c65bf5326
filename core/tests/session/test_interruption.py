"""Runs that end before their time: closed sessions, timeouts, Ctrl-C, forks, exits, deep recursion."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph


def endless_loop() -> tf.Tensor:
    """Returns a While that only an interruption ends."""
    start = tf.placeholder_with_default(np.float32(1.0), [])
    return tf.while_loop(lambda a: tf.less(a, 2.0), lambda a: (a * 1.0,), [start])


def in_a_child(program: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, killed after `seconds`."""
    head = "import numpy as np, timberframe as tf\n"
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def test_closed_session_says_so(world) -> None:
    world.session.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"session is closed; make a new one"):
        world.session.run(world.y, {world.x: np.ones((1, 3))})
    world.session.close()


def test_callable_of_a_closed_session_says_so(world) -> None:
    call = world.session.make_callable(world.x * 2.0, [world.x])
    call(np.ones((1, 3), np.float32))
    world.session.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"session is closed"):
        call(np.ones((1, 3), np.float32))


def test_timeout_inside_a_native_loop(world) -> None:
    loop = endless_loop()
    start = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError, match=r"longer than RunOptions\.timeout_in_ms=200"):
        world.session.run(loop, options=tf.RunOptions(timeout_in_ms=200))
    assert time.monotonic() - start < 10


def test_timeout_of_the_session_names_its_setting() -> None:
    with tf.Graph().as_default() as graph:
        loop = endless_loop()
        with (
            tf.Session(graph=graph, config=tf.SessionConfig(operation_timeout_in_ms=50)) as session,
            pytest.raises(tf.errors.DeadlineExceededError, match=r"SessionConfig\.operation_timeout_in_ms=50; raise"),
        ):
            session.run(loop)


def test_close_from_another_thread_cancels_the_run() -> None:
    with tf.Graph().as_default() as graph:
        loop = endless_loop()
        session = tf.Session(graph=graph)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                session.run(loop)
            except tf.errors.OpError as e:
                errors.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.3)
        session.close()
        thread.join(30)
    assert not thread.is_alive()
    assert isinstance(errors[0], tf.errors.CancelledError)


def test_close_cancels_a_long_loop_that_was_short_in_earlier_runs() -> None:
    with tf.Graph().as_default() as graph:
        limit = tf.placeholder(tf.float32, [])
        loop = tf.while_loop(lambda x: x < limit, lambda x: x + 1.0, [0.0])
        session = tf.Session(graph=graph)
        for _ in range(20):
            assert session.run(loop, {limit: 3.0}) == 3
        errors: list[BaseException] = []

        def run() -> None:
            try:
                session.run(loop, {limit: 1e9})  # which a float32 that grows by 1 never reaches
            except tf.errors.OpError as e:
                errors.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.3)
        session.close()
        thread.join(30)
    assert not thread.is_alive()
    assert isinstance(errors[0], tf.errors.CancelledError)


def test_many_threads_run_while_one_closes() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [8])
        y = tf.tanh(x) * 2.0
        session = tf.Session(graph=graph)
        unexpected: list[BaseException] = []

        def run() -> None:
            try:
                for _ in range(2000):
                    session.run(y, {x: np.ones(8, np.float32)})
            except (tf.errors.FailedPreconditionError, tf.errors.CancelledError):
                pass
            except BaseException as e:
                unexpected.append(e)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        session.close()
        for thread in threads:
            thread.join(30)
    assert not unexpected
    assert not any(t.is_alive() for t in threads)


@pytest.mark.slow
def test_ctrl_c_inside_a_native_loop() -> None:
    done = in_a_child(
        """
        import os, signal, threading
        start = tf.placeholder_with_default(np.float32(1.0), [])
        v = tf.Variable(np.float32(5.0))
        loop = tf.while_loop(lambda a: tf.less(a, 2.0), lambda a: (a * 1.0,), [start])
        with tf.Session() as session:
            session.run(v.initializer)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                session.run(loop)
            except KeyboardInterrupt:
                print("interrupted", session.run(v))
        """
    )
    assert done.stdout.strip() == "interrupted 5.0", done.stderr


def test_nested_loops_run_natively(world) -> None:
    a = tf.placeholder(tf.float32, [])
    body = a
    _, total = tf.while_loop(
        lambda i, s: tf.less(i, 3),
        lambda i, s: (i + 1, tf.while_loop(lambda j, t: tf.less(j, 4), lambda j, t: (j + 1, t + 1.0), [0, s])[1]),
        [0, body],
    )
    assert world.session.run(total, {a: 0.0}) == 12


def recursive_graph() -> tuple[tf.Graph, tf.Tensor]:
    """f(n) = n < 1 ? 0 : f(n - 1) + 1, by an If in a function that names itself."""
    graph = tf.Graph()
    stop, recur, f = FuncGraph("stop", graph), FuncGraph("recur", graph), FuncGraph("f", graph)
    with stop.as_default():
        stop.finish([tf.multiply(stop.add_input(tf.float32, (), "n"), 0.0)])
    for function in (stop, recur, f):
        graph.functions[function.name] = function
    with f.as_default():
        n = f.add_input(tf.float32, (), "n")
        branch = apply_op(
            "If",
            [tf.less(n, 1.0), [n]],
            {"then_branch": "stop", "else_branch": "recur", "Tout": (tf.float32,), "output_shapes": ((),)},
        )
        f.finish(branch)
    with recur.as_default():
        n = recur.add_input(tf.float32, (), "n")
        called = apply_op("PartitionedCall", [[n - 1.0]], {"f": "f", "Tout": (tf.float32,)})
        recur.finish([called[0] + 1.0])
    with graph.as_default():
        start = tf.placeholder(tf.float32, [], name="start")
        (result,) = apply_op("PartitionedCall", [[start]], {"f": "f", "Tout": (tf.float32,)})
    return graph, result


def test_recursion_through_an_if_runs_and_has_a_limit() -> None:
    graph, result = recursive_graph()
    with tf.Session(graph=graph) as session:
        assert session.run(result, {"start:0": 5.0}) == 5.0
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"If '.*': bodies are nested \d+ deep; at most"):
            session.run(result, {"start:0": 1e6})
        assert session.run(result, {"start:0": 3.0}) == 3.0


def test_recursion_in_a_loop_over_rows_runs() -> None:
    graph, _ = recursive_graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.map_fn(lambda v: apply_op("PartitionedCall", [[v]], {"f": "f", "Tout": (tf.float32,)})[0], x)
        assert session.run(y, {x: [1.0, 4.0]}).tolist() == [1.0, 4.0]


@pytest.mark.slow
def test_fork_after_a_run_works() -> None:
    done = in_a_child(
        """
        import os
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x)
        session = tf.Session()
        session.run(y, {x: np.ones(1 << 20)})
        child = os.fork()
        if child == 0:
            ok = np.allclose(session.run(y, {x: np.ones(1 << 20)}), np.tanh(1))
            os._exit(0 if ok else 3)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout.strip() == "child 0", done.stderr


@pytest.mark.slow
def test_interpreter_exits_with_a_run_in_flight() -> None:
    done = in_a_child(
        """
        import threading, time
        start = tf.placeholder_with_default(np.float32(1.0), [])
        loop = tf.while_loop(lambda a: tf.less(a, 2.0), lambda a: (a * 1.0,), [start])
        session = tf.Session()
        threading.Thread(target=session.run, args=(loop,), daemon=True).start()
        time.sleep(0.5)
        print("leaving")
        """
    )
    assert done.stdout.strip() == "leaving"
    assert done.returncode == 0, done.stderr


def test_closed_sessions_hold_no_memory_until_a_collection() -> None:
    used = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
                x = tf.placeholder(tf.float32, [100_000])
                v = tf.Variable(np.ones(100_000, np.float32))
                y, z = tf.tanh(tf.tanh(x)), tf.tanh(tf.tanh(x) * v)
                session.run(v.initializer)
                for _ in range(2):
                    session.run([y, z], {x: np.ones(100_000, np.float32)})
                allocator = session.list_devices()[0].allocator
            used.append(allocator.statistics().used)
    finally:
        gc.enable()
    assert used[2] == used[0]


@pytest.mark.slow
def test_ctrl_c_while_two_devices_overlap(device_type: str) -> None:
    done = in_a_child(
        """
        import os, signal, threading
        start = tf.placeholder_with_default(np.float32(1.0), [])
        x = tf.placeholder_with_default(np.float32(5.0), [])
        loops = []
        for k in range(2):
            with tf.device(f"/device:TYPE:{k}"):
                loops.append(tf.while_loop(lambda a: tf.less(a, 2.0), lambda a: (a * 1.0,), [start * (1.0 - k / 8)]))
        with tf.Session(config=tf.SessionConfig(device_count={"TYPE": 2})) as session:
            session.run(x * 2.0)
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                session.run(loops)
            except KeyboardInterrupt:
                print("interrupted", session.run(x * 2.0))
        """.replace("TYPE", device_type)
    )
    assert done.stdout.strip() == "interrupted 10.0", done.stderr

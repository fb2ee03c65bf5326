"""Time limits of runs, which end whatever the host does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf

LIMIT = tf.RunOptions(timeout_in_ms=100)
LONGEST_SECONDS = 5.0  # after which a call counts as one that was not ended; what it does takes twice as long
released = threading.Event()


@pytest.fixture
def session() -> Iterator[tf.Session]:
    released.clear()
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session
        released.set()


def wait(value: Any) -> Any:
    """Returns the value after a long time, or when the test ends."""
    released.wait(2 * LONGEST_SECONDS)
    return value


def waiting(value: Any, dtype: tf.DType = tf.float32) -> Any:
    return tf.py_func(wait, [value], dtype)


def first_of(dataset: Any) -> Any:
    return tf.data.make_one_shot_iterator(dataset).get_next()


def generator() -> Iterator[int]:
    yield wait(1)


def long_loop() -> Any:
    def body(i: Any) -> Any:
        return tf.py_func(lambda v: (time.sleep(0.01), v)[1], [i + 1], tf.int32)

    return tf.while_loop(lambda i: i < 1000, body, [0], [tf.TensorShape(None)])


WORK: dict[str, Callable[[], Any]] = {
    "a function of Python": lambda: waiting(1.0),
    "functions in a loop": long_loop,
    "an empty queue": lambda: tf.FIFOQueue(1, [tf.float32]).dequeue(),
    "an empty queue of files": lambda: tf.WholeFileReader().read(tf.FIFOQueue(1, [tf.string])),
    "a function of elements": lambda: first_of(tf.data.Dataset.range(3).map(lambda v: waiting(v, tf.int64))),
    "functions of elements side by side": lambda: first_of(
        tf.data.Dataset.range(3).map(lambda v: waiting(v, tf.int64), num_parallel_calls=2).prefetch(1)
    ),
    "a generator": lambda: first_of(tf.data.Dataset.from_generator(generator, tf.int64)),
    "a filter that takes nothing": lambda: first_of(tf.data.Dataset.range(10**9).filter(lambda v: v < 0)),
    "a large buffer to shuffle": lambda: first_of(tf.data.Dataset.range(10**9).shuffle(10**8)),
    "elements to skip": lambda: first_of(tf.data.Dataset.range(10**11).skip(10**11 - 1)),
}


def in_time(run: Callable[[], Any]) -> None:
    """Checks that a run ends by its limit, and soon."""
    start = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError, match="longer than"):
        run()
    assert time.monotonic() - start < LONGEST_SECONDS


@pytest.mark.parametrize("build", WORK.values(), ids=WORK)
def test_limit_ends_a_run_and_the_session_goes_on(session: tf.Session, build: Callable[[], Any]) -> None:
    y = build()
    in_time(lambda: session.run(y, options=LIMIT))
    assert session.run(tf.constant(1)) == 1


def test_limit_ends_reading_a_file_that_gives_nothing(session: tf.Session, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    contents = tf.read_file(str(pipe))
    in_time(lambda: session.run(contents, options=LIMIT))
    assert session.run(tf.constant(1)) == 1
    os.close(os.open(pipe, os.O_RDWR))  # so that the thread that opens it ends


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (lambda x: tf.decode_csv(x, [[0.0]] * 3)[0], b"1,2,3"),
        (lambda x: tf.strings.regex_replace(x, "(a|b)+c?", "x"), b"ab" * 500),
        (lambda x: tf.string_to_number(x), b"1.5"),
    ],
    ids=["decoding", "regular expressions", "numbers"],
)
def test_limit_ends_work_on_strings(session: tf.Session, build: Callable[[Any], Any], line: bytes) -> None:
    x = tf.placeholder(tf.string, [None])
    y = build(x)
    session.run(y, {x: [line]})
    start = time.process_time()
    session.run(y, {x: [line] * 10_000})
    lines = int(3 * 10_000 / (time.process_time() - start))  # which take some 3 seconds
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(y, {x: [line] * lines}, options=LIMIT)


def test_program_may_end_while_work_goes_on_that_a_limit_has_cut_off() -> None:
    program = """
import timberframe as tf
x = tf.placeholder(tf.string, [None])
y = tf.strings.regex_replace(x, "(a|b)+c?", "x")
try:
    tf.Session().run(y, {x: [b"ab" * 500] * 200_000}, options=tf.RunOptions(timeout_in_ms=100))
except tf.errors.DeadlineExceededError:
    print("cut off")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "cut off\n", "")


def test_limit_of_the_session_ends_a_function_of_python() -> None:
    released.clear()
    with tf.Graph().as_default():
        y = waiting(1.0)
        with tf.Session(config=tf.SessionConfig(operation_timeout_in_ms=100)) as session:
            in_time(lambda: session.run(y))
            assert session.run(tf.constant(1)) == 1
    released.set()


def test_run_within_its_limit_gives_what_functions_return_and_raise(session: tf.Session) -> None:
    def fail() -> float:
        raise ValueError("no value")

    options = tf.RunOptions(timeout_in_ms=60_000)
    assert session.run(tf.py_func(lambda x: x + x, [1.5], tf.float32), options=options) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="no value"):
        session.run(tf.py_func(fail, [], tf.double), options=options)


def test_element_that_was_not_given_in_time_comes_next(session: tf.Session) -> None:
    y = first_of(tf.data.Dataset.range(3).map(lambda v: waiting(v, tf.int64)))
    in_time(lambda: session.run(y, options=LIMIT))
    released.set()
    assert [session.run(y), session.run(y)] == [0, 1]

"""Iterators: one-shot, initializable, reinitializable and feedable ones."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import taken

Dataset = tf.data.Dataset


def test_the_end_is_out_of_range(session: tf.Session) -> None:
    following = Dataset.range(1).make_one_shot_iterator().get_next()
    session.run(following)
    for _ in range(2):
        with pytest.raises(tf.errors.OutOfRangeError, match=r"IteratorGetNext.*End of sequence"):
            session.run(following)


def test_tensors_of_one_get_next_are_of_one_element(session: tf.Session) -> None:
    a, b = Dataset.zip((Dataset.range(9), Dataset.range(9))).make_one_shot_iterator().get_next()
    assert session.run([a, b, a + b]) == [0, 0, 0]
    assert session.run([b, a]) == [1, 1]


def test_sessions_have_positions_of_their_own(session: tf.Session) -> None:
    following = Dataset.range(3).make_one_shot_iterator().get_next()
    session.run(following)
    with tf.Session() as other:
        assert other.run(following) == 0


def test_an_iterator_must_be_initialized(session: tf.Session) -> None:
    following = Dataset.range(3).make_initializable_iterator().get_next()
    with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
        session.run(following)


def test_an_initializer_begins_again(session: tf.Session) -> None:
    iterator = Dataset.range(3).make_initializable_iterator()
    following = iterator.get_next()
    found = []
    for _ in range(2):
        session.run(iterator.initializer)
        found.append([session.run(following), session.run(following)])
    assert found == [[0, 1], [0, 1]]


def test_seeded_numbers_begin_again_with_the_initializer(session: tf.Session) -> None:
    drawn = Dataset.range(3).map(lambda x: tf.random_uniform([], 0, 1000, tf.int32, seed=3))
    iterator = drawn.shuffle(3, seed=2).make_initializable_iterator()
    following, rounds = iterator.get_next(), []
    for _ in range(2):
        session.run(iterator.initializer)
        rounds.append(taken(session, following))
    assert rounds[0] == rounds[1]


def test_unseeded_numbers_do_not_begin_again(session: tf.Session) -> None:
    iterator = Dataset.range(3).map(lambda x: tf.random_uniform([])).make_initializable_iterator()
    following, rounds = iterator.get_next(), []
    for _ in range(2):
        session.run(iterator.initializer)
        rounds.append(taken(session, following))
    assert rounds[0] != rounds[1]


def test_one_iterator_goes_through_several_datasets(session: tf.Session) -> None:
    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    following = iterator.get_next()
    found = []
    for dataset in (Dataset.range(2), Dataset.range(7, 9)):
        session.run(iterator.make_initializer(dataset))
        found.append(taken(session, following))
    assert found == [[0, 1], [7, 8]]


def test_a_dataset_of_another_structure_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="component 0 has dtype int64; int32 is required"):
        tf.data.Iterator.from_structure(tf.int32, []).make_initializer(Dataset.range(3))


def test_a_fed_string_chooses_the_iterator(session: tf.Session) -> None:
    first = Dataset.range(3).make_one_shot_iterator()
    second = Dataset.range(10, 13).make_initializable_iterator()
    session.run(second.initializer)
    handles = session.run([first.string_handle(), second.string_handle()])
    chosen = tf.placeholder(tf.string, [])
    following = tf.data.Iterator.from_string_handle(chosen, first.output_types, first.output_shapes).get_next()
    assert [session.run(following, {chosen: handles[i]}) for i in (0, 1, 1, 0)] == [0, 10, 11, 1]


def test_a_string_of_no_iterator_is_refused(session: tf.Session) -> None:
    following = tf.data.Iterator.from_string_handle("nobody", tf.int64, []).get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match="stands for no iterator"):
        session.run(following)


def test_a_one_shot_iterator_needs_a_dataset_without_state() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="make_initializable_iterator"):
        Dataset.from_tensors(tf.placeholder(tf.int32)).make_one_shot_iterator()


def test_there_is_no_initializer_before_it_is_made() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="does not have an initializer"):
        _ = tf.data.Iterator.from_structure(tf.int64).initializer


def test_an_element_feeds_a_training_step(session: tf.Session) -> None:
    x, y = np.float32([[1], [2], [3], [4]]), np.float32([[3], [5], [7], [9]])
    batch_x, batch_y = Dataset.from_tensor_slices((x, y)).repeat().batch(4).make_one_shot_iterator().get_next()
    w, b = tf.get_variable("w", [1, 1]), tf.get_variable("b", [1])
    loss = tf.reduce_mean((batch_x @ w + b - batch_y) ** 2)
    step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    session.run(tf.global_variables_initializer())
    first = session.run(loss)
    for _ in range(200):
        session.run(step)
    assert session.run(loss) < first / 50


def test_what_is_fetched_is_the_users(session: tf.Session) -> None:
    following = Dataset.from_tensors(np.zeros(3)).cache().repeat(2).make_one_shot_iterator().get_next()
    session.run(following)[:] = 9
    assert session.run(following).tolist() == [0, 0, 0]


def test_threads_of_a_session_share_the_elements(session: tf.Session) -> None:
    following = Dataset.range(200).make_one_shot_iterator().get_next()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.extend(taken(session, following))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert sorted(found) == list(range(200))


def prefetching() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("prefetch", "map"))]


def test_closing_the_session_ends_the_threads() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        following = Dataset.range(10**9).map(lambda x: x + 1).prefetch(2).make_one_shot_iterator().get_next()
        session.run(following)
        assert prefetching()
    assert not prefetching()


def test_a_run_that_waits_for_an_element_can_be_cancelled(session: tf.Session) -> None:
    blocked = threading.Event()
    waiting = Dataset.range(3).map(lambda x: tf.py_func(lambda v: (blocked.wait(20), v)[1], [x], tf.int64))
    following = waiting.prefetch(1).make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=100))
    blocked.set()
    assert session.run(following) == 0


def test_output_types_of_iterators() -> None:
    with tf.Graph().as_default():
        iterator = Dataset.from_tensor_slices({"a": [1.5]}).batch(2).make_one_shot_iterator()
        assert tf.data.get_output_types(iterator) == {"a": tf.float32}
        assert tf.data.get_output_shapes(iterator)["a"].as_list() == [None]
        assert tf.data.get_output_classes(iterator) == {"a": tf.Tensor}


def test_graphs_with_datasets_are_imported_as_they_were() -> None:
    with tf.Graph().as_default() as graph:
        iterator = Dataset.range(6).shuffle(3, seed=1).map(lambda x: x * 2).batch(2).make_initializable_iterator()
        tf.identity(iterator.get_next(), name="following")
        begin = iterator.initializer.name
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(graph.as_graph_def(), name="")
    found = []
    for one in (graph, copy):
        with tf.Session(graph=one) as session:
            session.run(begin)
            found.append(taken(session, "following:0"))
    assert found[0] == found[1] != []


@pytest.mark.slow
def test_the_interpreter_ends_while_threads_make_elements() -> None:
    program = """
import time, itertools
import timberframe as tf
def forever():
    for i in itertools.count():
        time.sleep(0.001)
        yield i
def slow(x):
    return tf.py_func(lambda v: (time.sleep(0.001), v)[1], [x], tf.int64, stateful=False)
numbers = tf.data.Dataset.range(10**9)
pipelines = [
    numbers.map(lambda x: x + 1).prefetch(2),
    numbers.map(slow, 4).prefetch(2),
    tf.data.Dataset.from_generator(forever, tf.int64, []).prefetch(2),
]
following = [p.make_one_shot_iterator().get_next() for p in pipelines]
session = tf.Session()
for _ in range(12):
    session.run(following)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_session_that_is_forgotten_ends_its_threads() -> None:
    with tf.Graph().as_default() as graph:
        following = Dataset.range(10**9).map(lambda x: x + 1).prefetch(2).make_one_shot_iterator().get_next()
    session = tf.Session(graph=graph)
    session.run(following)
    assert prefetching()
    del session
    for _ in range(50):
        gc.collect()
        if not prefetching():
            return
        time.sleep(0.1)
    raise AssertionError(f"threads {prefetching()} go on")


def test_closing_the_session_ends_a_run_that_waits() -> None:
    blocked = threading.Event()
    with tf.Graph().as_default() as graph:
        waiting = Dataset.range(9).map(lambda x: tf.py_func(lambda v: (blocked.wait(0.4), v)[1], [x], tf.int64))
        following = waiting.prefetch(1).make_one_shot_iterator().get_next()
    session = tf.Session(graph=graph)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            session.run(following)
        except tf.errors.OpError as e:
            errors.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    session.close()
    thread.join(20)
    assert [type(e) for e in errors] == [tf.errors.CancelledError]
    assert not prefetching()


def test_a_run_that_waits_for_a_call_in_a_thread_can_be_cancelled(session: tf.Session) -> None:
    release = threading.Event()

    def call(v: np.int64) -> np.int64:
        time.sleep(0.002)
        if v == 20:
            release.wait(20)
        return v

    mapped = Dataset.range(40).map(lambda x: tf.py_func(call, [x], tf.int64, stateful=False), num_parallel_calls=2)
    following = mapped.make_one_shot_iterator().get_next()
    assert taken(session, following, 20) == list(range(20))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=100))
    release.set()
    assert taken(session, following) == list(range(20, 40))


def test_runs_that_are_cancelled_lose_no_element_of_a_call_in_a_thread(session: tf.Session) -> None:
    def call(v: np.int64) -> np.int64:
        time.sleep(0.01)
        return v

    def slow(x: Any) -> Any:
        return tf.py_func(call, [tf.py_func(call, [x], tf.int64, stateful=False)], tf.int64, stateful=False)

    following = Dataset.range(30).map(slow, num_parallel_calls=3).make_one_shot_iterator().get_next()
    found, stopped = taken(session, following, 8), 0
    while len(found) < 30:
        try:
            found.append(session.run(following, options=tf.RunOptions(timeout_in_ms=5)))
        except tf.errors.DeadlineExceededError:
            stopped += 1
    assert (found, stopped > 0) == (list(range(30)), True)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.batch(4),
        lambda d: d.filter(lambda x: x >= 0).batch(4),
        lambda d: d.shuffle(1).batch(4),
        lambda d: Dataset.zip((Dataset.range(24), d)).map(lambda a, b: b).batch(4),
        lambda d: Dataset.range(-9, 0).concatenate(d).skip(9).batch(4),
        lambda d: d.prefetch(2).batch(4),
    ],
    ids=["batch", "filter", "shuffle", "zip", "skip", "prefetch"],
)
def test_runs_that_are_cancelled_lose_no_element(session: tf.Session, change: Any) -> None:
    def call(v: np.int64) -> np.int64:
        time.sleep(0.004)
        return v

    slow = Dataset.range(24).map(lambda x: tf.py_func(call, [x], tf.int64))
    following, found, stopped = change(slow).make_one_shot_iterator().get_next(), [], 0
    while True:
        try:
            found.extend(session.run(following, options=tf.RunOptions(timeout_in_ms=10)).tolist())
        except tf.errors.DeadlineExceededError:
            stopped += 1
        except tf.errors.OutOfRangeError:
            break
    assert (found, stopped > 0) == (list(range(24)), True)


def test_an_error_of_a_dataset_names_the_line_that_made_it() -> None:
    rows = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2]]), tf.int32)
    batches = rows.batch(2)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]  # CPython has frames
    following = batches.make_one_shot_iterator().get_next()
    message = rf"^BatchDatasetV2 '\w+': component 0 .*equal shapes  \[.*test_iterators\.py:{line}\]"
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(following)


def test_the_end_says_what_to_do_about_it() -> None:
    following = tf.data.Dataset.range(0).make_one_shot_iterator().get_next()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.OutOfRangeError, match=r"End of sequence; catch .*repeat\(\)"),
    ):
        session.run(following)

"""Queue-based input: producers, batches, epochs, and threads that end."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def all_of(fetches: Any) -> list[Any]:
    """Returns what a graph gives until its input ends; all threads must then have ended."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with suppress(tf.errors.OutOfRangeError):
            while len(found) < 100:
                found.append(session.run(fetches))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
    assert not any(t.is_alive() for t in threads)
    return found


def numbers(count: int, epochs: int = 1) -> tf.Tensor:
    return tf.train.range_input_producer(count, num_epochs=epochs, shuffle=False).dequeue()


def test_each_epoch_has_each_row() -> None:
    queue = tf.train.input_producer(tf.constant([[1, 2], [3, 4], [5, 6]]), num_epochs=2, seed=1)
    found = [row.tolist() for row in all_of(queue.dequeue())]
    assert sorted(found[:3]) == sorted(found[3:]) == [[1, 2], [3, 4], [5, 6]]


def test_order_is_kept_without_shuffle() -> None:
    assert all_of(tf.train.string_input_producer(["b", "a"], num_epochs=1, shuffle=False).dequeue()) == [b"b", b"a"]


def test_slices_of_several_tensors_belong_together() -> None:
    row, word = tf.train.slice_input_producer([tf.constant([1, 2, 3]), tf.constant(["a", "b", "c"])], num_epochs=1)
    assert sorted(all_of([row, word])) == [[1, b"a"], [2, b"b"], [3, b"c"]]


def test_epochs_are_counted_in_a_local_variable() -> None:
    tf.train.string_input_producer(["x"], num_epochs=3)
    assert [v.op.name for v in tf.local_variables()] == ["input_producer/limit_epochs/epochs"]
    assert not tf.global_variables()


def test_limit_epochs_ends_after_as_many_runs() -> None:
    assert all_of(tf.train.limit_epochs(tf.constant(7), 3)) == [7, 7, 7]


def test_without_a_limit_the_tensor_itself_comes_back() -> None:
    x = tf.constant(1)
    assert tf.train.limit_epochs(x) is x


def test_names_of_files_are_matched_once(tmp_path: Path) -> None:
    (tmp_path / "b.txt").touch()
    (tmp_path / "a.txt").touch()
    files = tf.train.match_filenames_once(str(tmp_path / "*.txt"))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        (tmp_path / "c.txt").touch()
        assert session.run(files).tolist() == [str(tmp_path / f).encode() for f in ("a.txt", "b.txt")]


def test_batch_drops_what_does_not_fill_one() -> None:
    assert [x.tolist() for x in all_of(tf.train.batch([numbers(5)], 2))] == [[0, 1], [2, 3]]


def test_smaller_final_batch_is_allowed() -> None:
    made = tf.train.batch([numbers(5)], 2, allow_smaller_final_batch=True)
    assert made.shape.as_list() == [None]
    assert [x.tolist() for x in all_of(made)] == [[0, 1], [2, 3], [4]]


def test_batch_of_a_dict_is_a_dict() -> None:
    n = numbers(2)
    (found,) = all_of(tf.train.batch({"n": n, "square": n * n}, 2))
    assert {k: v.tolist() for k, v in found.items()} == {"n": [0, 1], "square": [0, 1]}


def test_rows_of_tensors_are_elements_with_enqueue_many() -> None:
    made = tf.train.batch([tf.train.limit_epochs(tf.constant([[1, 2], [3, 4], [5, 6]]), 2)], 3, enqueue_many=True)
    assert [x.tolist() for x in all_of(made)] == [[[1, 2], [3, 4], [5, 6]]] * 2


def test_dynamic_pad_fills_up_with_zeros() -> None:
    n = numbers(3)
    (found,) = all_of(tf.train.batch([tf.fill([n + 1], n)], 3, dynamic_pad=True))
    assert found.tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 2]]


def test_shuffle_batch_gives_every_element_once() -> None:
    made = tf.train.shuffle_batch([numbers(10)], 5, capacity=20, min_after_dequeue=8, seed=3)
    found = np.concatenate(all_of(made)).tolist()
    assert sorted(found) == list(range(10))
    assert found != list(range(10))


def test_batch_join_takes_from_all() -> None:
    made = tf.train.batch_join([[numbers(3)], [numbers(3) + 10]], 6)
    assert sorted(all_of(made)[0].tolist()) == [0, 1, 2, 10, 11, 12]


def test_shuffle_batch_join_takes_from_all() -> None:
    made = tf.train.shuffle_batch_join([[numbers(3)], [numbers(3) + 10]], 6, capacity=10, min_after_dequeue=2)
    assert sorted(all_of(made)[0].tolist()) == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("shuffled", [False, True])
def test_only_wanted_elements_are_kept(shuffled: bool) -> None:
    n = numbers(6)
    keep = tf.equal(n % 2, 0)
    made = tf.train.maybe_shuffle_batch([n], 3, 10, 2, keep) if shuffled else tf.train.maybe_batch([n], keep, 3)
    assert sorted(all_of(made)[0].tolist()) == [0, 2, 4]


def test_only_wanted_rows_are_kept() -> None:
    rows = tf.train.limit_epochs(tf.constant([1, 2, 3, 4]), 1)
    made = tf.train.maybe_batch([rows], tf.constant([True, False, True, False]), 2, enqueue_many=True)
    assert all_of(made)[0].tolist() == [1, 3]


def test_joined_elements_are_kept_or_not() -> None:
    n = numbers(6)
    made = tf.train.maybe_batch_join([[n], [n]], tf.greater(n, 3), 2)
    assert sorted(all_of(made)[0].tolist()) == [4, 5]


def test_batches_of_sparse_tensors() -> None:
    n = numbers(4)
    indices = tf.cast(tf.expand_dims(tf.range(n), 1), tf.int64)
    sparse = tf.SparseTensor(indices, tf.fill([n], n), tf.cast([n], tf.int64))
    first, second = all_of(tf.train.batch([n, sparse], 2))
    assert (first[1].indices.tolist(), first[1].dense_shape.tolist()) == ([[1, 0]], [2, 1])
    assert (second[1].values.tolist(), second[1].dense_shape.tolist()) == ([2, 2, 3, 3, 3], [2, 3])


@pytest.mark.parametrize("keep", [True, [True, False]])
def test_rows_of_sparse_tensors_are_elements_with_enqueue_many(keep: Any) -> None:
    once = tf.train.limit_epochs(tf.constant(0, tf.int64), 1)
    sparse = tf.SparseTensor([[0, 1], [1, 0]] + once, [5, 6], [2, 2])
    made = tf.train.maybe_batch([sparse], tf.constant(keep), 1, enqueue_many=True)
    found = [x.values.tolist() for x in all_of(made)]
    assert found == ([[5], [6]] if keep is True else [[5]])


def test_how_full_a_queue_is_becomes_a_summary() -> None:
    tf.train.batch([tf.train.string_input_producer(["x"], capacity=9).dequeue()], 1, capacity=7)
    names = [s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == ["input_producer/fraction_of_9_full", "batch/fraction_of_7_full"]


def test_error_in_the_input_comes_out_of_join() -> None:
    bad = tf.decode_raw(tf.train.string_input_producer(["abc"]).dequeue(), tf.int32)
    made = tf.train.batch([bad], 1, shapes=[[1]])
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(made)
        with pytest.raises(tf.errors.InvalidArgumentError, match="DecodeRaw"):
            coordinator.join(threads, stop_grace_period_secs=20)
    assert not any(t.is_alive() for t in threads)


def test_closing_the_session_ends_threads_that_wait() -> None:
    tf.train.batch([tf.train.string_input_producer(["x"], capacity=2).dequeue()], 1, capacity=2)
    with tf.Session() as session:
        threads = tf.train.start_queue_runners(session)
        assert threads
    for thread in threads:
        thread.join(20)
    assert not any(t.is_alive() for t in threads)
    assert not [t for t in threading.enumerate() if "QueueRunner" in t.name]


def test_counter_that_was_not_initialized_is_named() -> None:
    value = tf.train.limit_epochs(tf.constant(1), 1)
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="limit_epochs/epochs"):
        session.run(value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.train.limit_epochs(1, 0), "num_epochs is 0; it must be positive"),
        (lambda: tf.train.string_input_producer([]), "non-null input tensor"),
        (lambda: tf.train.input_producer(tf.placeholder(tf.int32, [None, None])), "must be fully known"),
        (lambda: tf.train.slice_input_producer([]), "tensor_list is empty"),
        (lambda: tf.train.batch([], 1), "no tensors are given"),
        (lambda: tf.train.batch([tf.placeholder(tf.int32)], 1), "is unknown; give shapes"),
        (lambda: tf.train.batch_join([], 1), "tensors_list is empty"),
        (lambda: tf.train.batch_join([[1], [1.0]], 1), "all sets of tensors need the same"),
        (lambda: tf.train.batch_join([{"a": 1}, {"b": 1}], 1), "all must have the same"),
        (lambda: tf.train.shuffle_batch([1], 1, capacity=2, min_after_dequeue=2), "the capacity must be larger"),
        (lambda: tf.train.maybe_batch([1], [True], 1), "a scalar is required"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        make()

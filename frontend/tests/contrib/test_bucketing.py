"""tf.contrib.training.bucket and bucket_by_sequence_length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")
by_length = tf.contrib.training.bucket_by_sequence_length


def numbers(last: int) -> Any:
    """Returns what gives 0 ... last - 1 in turn, then ends."""
    return tf.train.range_input_producer(last, num_epochs=1, shuffle=False).dequeue()


def batches(fetches: Any) -> Iterator[Any]:
    """Yields what comes until the input ends."""
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with suppress(tf.errors.OutOfRangeError):
            while True:
                yield session.run(fetches)
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)


def test_elements_of_like_lengths_come_together_padded_to_the_longest() -> None:
    n = numbers(10)
    lengths, rows = by_length(n, [tf.fill([n], n)], 2, [3, 6], dynamic_pad=True)
    assert lengths.shape == (2,)
    assert rows.shape.as_list() == [2, None]
    found = {tuple(a.tolist()): b.tolist() for a, b in batches((lengths, rows))}
    assert found[0, 1] == [[0], [1]]
    assert found[3, 4] == [[3, 3, 3, 0], [4, 4, 4, 4]]
    assert sorted(found) == [(0, 1), (3, 4), (6, 7), (8, 9)]


def test_what_is_left_comes_in_smaller_batches_where_it_may() -> None:
    n = numbers(10)
    lengths, named = by_length(
        n, {"square": n * n, "word": tf.as_string(n)}, [2, 4], [3], shapes=[[], []], allow_smaller_final_batch=True
    )
    assert named["square"].shape.as_list() == [None]
    found = sorted((a.tolist(), b["square"].tolist(), b["word"].tolist()) for a, b in batches((lengths, named)))
    assert [lengths for lengths, _, _ in found] == [[0, 1], [2], [3, 4, 5, 6], [7, 8, 9]]
    assert all(squares == [x * x for x in xs] for xs, squares, _ in found)
    assert all(words == [b"%d" % x for x in xs] for xs, _, words in found)


def test_elements_that_are_not_kept_are_left_out() -> None:
    n = numbers(12)
    which, value = tf.contrib.training.bucket(n, n % 2, 3, 2, keep_input=n > 5, bucket_capacities=[4, 8])
    assert sorted((int(b), v.tolist()) for b, v in batches((which, value))) == [(0, [6, 8, 10]), (1, [7, 9, 11])]


def test_sparse_elements_come_back_sparse() -> None:
    n = tf.cast(numbers(4), tf.int64)
    element = tf.SparseTensor([[n]], [n * 10], tf.constant([4], tf.int64))
    which, (made, same) = tf.contrib.training.bucket([element, n], tf.cast(n // 2, tf.int32), 2, 2)
    found = sorted(
        (int(b), s.indices.tolist(), s.values.tolist(), x.tolist()) for b, s, x in batches((which, made, same))
    )
    assert found == [(0, [[0, 0], [1, 1]], [0, 10], [0, 1]), (1, [[0, 2], [1, 3]], [20, 30], [2, 3])]


def test_an_error_in_what_makes_elements_ends_the_input() -> None:
    n = numbers(8)
    checked = tf.check_numerics(1 / tf.cast(4 - n, tf.float32), "divided by zero")
    _, value = tf.contrib.training.bucket(checked, n % 2, 2, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="divided by zero"):
        list(batches(value))


@pytest.mark.parametrize("boundaries", [4, [1.5], ["a", "b"]])
def test_boundaries_that_are_no_list_of_integers_are_a_type_error(boundaries: Any) -> None:
    with pytest.raises(TypeError, match=r"bucket_boundaries is .*; a list of integers is required"):
        by_length(3, [tf.constant(1)], 2, boundaries)


@pytest.mark.parametrize("boundaries", [[], [3, 3], [3, 2]])
def test_boundaries_must_increase(boundaries: list[int]) -> None:
    with pytest.raises(ValueError, match=r"bucket_boundaries is .*; increasing numbers, one at least, are required"):
        by_length(3, [tf.constant(1)], 2, boundaries)


@pytest.mark.parametrize("given", [{"batch_size": [2]}, {"batch_size": 2, "bucket_capacities": [2, 3, 4]}])
def test_lists_need_an_entry_for_each_bucket(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"has [13] entries; 2 are required, one for each bucket"):
        tf.contrib.training.bucket([tf.constant(1)], 0, num_buckets=2, **given)


def test_summaries_tell_how_full_the_queues_are() -> None:
    tf.contrib.training.bucket(tf.constant(1), 0, 2, 2, capacity=8, name="sorted")
    names = {op.name for op in tf.get_default_graph().get_operations() if op.type == "ScalarSummary"}
    assert "sorted/bucket/sorted/top_queue/fraction_of_8_full" in names
    assert np.all([f"sorted/bucket/sorted/bucket_queue_{i}/size" in names for i in range(2)])

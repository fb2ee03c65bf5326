"""tf.data in eager execution."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def values(dataset: Any) -> list[Any]:
    return [tf.nest.map_structure(lambda x: x.numpy().tolist(), element) for element in dataset]


def test_a_loop_goes_through_the_elements() -> None:
    dataset = tf.data.Dataset.range(5)
    assert values(dataset) == [0, 1, 2, 3, 4]
    assert values(dataset) == [0, 1, 2, 3, 4]


def test_elements_have_their_structure() -> None:
    dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0], "y": np.array([3, 4])})
    assert values(dataset) == [{"x": 1, "y": 3}, {"x": 2, "y": 4}]


def test_pipelines_run() -> None:
    dataset = tf.data.Dataset.range(10).filter(lambda x: x % 2 < 1).map(lambda x: x * x).repeat(2).batch(4)
    assert values(dataset) == [[0, 4, 16, 36], [64, 0, 4, 16], [36, 64]]


def test_functions_use_eager_tensors_and_variables() -> None:
    offset, factor = tf.constant(10, tf.int64), tf.Variable(2, dtype=tf.int64)
    dataset = tf.data.Dataset.range(3).map(lambda x: x * factor + offset)
    first = values(dataset)
    factor.assign(3)
    assert (first, values(dataset)) == ([10, 12, 14], [10, 13, 16])


def test_shuffling_with_a_seed_repeats() -> None:
    found = [values(tf.data.Dataset.range(20).shuffle(20, seed=5)) for _ in range(2)]
    assert found[0] == found[1] != list(range(20))


def test_each_loop_over_a_shuffled_dataset_has_another_order() -> None:
    again, same = (tf.data.Dataset.range(20).shuffle(20, 5, reshuffle_each_iteration=x) for x in (None, False))
    first, second = values(again), values(again)
    assert first != second
    assert [first, second] == np.reshape(values(tf.data.Dataset.range(20).shuffle(20, 5).repeat(2)), [2, 20]).tolist()
    assert values(same) == values(same)


def test_each_loop_over_a_cached_dataset_has_the_elements_of_the_first() -> None:
    calls: list[int] = []
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.py_func(lambda n: calls.append(n) or n, [x], tf.int64)).cache()
    assert values(dataset) == values(dataset) == [0, 1, 2]
    assert len(calls) == 3


def test_transformations_take_several_functions() -> None:
    window = tf.data.experimental.group_by_window(
        key_func=lambda x: x % 2,
        reduce_func=lambda _, d: d.batch(4),
        window_size_func=lambda _: tf.constant(4, tf.int64),
    )
    assert values(tf.data.Dataset.range(8).apply(window)) == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_generators_are_gone_through() -> None:
    dataset = tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), tf.int32)
    assert values(dataset) == [1, 2, 3]


def test_next_and_get_next_give_one_element() -> None:
    iterator = tf.data.Dataset.range(2).make_one_shot_iterator()
    assert [int(next(iterator)), int(iterator.get_next())] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_the_older_name_of_the_iterator_works() -> None:
    assert [int(x) for x in tf.contrib.eager.Iterator(tf.data.Dataset.range(3))] == [0, 1, 2]


def test_initializable_iterators_are_refused() -> None:
    with pytest.raises(RuntimeError, match="for element in dataset"):
        tf.data.Dataset.range(2).make_initializable_iterator()


def test_a_loop_in_a_graph_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="eager"):
        iter(tf.data.Dataset.range(2))


def test_what_a_function_raises_reaches_the_loop() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no good")

    dataset = tf.data.Dataset.range(2).map(lambda x: tf.py_func(fail, [x], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no good"):
        values(dataset)


def test_threads_end_with_the_iterator() -> None:
    before = threading.active_count()
    iterator = iter(tf.data.Dataset.range(1000).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2))
    next(iterator)
    del iterator
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and threading.active_count() > before:
            thread.join(timeout=2)
    assert threading.active_count() <= before + 2  # those of a pool that all share may stay


def test_datasets_that_are_made_again_and_again_keep_memory_flat() -> None:
    def work(count: int) -> None:
        for _ in range(count):
            values(tf.data.Dataset.range(3).map(lambda x: x + 1).batch(2))

    work(5)
    gc.collect()
    before = len(gc.get_objects())
    work(20)
    gc.collect()
    assert len(gc.get_objects()) - before < 2000


def test_a_model_trains_on_a_dataset() -> None:
    x = np.arange(8, dtype=np.float32)[:, None]
    w = tf.Variable([[0.0]])
    optimizer = tf.train.GradientDescentOptimizer(0.02)
    for batch, labels in tf.data.Dataset.from_tensor_slices((x, 3 * x)).repeat(10).batch(4):
        optimizer.minimize(lambda b=batch, y=labels: tf.reduce_mean((tf.matmul(b, w) - y) ** 2))
    np.testing.assert_allclose(w.numpy(), [[3]], rtol=1e-3)

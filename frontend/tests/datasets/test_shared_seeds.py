"""The order of shuffled datasets that stand in several places, or are gone through again: TensorFlow 2.21's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import timberframe as tf
from timberframe.eager.context import eager_mode

Dataset = tf.data.Dataset


def shuffled(count: int, **more: Any) -> Any:
    return Dataset.range(count).shuffle(4, seed=3, **more)


def zipped(dataset: Any) -> Any:
    return Dataset.zip((dataset, dataset))


def sampled() -> Any:
    parts = [shuffled(5), Dataset.range(10, 15).shuffle(4, seed=3)]
    return tf.data.experimental.sample_from_datasets(parts, [0.3, 0.7], seed=5).repeat(2)


def captured(change: Callable[[Any], Any]) -> Any:
    dataset = shuffled(4)
    return Dataset.range(2).flat_map(lambda x: change(dataset))


def interleaved(dataset: Any) -> Any:
    return Dataset.range(2).interleave(lambda x: dataset, cycle_length=2)


def always(dataset: Any) -> Callable[[Any], Any]:
    return lambda x: dataset


def plain(element: Any) -> Any:
    return tuple(int(x) for x in element) if isinstance(element, tuple) else element.numpy().tolist()


THREE_PASSES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "zip of one": (
        lambda: zipped(shuffled(6)),
        [
            [(3, 0), (0, 4), (1, 3), (4, 1), (2, 5), (5, 2)],
            [(2, 1), (0, 3), (4, 2), (3, 5), (5, 0), (1, 4)],
            [(0, 3), (2, 1), (4, 5), (5, 2), (1, 0), (3, 4)],
        ],
    ),
    "zip of one, twice": (
        lambda: zipped(shuffled(6)).repeat(2),
        [
            [(3, 0), (0, 4), (1, 3), (4, 1), (2, 5), (5, 2), (2, 1), (0, 3), (4, 2), (3, 5), (5, 0), (1, 4)],
            [(3, 3), (0, 4), (1, 1), (4, 2), (5, 5), (2, 0), (2, 0), (1, 1), (0, 5), (4, 3), (5, 2), (3, 4)],
            [(2, 3), (4, 1), (3, 4), (1, 5), (0, 0), (5, 2), (2, 1), (0, 3), (4, 0), (3, 5), (1, 4), (5, 2)],
        ],
    ),
    "one order": (
        lambda: zipped(shuffled(6, reshuffle_each_iteration=False)).repeat(2),
        [
            [(1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5), (1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5)],
            [(1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5), (1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5)],
            [(1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5), (1, 1), (3, 3), (2, 2), (0, 0), (4, 4), (5, 5)],
        ],
    ),
    "repeated before": (
        lambda: zipped(shuffled(4).repeat(2)),
        [
            [(3, 0), (1, 2), (0, 3), (2, 1), (2, 1), (1, 3), (0, 2), (3, 0)],
            [(0, 3), (3, 2), (2, 0), (1, 1), (3, 3), (0, 1), (1, 2), (2, 0)],
            [(2, 0), (1, 3), (0, 1), (3, 2), (2, 0), (0, 1), (3, 2), (1, 3)],
        ],
    ),
    "kept": (
        lambda: zipped(shuffled(4).cache()).repeat(2),
        [
            [(3, 0), (1, 2), (0, 3), (2, 1), (3, 3), (1, 1), (0, 0), (2, 2)],
            [(3, 3), (1, 1), (0, 0), (2, 2), (3, 3), (1, 1), (0, 0), (2, 2)],
            [(3, 3), (1, 1), (0, 0), (2, 2), (3, 3), (1, 1), (0, 0), (2, 2)],
        ],
    ),
    "samples": (
        lambda: sampled(),
        [
            [3, 13, 0, 10, 12, 14, 11, 2, 4, 1, 0, 10, 4, 14, 11, 13, 12, 1, 3, 2],
            [1, 11, 3, 13, 10, 14, 12, 0, 4, 2, 0, 10, 2, 12, 11, 13, 14, 1, 3, 4],
            [3, 13, 0, 10, 11, 12, 14, 1, 2, 4, 3, 13, 4, 14, 10, 11, 12, 0, 1, 2],
        ],
    ),
    "repeated twice": (
        lambda: shuffled(4).batch(2).repeat(2).repeat(2),
        [
            [[3, 1], [0, 2], [0, 2], [3, 1], [1, 3], [2, 0], [0, 3], [2, 1]],
            [[3, 1], [2, 0], [2, 1], [0, 3], [2, 0], [3, 1], [0, 1], [2, 3]],
            [[2, 0], [1, 3], [1, 2], [3, 0], [2, 0], [1, 3], [2, 3], [1, 0]],
        ],
    ),
    "shuffled twice": (
        lambda: shuffled(6).shuffle(3, seed=9).batch(2).repeat(2),
        [
            [[1, 4], [3, 2], [5, 0], [0, 1], [4, 2], [3, 5]],
            [[0, 3], [2, 4], [5, 1], [3, 5], [0, 2], [4, 1]],
            [[4, 0], [5, 1], [2, 3], [1, 3], [0, 5], [4, 2]],
        ],
    ),
    "captured": (
        lambda: captured(zipped),
        [
            [(3, 0), (1, 2), (0, 3), (2, 1), (2, 1), (1, 3), (0, 2), (3, 0)],
            [(0, 3), (3, 2), (2, 0), (1, 1), (3, 3), (0, 1), (1, 2), (2, 0)],
            [(2, 0), (1, 3), (0, 1), (3, 2), (2, 0), (0, 1), (3, 2), (1, 3)],
        ],
    ),
    "interleaved": (
        lambda: interleaved(shuffled(4)),
        [[3, 0, 1, 2, 0, 3, 2, 1], [2, 1, 1, 3, 0, 2, 3, 0], [0, 3, 3, 2, 2, 0, 1, 1]],
    ),
}


@pytest.mark.parametrize(("make", "wanted"), THREE_PASSES.values(), ids=[*THREE_PASSES])
def test_three_passes_in_eager_execution(make: Callable[[], Any], wanted: list[Any]) -> None:
    with eager_mode():
        tf.set_random_seed(7)
        dataset = make()
        assert [[plain(element) for element in dataset] for _ in range(3)] == wanted


LEFT_EARLY: dict[str, tuple[Callable[[], Any], list[int], list[Any]]] = {
    "an epoch that is begun": (
        lambda: (
            Dataset.range(5)
            .shuffle(5, seed=3)
            .map(lambda x: x + 10)
            .shuffle(4, seed=5, reshuffle_each_iteration=False)
            .repeat(2)
        ),
        [4, 1, 7, 9],
        [[13, 11, 10, 14], [12], [10, 12, 14, 13, 11, 10, 14], [11, 12, 13, 14, 10, 13, 14, 12, 10]],
    ),
    "short epochs": (
        lambda: Dataset.range(2).shuffle(3, seed=3).shuffle(9, seed=5).repeat(6),
        [4, 1, 7, 9],
        [[1, 0, 1, 0], [1], [1, 0, 0, 1, 1, 0, 0], [0, 1, 1, 0, 0, 1, 1, 0, 0]],
    ),
    "without an end": (
        lambda: Dataset.range(3).shuffle(2, seed=3).shuffle(7, seed=5).repeat(),
        [4, 1, 7, 9],
        [[0, 1, 2, 1], [0], [2, 0, 1, 0, 2, 1, 0], [1, 2, 0, 1, 2, 0, 0, 2, 1]],
    ),
    "no element": (
        lambda: Dataset.range(7).shuffle(3, seed=3).shuffle(4, seed=5),
        [0, 3, 0, 9],
        [[], [4, 0, 1], [], [0, 3, 1, 4, 2, 6, 5]],
    ),
    "batches": (
        lambda: Dataset.range(6).shuffle(3, seed=3).shuffle(4, seed=5).repeat(3).batch(4).shuffle(2, seed=1).repeat(2),
        [2, 4, 1, 9],
        [
            [[3, 0, 0, 4], [2, 3, 1, 5]],
            [[1, 2, 0, 5], [2, 3, 0, 1], [4, 1, 5, 0], [3, 4, 5, 4]],
            [[2, 5, 1, 0]],
            [
                [3, 0, 1, 0],
                [1, 5, 4, 2],
                [4, 3, 5, 2],
                [3, 2],
                [1, 4, 5, 0],
                [3, 1, 4, 0],
                [5, 2, 0, 4],
                [5, 3, 2, 1],
                [3, 0, 2, 4],
            ],
        ],
    ),
}
"""Datasets, and how many elements are taken of each of four iterators, before the next one begins."""


@pytest.mark.parametrize(("make", "counts", "wanted"), LEFT_EARLY.values(), ids=[*LEFT_EARLY])
def test_iterators_that_are_left_early(make: Callable[[], Any], counts: list[int], wanted: list[Any]) -> None:
    with eager_mode():
        tf.set_random_seed(7)
        dataset = make()
        assert [[plain(element) for element in itertools.islice(iter(dataset), n)] for n in counts] == wanted


def test_an_error_of_the_next_repetition_comes_after_the_elements_before_it() -> None:
    calls: list[int] = []

    def fail_at_the_sixth(x: Any) -> Any:
        calls.append(int(x))
        if len(calls) == 6:
            raise ValueError("the sixth call")
        return x

    with tf.Graph().as_default(), tf.Session() as session:
        source = Dataset.range(4).map(lambda x: tf.py_func(fail_at_the_sixth, [x], tf.int64))
        element = source.shuffle(3, seed=3).repeat(2).make_one_shot_iterator().get_next()
        before = [int(session.run(element)) for _ in range(3)]
        with pytest.raises(tf.errors.OpError, match="the sixth call"):
            session.run(element)
        after = [int(session.run(element)) for _ in range(4)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
    assert sorted([*before, *after]) == [0, 0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: zipped(shuffled(4)), [(3, 3), (1, 1), (0, 0), (2, 2)]),
        (lambda: captured(lambda dataset: dataset), [3, 1, 0, 2, 0, 2, 3, 1]),
        (lambda: Dataset.range(2).flat_map(always(shuffled(4).cache())), [3, 1, 0, 2, 3, 1, 0, 2]),
        (
            lambda: shuffled(4).batch(2).repeat(2).repeat(2),
            [[3, 1], [0, 2], [0, 2], [3, 1], [1, 3], [2, 0], [0, 3], [2, 1]],
        ),
    ],
)
def test_each_pass_in_a_graph(make: Callable[[], Any], wanted: list[Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        iterator = make().make_initializable_iterator()
        element = iterator.get_next()
        for _ in range(2):
            session.run(iterator.initializer)
            found = []
            for _ in wanted:
                value = session.run(element)
                found.append(tuple(map(int, value)) if isinstance(value, tuple) else value.tolist())
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)
            assert found == wanted


@pytest.mark.parametrize(
    ("cycle", "calls", "message"),
    [
        (2, 3, "num_parallel_calls is 3 for cycle_length 2; it must be no more than that"),
        (2, 0, "num_parallel_calls is 0; it must be greater than zero"),
        (2, -2, "num_parallel_calls is -2; it must be greater than zero"),
    ],
)
def test_more_calls_than_datasets_are_refused(cycle: int, calls: int, message: str) -> None:
    with eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(Dataset.range(3).interleave(lambda x: Dataset.from_tensors(x), cycle, num_parallel_calls=calls))


@pytest.mark.parametrize("weights", [None, [0.5]])
def test_sampling_one_dataset_takes_no_seed(weights: Any) -> None:
    def orders(change: Callable[[Any], Any]) -> list[list[int]]:
        with eager_mode():
            tf.set_random_seed(27)
            made = [change(Dataset.range(9)).shuffle(9) for _ in range(3)]
            return [[int(x) for x in dataset] for dataset in made]

    assert orders(lambda d: tf.data.experimental.sample_from_datasets([d], weights)) == orders(lambda d: d)

"""Random streams of a Session: they go on from run to run and start again with a new Session."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_stream_goes_on_in_the_next_run(graph: Any) -> None:
    x = tf.random_uniform([4], seed=1)
    with tf.Session() as session:
        assert not np.array_equal(session.run(x), session.run(x))


def test_a_new_session_starts_the_stream_again(graph: Any) -> None:
    x = tf.random_uniform([4], seed=1)
    runs = []
    for _ in range(2):
        with tf.Session() as session:
            runs.append([session.run(x) for _ in range(3)])
    np.testing.assert_array_equal(runs[0], runs[1])


def test_a_stream_goes_on_across_shapes_and_fetches(graph: Any) -> None:
    size = tf.placeholder(tf.int32, [1])
    x = tf.random_uniform(size, seed=1)
    with tf.Session() as session:
        expected = [session.run(x, {size: [4]}) for _ in range(4)]
    with tf.Session() as session:
        first = session.run(x, {size: [2]})
        session.run(x, {size: [2]})
        second, _ = session.run([x, x + 1], {size: [4]})
        third = session.make_callable(x, [size])([4])
    np.testing.assert_array_equal(first, expected[0][:2])
    np.testing.assert_array_equal(second, expected[1])
    np.testing.assert_array_equal(third, expected[2])


def test_equal_seeds_give_equal_streams_of_two_ops(graph: Any) -> None:
    x, y = tf.random_normal([3], seed=1), tf.random_normal([3], seed=1)
    with tf.Session() as session:
        a, b = session.run([x, y])
    np.testing.assert_array_equal(a, b)


def test_ops_without_seeds_differ_from_session_to_session(graph: Any) -> None:
    x, y = tf.random_uniform([4]), tf.random_uniform([4])
    drawn = []
    for _ in range(2):
        with tf.Session() as session:
            drawn += session.run([x, y])
    assert len({a.tobytes() for a in drawn}) == 4


def test_each_iteration_of_a_loop_draws_new_numbers(graph: Any) -> None:
    x = tf.random_uniform([3], seed=1)
    _, total = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a + tf.random_uniform([3], seed=1)), [0, tf.zeros([3])]
    )
    with tf.Session() as session:
        expected = sum(session.run(x) for _ in range(3))
        np.testing.assert_allclose(session.run(total), expected, rtol=1e-6)


def test_a_loop_that_grows_draws_what_a_loop_of_fixed_shapes_does(graph: Any) -> None:
    grows = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.concat([a, tf.random_uniform([1, 2], seed=1)], 0)),
        [0, tf.zeros([0, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )[1]
    x = tf.random_uniform([1, 2], seed=1)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(grows), np.concatenate([session.run(x) for _ in range(3)]))


def test_each_branch_has_a_stream_of_its_own(graph: Any) -> None:
    which = tf.placeholder(tf.bool, [])
    chosen = tf.cond(which, lambda: tf.random_uniform([2], seed=1), lambda: tf.random_uniform([2], seed=1))
    with tf.Session() as session:
        first = session.run(chosen, {which: True})
        np.testing.assert_array_equal(session.run(chosen, {which: False}), first)


def test_a_deterministic_session_asks_for_seeds(graph: Any) -> None:
    unseeded, seeded = tf.random_uniform([2]), tf.random_uniform([2], seed=1)
    with tf.Session(config=tf.SessionConfig(deterministic=True)) as session:
        session.run(seeded)
        with pytest.raises(tf.errors.InvalidArgumentError, match="has no seed"):
            session.run(unseeded)


def test_a_random_op_is_never_folded_or_merged(graph: Any) -> None:
    x = tf.random_uniform([4]) - tf.random_uniform([4])
    with tf.Session() as session:
        assert np.all(session.run(x) != 0)


def test_the_gradient_of_dropout_keeps_its_mask(graph: Any) -> None:
    x = tf.ones([50])
    y = tf.nn.dropout(x, rate=0.5, seed=3)
    slope = tf.gradients(y, x)[0]
    with tf.Session() as session:
        for _ in range(2):
            kept, gradient = session.run([y, slope])
            np.testing.assert_array_equal(kept, gradient)


@pytest.mark.parametrize("argument", ["keep_prob", "rate"])
def test_dropout_with_a_probability_of_unknown_shape_keeps_the_shape(graph: Any, argument: str) -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    assert tf.nn.dropout(x, **{argument: tf.placeholder(tf.float32)}).static_shape == (None, 5)


def test_a_failed_run_leaves_the_stream_usable(graph: Any) -> None:
    bound = tf.placeholder(tf.int32, [])
    x = tf.random_uniform([4], 0, bound, tf.int32, seed=1)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="minval 0 is not below maxval 0"):
            session.run(x, {bound: 0})
        assert session.run(x, {bound: 9}).shape == (4,)


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "integers without maxval": (lambda: tf.random_uniform([2], dtype=tf.int32), "maxval is None"),
    "unknown size": (lambda: tf.random_uniform([None, 3]), r"shape is \[None, 3\]; known integers"),
    "fractional size": (lambda: tf.random_normal([2.5]), r"shape is \[2.5\]; known integers"),
    "float dtype": (lambda: tf.random_normal([2], dtype=tf.int32), "dtype is int32"),
    "seed": (lambda: tf.random_uniform([2], seed=1.5), "an integer is required"),  # type: ignore[arg-type]  # wrong on purpose
    "rate": (lambda: tf.nn.dropout([1.0], rate=1.0), "rate is 1.0"),
    "nothing kept": (lambda: tf.nn.dropout([1.0], keep_prob=0.0), r"keep_prob is 0\.0; it must be in \(0, 1\]"),
    "two rates": (lambda: tf.nn.dropout([1.0], 0.5, rate=0.5), "both of rate and keep_prob"),
    "integer dropout": (lambda: tf.nn.dropout([1, 2], rate=0.5), "dtype int32"),
    "one bound": (lambda: tf.random.stateless_uniform([2], [1, 2], None, 3, tf.int32), "both or neither"),
    "algorithm": (lambda: tf.random.stateless_normal([2], [1, 2], alg="threefry"), "alg is 'threefry'"),
    "mode": (lambda: tf.variance_scaling_initializer(mode="in"), "mode is 'in'"),
    "scale": (lambda: tf.variance_scaling_initializer(0.0), "scale is 0.0"),
    "distribution": (lambda: tf.variance_scaling_initializer(distribution="gamma"), "distribution is 'gamma'"),
    "rank": (lambda: tf.orthogonal_initializer()([3]), "at least rank 2"),
    "initializer dtype": (lambda: tf.random_normal_initializer(dtype=tf.int32), "dtype is int32"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_are_named(graph: Any, case: str) -> None:
    call, words = ERRORS[case]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        call()


def test_a_crop_larger_than_the_value_is_an_error(graph: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf.random_crop"), tf.Session() as session:
        session.run(tf.random_crop(tf.zeros([2, 2]), [3, 1]))


SEEDS = [
    (None, None, (None, None)),
    (None, 5, (87654321, 5)),
    (7, 5, (7, 5)),
    (0, 0, (0, 2**31 - 1)),
    (7, None, (7, 0)),
]


@pytest.mark.parametrize(("of_graph", "of_op", "pair"), SEEDS)
def test_seeds_are_combined_as_tensorflow_does(graph: Any, of_graph: Any, of_op: Any, pair: Any) -> None:
    tf.set_random_seed(of_graph)
    assert tf.get_seed(of_op) == pair


def test_ops_without_a_seed_take_different_ones_of_the_graph(graph: Any) -> None:
    tf.set_random_seed(7)
    x, y = tf.random_uniform([4]), tf.random_uniform([4])
    with tf.Session() as session:
        assert not np.array_equal(*session.run([x, y]))


@pytest.mark.parametrize(
    "initializer",
    [
        tf.random_uniform_initializer(-1.0, 2.0, seed=3),
        tf.random_normal_initializer(1.0, 2.0, seed=3),
        tf.truncated_normal_initializer(seed=3),
        tf.uniform_unit_scaling_initializer(1.5, seed=3),
        tf.variance_scaling_initializer(2.0, "fan_avg", "uniform", seed=3),
        tf.glorot_uniform_initializer(seed=3),
        tf.glorot_normal_initializer(seed=3),
        tf.initializers.he_normal(seed=3),
        tf.initializers.lecun_uniform(seed=3),
        tf.orthogonal_initializer(seed=3),
        tf.constant_initializer([[1.0, 2.0, 3.0]] * 2),
        tf.ones_initializer(),
    ],
    ids=lambda i: type(i).__name__,
)
def test_an_initializer_is_made_again_of_its_config(graph: Any, initializer: Any) -> None:
    again = type(initializer).from_config(initializer.get_config())
    with tf.Session() as session:
        np.testing.assert_array_equal(*session.run([initializer([2, 3]), again([2, 3])]))


def test_orthogonal_columns_are_orthonormal(graph: Any) -> None:
    with tf.Session() as session:
        matrix = session.run(tf.orthogonal_initializer(seed=1)([5, 2, 4], tf.float64)).reshape(10, 4)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(4), atol=1e-14)  # a few dozen roundings of 1e-16

"""What the elements of datasets are."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .conftest import Elements

Dataset = tf.data.Dataset
Point = collections.namedtuple("Point", ["x", "y"])


def failing(x: Any) -> Any:
    """x as a float; an error where it is 2 more than a multiple of 4."""
    return tf.check_numerics(tf.where(tf.equal(x % 4, 2), float("nan"), tf.cast(x, tf.float32)), "bad")


def test_tensors_are_one_element(elements: Elements) -> None:
    assert elements(Dataset.from_tensors(([1, 2], "a"))) == [([1, 2], b"a")]


def test_slices_are_rows(elements: Elements) -> None:
    assert elements(Dataset.from_tensor_slices([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]


def test_slices_keep_the_structure(elements: Elements) -> None:
    given = {"b": (np.arange(2), ["u", "v"]), "a": Point(np.ones(2), np.zeros(2))}
    assert elements(Dataset.from_tensor_slices(given))[1] == {"b": (1, b"v"), "a": Point(1.0, 0.0)}


def test_a_list_is_a_tensor() -> None:
    with tf.Graph().as_default():
        assert Dataset.from_tensors([1, 2]).output_shapes == tf.TensorShape([2])


def test_range_is_that_of_python(elements: Elements) -> None:
    assert elements(Dataset.range(7, 1, -2)) == [7, 5, 3]


def test_map_gets_the_parts_of_a_tuple(elements: Elements) -> None:
    pairs = Dataset.from_tensor_slices(([1, 2], [10, 20]))
    assert elements(pairs.map(lambda a, b: {"sum": a + b})) == [{"sum": 11}, {"sum": 22}]


def test_map_gets_a_dict_whole(elements: Elements) -> None:
    assert elements(Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda d: d["a"] * 3)) == [3, 6]


def test_map_captures_tensors(session: tf.Session) -> None:
    factor = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(3).map(lambda x: x * factor).batch(3).make_initializable_iterator()
    session.run(iterator.initializer, {factor: 5})
    assert session.run(iterator.get_next()).tolist() == [0, 5, 10]


def test_map_reads_variables_when_an_element_is_made(session: tf.Session) -> None:
    variable = tf.get_variable("v", initializer=np.int64(1), use_resource=True)
    iterator = Dataset.range(5).map(lambda x: x + variable).make_initializable_iterator()
    session.run([variable.initializer, iterator.initializer])
    following = iterator.get_next()
    first = session.run(following)
    session.run(variable.assign(100))
    assert (first, session.run(following)) == (1, 101)


@pytest.mark.parametrize("calls", [1, 3, tf.data.experimental.AUTOTUNE])
def test_parallel_map_keeps_the_order(elements: Elements, calls: int) -> None:
    slow = Dataset.range(40).map(lambda x: tf.py_func(lambda v: v + 1, [x], tf.int64), num_parallel_calls=calls)
    assert elements(slow) == list(range(1, 41))


def test_slow_calls_of_a_parallel_map_overlap(elements: Elements) -> None:
    import time

    def wait(v: np.int64) -> np.int64:
        time.sleep(0.02)
        return v

    slow = lambda x: tf.py_func(wait, [x], tf.int64, stateful=False)  # noqa: E731 - names what is mapped
    start = time.perf_counter()
    assert elements(Dataset.range(40).map(slow, num_parallel_calls=10)) == list(range(40))
    assert time.perf_counter() - start < 0.6


def test_batches_may_end_with_fewer(elements: Elements) -> None:
    assert elements(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]


def test_drop_remainder_leaves_out_the_last_batch(elements: Elements) -> None:
    dataset = Dataset.range(5).batch(2, drop_remainder=True)
    assert (dataset.output_shapes.as_list(), elements(dataset)) == ([2], [[0, 1], [2, 3]])


def test_batches_of_batches(elements: Elements) -> None:
    assert elements(Dataset.range(6).batch(2).batch(2)) == [[[0, 1], [2, 3]], [[4, 5]]]


def test_a_batch_of_strings(elements: Elements) -> None:
    assert elements(Dataset.from_tensor_slices(["a", "bc"]).map(tf.identity).batch(2)) == [[b"a", b"bc"]]


def test_shapes_of_a_batch_must_be_equal(session: tf.Session) -> None:
    dataset = Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element 1 of a batch has shape \(2,\)"):
        session.run(dataset.make_one_shot_iterator().get_next())


def test_padded_batches_have_the_longest_size(elements: Elements) -> None:
    ragged = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    assert elements(ragged.padded_batch(2, [None])) == [[[1, 0], [2, 2]], [[3, 3, 3]]]


def test_padded_batches_of_structures_have_values_of_their_own(elements: Elements) -> None:
    ragged = Dataset.range(1, 3).map(lambda x: (tf.fill([x], x), tf.as_string(x)))
    padded = ragged.padded_batch(2, ([3], []), (np.int64(-1), ""))
    assert elements(padded) == [([[1, -1, -1], [2, 2, -1]], [b"1", b"2"])]


def test_an_element_larger_than_the_padded_shape_is_refused(session: tf.Session) -> None:
    ragged = Dataset.range(4, 5).map(lambda x: tf.fill([x], x)).padded_batch(1, [3])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(4,\); it cannot be padded to \(3,\)"):
        session.run(ragged.make_one_shot_iterator().get_next())


def test_shuffle_gives_each_element_once(elements: Elements) -> None:
    assert sorted(elements(Dataset.range(50).shuffle(7))) == list(range(50))


def test_shuffle_gives_tensorflows_order(elements: Elements) -> None:
    assert elements(Dataset.range(10).shuffle(4, seed=7)) == [0, 4, 2, 3, 5, 6, 1, 8, 7, 9]


def test_shuffle_follows_from_the_graphs_seed(elements: Elements) -> None:
    tf.set_random_seed(5)
    assert elements(Dataset.range(10).shuffle(100)) == [6, 2, 5, 1, 7, 0, 4, 3, 8, 9]


def test_repetitions_are_shuffled_anew(elements: Elements) -> None:
    repeated = Dataset.range(6).shuffle(4, seed=7).repeat(3)
    assert elements(repeated) == [0, 4, 2, 3, 5, 1, 1, 3, 0, 2, 4, 5, 3, 2, 4, 0, 1, 5]


def test_repetitions_may_have_one_order(elements: Elements) -> None:
    repeated = Dataset.range(6).shuffle(4, seed=7, reshuffle_each_iteration=False).repeat(2)
    assert elements(repeated) == [3, 4, 0, 1, 2, 5] * 2


def test_batches_of_shuffled_elements_have_the_same_order(elements: Elements) -> None:
    shuffled = Dataset.range(100).shuffle(17, seed=3).repeat(2)
    assert [x for b in elements(shuffled.batch(7)) for x in b] == elements(shuffled)


def test_batches_of_shuffled_results_have_the_same_order(elements: Elements) -> None:
    shuffled = Dataset.range(100).map(lambda x: tf.py_func(lambda v: v, [x], tf.int64)).shuffle(17, seed=3).repeat(2)
    assert [x for b in elements(shuffled.batch(7)) for x in b] == elements(shuffled)


def test_unseeded_shuffles_differ(elements: Elements) -> None:
    assert elements(Dataset.range(50).shuffle(50)) != elements(Dataset.range(50).shuffle(50))


def test_repeat_without_count_has_no_end(elements: Elements) -> None:
    assert elements(Dataset.range(2).repeat(), 5) == [0, 1, 0, 1, 0]


def test_repeating_nothing_ends(elements: Elements) -> None:
    assert elements(Dataset.range(0).repeat()) == []


@pytest.mark.parametrize(("count", "found"), [(2, [0, 1]), (9, [0, 1, 2, 3]), (-1, [0, 1, 2, 3]), (0, [])])
def test_take(elements: Elements, count: int, found: list[int]) -> None:
    assert elements(Dataset.range(4).take(count)) == found


@pytest.mark.parametrize(("count", "found"), [(2, [2, 3]), (9, []), (-1, []), (0, [0, 1, 2, 3])])
def test_skip(elements: Elements, count: int, found: list[int]) -> None:
    assert elements(Dataset.range(4).skip(count)) == found


def test_shards_are_parts(elements: Elements) -> None:
    assert elements(Dataset.range(7).shard(3, 1)) == [1, 4]


def test_concatenate(elements: Elements) -> None:
    joined = Dataset.from_tensors(np.arange(2)).concatenate(Dataset.from_tensors(np.arange(3)))
    assert (joined.output_shapes.as_list(), elements(joined)) == ([None], [[0, 1], [0, 1, 2]])


def test_zip_ends_with_the_shortest(elements: Elements) -> None:
    zipped = Dataset.zip({"a": Dataset.range(3), "b": (Dataset.range(5, 9), Dataset.range(9))})
    assert elements(zipped)[2] == {"a": 2, "b": (7, 2)}
    assert len(elements(zipped)) == 3


def test_batches_of_zipped_datasets(elements: Elements) -> None:
    mapped = Dataset.range(9).map(lambda x: tf.py_func(lambda v: v * 10, [x], tf.int64)).repeat(2)
    zipped = Dataset.zip((Dataset.range(13), mapped)).batch(5)
    assert elements(zipped)[1] == ([5, 6, 7, 8, 9], [50, 60, 70, 80, 0])


def test_enumerate(elements: Elements) -> None:
    assert elements(Dataset.from_tensor_slices(["a", "b"]).enumerate(3)) == [(3, b"a"), (4, b"b")]


def test_filter(elements: Elements) -> None:
    assert elements(Dataset.range(9).filter(lambda x: tf.equal(x % 3, 0)).batch(2)) == [[0, 3], [6]]


def test_a_predicate_must_give_a_bool() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="scalar of dtype bool"):
        Dataset.range(3).filter(lambda x: x)


def test_flat_map(elements: Elements) -> None:
    assert elements(Dataset.range(4).flat_map(lambda x: Dataset.range(x))) == [0, 0, 1, 0, 1, 2]


def test_a_function_of_flat_map_must_give_a_dataset() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="a Dataset is required"):
        Dataset.range(3).flat_map(lambda x: x)


def test_interleave_takes_blocks_in_turn(elements: Elements) -> None:
    turns = Dataset.range(1, 5).interleave(lambda x: Dataset.from_tensors(x).repeat(x + 2), 2, 2)
    assert elements(turns) == [1, 1, 2, 2, 1, 2, 2, 3, 3, 3, 3, 4, 4, 3, 4, 4, 4, 4]


def test_windows_are_datasets(elements: Elements) -> None:
    windows = Dataset.range(7).window(3, shift=2).flat_map(lambda w: w.batch(3))
    assert elements(windows) == [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]]


def test_windows_of_structures_are_structures_of_datasets(elements: Elements) -> None:
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(4, 8))).window(2)
    assert elements(pairs.flat_map(lambda a, b: Dataset.zip((a, b)).batch(2)))[1] == ([2, 3], [6, 7])


def test_cache_makes_each_element_once(elements: Elements) -> None:
    made: list[int] = []

    def note(v: np.int64) -> np.int64:
        made.append(int(v))
        return v

    cached = Dataset.range(3).map(lambda x: tf.py_func(note, [x], tf.int64)).cache().repeat(3)
    assert (elements(cached), made) == ([0, 1, 2] * 3, [0, 1, 2])


def test_a_cache_in_a_file_serves_later_programs(elements: Elements, tmp_path: Any) -> None:
    name = str(tmp_path / "kept")
    pairs = Dataset.from_tensor_slices((["a", "b"], np.float32([[1, 2], [3, 4]])))
    first = elements(pairs.cache(name))
    assert elements(pairs.map(lambda s, x: (s + "!", x + 1)).cache(name)) == first


def test_reduce(session: tf.Session) -> None:
    assert session.run(Dataset.range(5).reduce(np.int64(100), lambda s, x: s + x)) == 110


def test_reduce_gets_an_element_that_is_a_tuple_as_one_argument(session: tf.Session) -> None:
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(2, 6)))
    assert session.run(pairs.reduce(np.int64(0), lambda s, pair: s + pair[0] * pair[1])) == 26


def test_prefetch_changes_no_element(elements: Elements) -> None:
    assert elements(Dataset.range(100).prefetch(3).prefetch(tf.data.experimental.AUTOTUNE)) == list(range(100))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda d: d, [0, 1, "E", 3, 4, 5, "E", 7, 8, 9]),
        (lambda d: d.prefetch(2), [0, 1, "E", 3, 4, 5, "E", 7, 8, 9]),
        (lambda d: d.batch(4), ["E", "E", [8, 9]]),
        (lambda d: d.shuffle(5, seed=3), ["E", 5, "E", 1, 0, 3, 4, 8, 7, 9]),
        (lambda d: d.filter(lambda x: x > 1), ["E", 3, 4, 5, "E", 7, 8, 9]),
        (lambda d: d.take(4), [0, 1, "E", 3, 4]),
        (lambda d: d.skip(4), ["E", "E"]),
        (lambda d: d.take(4).repeat(2), [0, 1, "E", 3, 4, 0, 1, "E", 3, 4]),
        (lambda d: d.apply(tf.data.experimental.ignore_errors()), [0, 1, 3, 4, 5, 7, 8, 9]),
        (lambda d: Dataset.zip((d, Dataset.range(10))).map(lambda a, b: b), [0, 1, "E", 3, 4, 5, "E", 7, 8, 9]),
    ],
    ids=["map", "prefetch", "batch", "shuffle", "filter", "take", "skip", "repeat", "ignore_errors", "zip"],
)
def test_after_an_error_the_elements_are_tensorflows(elements: Elements, change: Any, found: list[Any]) -> None:
    given = elements(change(Dataset.range(10).map(failing)))
    assert ["E" if x == "InvalidArgumentError" else x for x in given] == found


def test_an_error_names_the_node_and_the_line_of_the_function(session: tf.Session) -> None:
    following = Dataset.range(2, 4).map(failing).make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"CheckNumerics '.*': bad.*test_transformations.py:\d+"):
        session.run(following)


def test_random_numbers_of_a_function_are_fresh(elements: Elements) -> None:
    drawn = elements(Dataset.range(8).map(lambda x: tf.random_uniform([], seed=3)))
    assert len(set(drawn)) == 8


def test_random_numbers_of_a_function_are_tensorflows(elements: Elements) -> None:
    drawn = Dataset.range(3).map(lambda x: tf.random_uniform([], 0, 1000, tf.int32, seed=3)).repeat(3)
    assert elements(drawn) == [767, 225, 31, 990, 850, 132, 145, 807, 997]


def test_control_flow_in_functions(elements: Elements) -> None:
    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1, s + i), (np.int64(0), np.int64(0)))[1]

    chosen = Dataset.range(5).map(lambda x: tf.cond(x > 2, lambda: loop(x), lambda: -x))
    assert elements(chosen) == [0, -1, -2, 3, 6]


def test_functions_use_tables(session: tf.Session) -> None:
    names = tf.contrib.lookup.index_table_from_tensor(["a", "b"]) if hasattr(tf.contrib, "lookup") else None
    if names is None:
        names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], np.int64([0, 1])), -1)
    iterator = Dataset.from_tensor_slices(["b", "x"]).map(names.lookup).make_initializable_iterator()
    session.run([tf.tables_initializer(), iterator.initializer])
    following = iterator.get_next()
    assert [session.run(following), session.run(following)] == [1, -1]


def test_options_are_kept() -> None:
    with tf.Graph().as_default():
        options = tf.data.Options()
        options.experimental_deterministic = False
        options.experimental_optimization.map_fusion = True
        found = Dataset.range(3).with_options(options).map(lambda x: x).options()
    assert (found.experimental_deterministic, found.experimental_optimization.map_fusion) == (False, True)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(AttributeError, match="no option 'fast'"):
        tf.data.Options().fast = True


def test_a_function_with_other_parameters_is_an_error_that_says_what_it_is_called_with() -> None:
    def both(first: Any, second: Any) -> Any:
        return first

    with pytest.raises(
        TypeError, match=r"Dataset\.map: 'both' takes \(first, second\) .* 1 argument, the element \(missing"
    ):
        tf.data.Dataset.range(3).map(both)
    with pytest.raises(TypeError, match=r"3 arguments, the parts of an element \(too many positional arguments\)"):
        tf.data.Dataset.from_tensors((1, 2, 3)).map(both)

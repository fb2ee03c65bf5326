"""tf.TensorArray, and map_fn, scan and the folds that are made of it."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf

ROWS = np.arange(8.0).reshape(4, 2)


@pytest.fixture
def array(session: tf.Session) -> tf.TensorArray:
    return tf.TensorArray(tf.float32, 3).write(0, [1.0, 2.0]).write(2, [3.0, 4.0])


def test_writing_leaves_the_older_array_as_it_was(session: tf.Session) -> None:
    old = tf.TensorArray(tf.int32, 2, element_shape=[]).write(0, 1)
    new = old.write(0, 7)
    assert session.run([old.read(0), new.read(0), old.read(0)]) == [1, 7, 1]


def test_what_was_never_written_reads_as_zeros(session: tf.Session, array: tf.TensorArray) -> None:
    assert session.run(array.stack()).tolist() == [[1, 2], [0, 0], [3, 4]]


def test_gather_picks_elements(session: tf.Session, array: tf.TensorArray) -> None:
    assert session.run(array.gather([2, 0])).tolist() == [[3, 4], [1, 2]]


def test_scatter_writes_rows_and_keeps_the_rest(session: tf.Session, array: tf.TensorArray) -> None:
    assert session.run(array.scatter([1], [[5.0, 6.0]]).stack()).tolist() == [[1, 2], [5, 6], [3, 4]]


def test_split_and_concat_undo_each_other(session: tf.Session) -> None:
    array = tf.TensorArray(tf.float64, 3, infer_shape=False).split(ROWS, [1, 0, 3])
    assert session.run([array.read(2), array.concat()])[0].tolist() == ROWS[1:].tolist()
    assert session.run(array.concat()).tolist() == ROWS.tolist()


def test_unstack_makes_elements_of_rows(session: tf.Session) -> None:
    array = tf.TensorArray(tf.float64, 4).unstack(ROWS)
    assert session.run([array.read(1), array.size()])[0].tolist() == [2, 3]


def test_dynamic_array_grows_in_a_loop(session: tf.Session) -> None:
    array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
    _, array = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a.write(i, i * i)), (0, array))
    assert session.run(array.stack()).tolist() == [0, 1, 4, 9, 16]


def test_branches_return_arrays(session: tf.Session) -> None:
    flag = tf.placeholder(tf.bool, [])
    array = tf.cond(flag, *[lambda v=v: tf.TensorArray(tf.float32, 1).write(0, v) for v in (1.0, 2.0)])
    assert [session.run(array.read(0), {flag: f}) for f in (True, False)] == [1, 2]


def test_index_outside_the_array_is_named(session: tf.Session, array: tf.TensorArray) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 3 in a list of 3 elements; .*\[0, 3\)"):
        session.run(array.read(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="index -1 in a list of 3 elements"):
        session.run(array.write(-1, [1.0, 2.0]).stack())


def test_elements_of_another_shape_are_refused(array: tf.TensorArray) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a value of shape \(3,\); .* shape \(2,\)"):
        array.write(1, [1.0, 2.0, 3.0])


def test_elements_of_another_dtype_are_refused(array: tf.TensorArray) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="has dtype int32; it must be float32"):
        array.write(1, tf.constant([1, 2]))


def test_mixed_shapes_do_not_stack(session: tf.Session) -> None:
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(1,\) and \(2,\) meet; shapes must suit"):
        session.run(array.stack())


def test_array_needs_a_size(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="size and flow are both given or both missing"):
        tf.TensorArray(tf.float32)


def test_map_fn_applies_to_rows(session: tf.Session) -> None:
    rows = tf.placeholder(tf.float64, [None, 2])
    doubled = tf.map_fn(lambda r: r * 2, rows)
    assert session.run(doubled, {rows: ROWS}).tolist() == (ROWS * 2).tolist()
    assert session.run(doubled, {rows: ROWS[:0]}).shape == (0, 2)


def test_map_fn_takes_and_returns_structures(session: tf.Session) -> None:
    result = tf.map_fn(
        lambda x: {"sum": x[0] + x[1], "first": tf.cast(x[0], tf.int32)},
        (ROWS[:, 0], ROWS[:, 1]),
        dtype={"sum": tf.float64, "first": tf.int32},
    )
    found = session.run(result)
    assert found["sum"].tolist() == [1, 5, 9, 13]
    assert found["first"].tolist() == [0, 2, 4, 6]


def test_map_fn_knows_its_static_shape(session: tf.Session) -> None:
    assert tf.map_fn(lambda r: r, tf.constant(ROWS)).static_shape == (4, 2)


def test_map_fn_refuses_scalars_and_other_structures(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a scalar"):
        tf.map_fn(lambda r: r, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="fn returns another structure"):
        tf.map_fn(lambda r: (r, r), ROWS)


def test_map_fn_of_another_dtype_asks_for_dtype(session: tf.Session) -> None:
    for fn in (lambda r: tf.cast(r, tf.int32), lambda r: (r, r)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.map_fn: fn returns another .*; give dtype="):
            tf.map_fn(fn, ROWS)


def test_scan_of_another_dtype_asks_for_an_initializer(session: tf.Session) -> None:
    for fn in (lambda a, r: tf.cast(r, tf.int32), lambda a, r: (a, r)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.scan: fn returns another .*; give initializer"):
            tf.scan(fn, ROWS)


def test_fold_of_another_dtype_asks_for_an_initializer(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.foldr: fn returns another dtype.*initializer"):
        tf.foldr(lambda a, r: tf.cast(r, tf.int32), ROWS)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_gives_partial_results(session: tf.Session, reverse: bool) -> None:
    found = session.run(tf.scan(lambda a, r: a + r, ROWS, reverse=reverse))
    want = ROWS[::-1].cumsum(0)[::-1] if reverse else ROWS.cumsum(0)
    assert found.tolist() == want.tolist()


def test_scan_starts_from_its_initializer(session: tf.Session) -> None:
    found = session.run(tf.scan(lambda a, r: a * 2 + r, ROWS, tf.constant([1.0, 1.0], tf.float64)))
    assert found.tolist() == [[2, 3], [6, 9], [16, 23], [38, 53]]


def test_folds_go_through_rows_in_order(session: tf.Session) -> None:
    joined = [tf.foldl, tf.foldr]
    found = session.run([fold(lambda a, r: a * 10 + r, np.array([1, 2, 3], np.int32)) for fold in joined])
    assert [int(f) for f in found] == [123, 321]
    assert session.run(tf.foldr(lambda a, r: a - r, np.array([1, 2, 3], np.int32), 0)) == -6


def test_lists_of_different_dtype_are_refused(session: tf.Session, array: tf.TensorArray) -> None:
    wrong = tf.TensorArray(tf.float64, flow=array.flow)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the list holds float32; element_dtype is float64"):
        session.run(wrong.read(0))


def test_map_fn_goes_through_strings(session: tf.Session) -> None:
    words = tf.placeholder(tf.string, [None])
    assert session.run(tf.map_fn(tf.identity, words), {words: ["a", "bc"]}).tolist() == [b"a", b"bc"]

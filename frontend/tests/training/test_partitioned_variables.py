"""Variables in parts: how they are divided, used, trained and saved; and slices that are assigned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

VALUE = np.arange(10, dtype=np.float32).reshape(5, 2)


def table() -> Any:
    return tf.get_variable("table", initializer=tf.constant(VALUE), partitioner=tf.fixed_size_partitioner(2))


def test_parts_have_names_and_sizes_of_tensorflow(session: tf.Session) -> None:
    with tf.variable_scope("net"):
        parts = list(table())
    assert [(v.op.name, v.shape.as_list()) for v in parts] == [
        ("net/table/part_0", [3, 2]), ("net/table/part_1", [2, 2]),
    ]  # fmt: skip
    assert tf.trainable_variables() == parts


def test_whole_is_the_parts_together(session: tf.Session) -> None:
    whole = table()
    session.run(tf.global_variables_initializer())
    assert (whole.shape.as_list(), whole.name, len(whole)) == ([5, 2], "table", 2)
    np.testing.assert_array_equal(session.run(tf.identity(whole)), VALUE)
    np.testing.assert_array_equal(whole.eval(session), VALUE)


def test_initializer_is_told_of_the_whole(session: tf.Session) -> None:
    seen = []

    def initializer(shape: Any, dtype: Any, partition_info: Any) -> Any:
        seen.append((list(shape), partition_info.full_shape, partition_info.var_offset))
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [4, 3], initializer=initializer, partitioner=tf.fixed_size_partitioner(2, axis=1))
    assert seen == [([4, 2], [4, 3], [0, 0]), ([4, 1], [4, 3], [0, 2])]


def test_scope_gives_its_partitioner(session: tf.Session) -> None:
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        assert len(tf.get_variable("v", [4])) == 2
        assert isinstance(tf.get_variable("scalar", []), tf.Variable)


def test_reuse_finds_the_parts(session: tf.Session) -> None:
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        assert table() is table()


def test_layers_work_with_parts(session: tf.Session) -> None:
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        y = tf.layers.dense(tf.ones([1, 4]), 2, kernel_initializer=tf.ones_initializer())
    session.run(tf.global_variables_initializer())
    assert session.run(y).tolist() == [[4, 4]]


def test_assign_gives_each_part_its_share(session: tf.Session) -> None:
    whole = table()
    session.run(tf.global_variables_initializer())
    session.run(whole.assign(-VALUE))
    session.run(whole.assign_add(np.ones_like(VALUE)))
    np.testing.assert_array_equal(session.run(tf.identity(whole)), 1 - VALUE)


@pytest.mark.parametrize(("strategy", "rows"), [("mod", [0, 3, 1, 4, 2]), ("div", [0, 1, 2, 3, 4])])
def test_lookups_find_rows_in_the_parts(session: tf.Session, strategy: str, rows: list[int]) -> None:
    found = tf.nn.embedding_lookup(table(), [[0, 1, 2], [3, 4, 0]], partition_strategy=strategy)
    session.run(tf.global_variables_initializer())
    assert found.shape.as_list() == [2, 3, 2]
    np.testing.assert_array_equal(session.run(found), VALUE[rows][[[0, 1, 2], [3, 4, 0]]])


def test_training_changes_the_parts(session: tf.Session) -> None:
    whole = table()
    loss = tf.reduce_sum(tf.nn.embedding_lookup(whole, [4], partition_strategy="div"))
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(tf.identity(whole))[4].tolist() == [7, 8]


# Saving


def trained(session: tf.Session, partitioner: Any) -> tuple[Any, Any]:
    """Returns a variable with its slot, whose values differ from the initial ones."""
    v = tf.get_variable("v", initializer=tf.constant(VALUE), partitioner=partitioner)
    step = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(tf.square(tf.identity(v))))
    session.run(tf.global_variables_initializer())
    return v, step


@pytest.mark.parametrize("parts", [(2, None), (None, 2), (2, 3), (2, 2)])
def test_checkpoint_has_the_whole(tmp_path: Path, parts: tuple[int | None, int | None]) -> None:
    values = []
    for count, restore in zip(parts, (False, True), strict=True):
        with tf.Graph().as_default(), tf.Session() as session:
            v, step = trained(session, None if count is None else tf.fixed_size_partitioner(count))
            saver = tf.train.Saver()
            if restore:
                saver.restore(session, str(tmp_path / "model"))
                session.run(step)
            else:
                session.run(step)
                saver.save(session, str(tmp_path / "model"))
                session.run(step)
            values.append(session.run(tf.identity(v)))
    np.testing.assert_array_equal(*values)


def test_names_in_the_checkpoint_are_those_of_the_whole(session: tf.Session, tmp_path: Path) -> None:
    trained(session, tf.fixed_size_partitioner(2))
    path = tf.train.Saver().save(session, str(tmp_path / "model"))
    shapes = dict(tf.train.list_variables(path))
    assert {n: s for n, s in shapes.items() if n.startswith("v")} == {"v": [5, 2], "v/Adam": [5, 2], "v/Adam_1": [5, 2]}


def test_part_alone_is_not_saved(session: tf.Session, tmp_path: Path) -> None:
    first, _ = table()
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="which are not all"):
        tf.train.Saver([first]).save(session, str(tmp_path / "model"))


def test_imported_graphs_know_their_parts(session: tf.Session, tmp_path: Path) -> None:
    trained(session, tf.fixed_size_partitioner(2))
    path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as other:
        tf.train.import_meta_graph(f"{path}.meta").restore(other, path)
        found = {v.op.name: other.run(v) for v in tf.global_variables()}
    np.testing.assert_array_equal(np.concatenate([found["v/part_0"], found["v/part_1"]]), VALUE)


# Partitioners


@pytest.mark.parametrize(
    ("partitioner", "shape", "wanted"),
    [
        (tf.fixed_size_partitioner(3), [2, 5], [2, 1]),
        (tf.fixed_size_partitioner(3, axis=1), [2, 5], [1, 3]),
        (tf.variable_axis_size_partitioner(40), [10, 5], [5, 1]),
        (tf.variable_axis_size_partitioner(40, max_shards=3), [10, 5], [3, 1]),
        (tf.variable_axis_size_partitioner(1), [4, 5], [4, 1]),
        (tf.min_max_variable_partitioner(8, min_slice_size=100), [10, 10], [4, 1]),
        (tf.min_max_variable_partitioner(2, min_slice_size=100), [10, 10], [2, 1]),
        (tf.min_max_variable_partitioner(8), [10, 10], [1, 1]),
    ],
)
def test_partitioners_divide_as_tensorflows(partitioner: Any, shape: list[int], wanted: list[int]) -> None:
    assert partitioner(shape=tf.TensorShape(shape), dtype=tf.float32) == wanted


def test_parts_can_be_made_directly(session: tf.Session) -> None:
    parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer())
    assert [v.shape.as_list() for v in parts] == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.get_variable("v", [None, 2], partitioner=tf.fixed_size_partitioner(2)), "it must be known"),
        (lambda: tf.get_variable("v", [4, 4], partitioner=lambda **_: [2]), "a positive number for each dimension"),
        (lambda: tf.get_variable("v", [4, 4], partitioner=lambda **_: [2, 2]), "one dimension alone can be divided"),
        (lambda: (table(), table()), "exists already"),
        (lambda: tf.variable_axis_size_partitioner(0), "they must be positive"),
        (lambda: tf.fixed_size_partitioner(2, axis=2)(tf.TensorShape([2])), "it must lie inside"),
        (lambda: tf.create_partitioned_variables([4], [2, 1], tf.ones_initializer()), "each dimension needs a number"),
    ],
)
def test_wrong_partitions_are_refused(session: tf.Session, make: Callable[[], Any], said: str) -> None:
    with pytest.raises(tf.errors.OpError, match=said):
        make()


# Slices that are assigned


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (slice(1, 3), np.full((2, 2), 9.0)), (2, np.full(2, 9.0)), ((slice(None), 1), np.full(5, 9.0)),
        ((Ellipsis, slice(0, 1)), np.full((5, 1), 9.0)), (slice(None, None, 2), np.full((3, 2), 9.0)),
    ],
)  # fmt: skip
def test_slice_of_a_variable_is_assigned(session: tf.Session, index: Any, value: np.ndarray) -> None:
    v = tf.Variable(VALUE)
    changed = v[index].assign(value)
    session.run(tf.global_variables_initializer())
    wanted = VALUE.copy()
    wanted[index] = value
    np.testing.assert_array_equal(session.run(changed), wanted)
    np.testing.assert_array_equal(session.run(v), wanted)


def test_slice_still_reads(session: tf.Session) -> None:
    v = tf.Variable(VALUE)
    session.run(tf.global_variables_initializer())
    assert session.run(v[1] * 2.0).tolist() == [4, 6]


def test_slices_of_tensors_have_no_assign(session: tf.Session) -> None:
    assert not hasattr(tf.constant(VALUE)[1:3], "assign")


def test_value_of_another_shape_is_refused(session: tf.Session) -> None:
    v = tf.Variable(VALUE)
    with pytest.raises(tf.errors.InvalidArgumentError, match="value has shape"):
        session.run(v[1:3].assign(np.zeros((1, 2))))

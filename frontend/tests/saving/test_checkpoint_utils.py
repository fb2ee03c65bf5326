"""Looking into checkpoints, and starting variables from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

VALUES = {"a/w": np.array([1.0, 2.0], np.float32), "a/b": np.array([3.0], np.float32), "count": np.array(7)}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[str]:
    """The folder of a checkpoint with VALUES."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        for name, value in VALUES.items():
            tf.Variable(value, name=name)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "m"), global_step=1)
    with tf.Graph().as_default():
        yield str(tmp_path)


def get(name: str, shape: Any, dtype: tf.DType = tf.float32) -> tf.Variable:
    variable: tf.Variable = tf.get_variable(name, shape, dtype, tf.zeros_initializer())
    return variable


def initialized(*variables: tf.Variable) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(v).tolist() for v in variables]


def test_folder_means_its_latest_checkpoint(stored: str) -> None:
    assert tf.train.list_variables(stored) == [("a/b", [1]), ("a/w", [2]), ("count", [])]
    assert tf.train.load_variable(stored, "count:0") == 7
    assert tf.train.load_checkpoint(stored).get_variable_to_dtype_map()["a/w"] is tf.float32


def test_folder_without_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="its file 'checkpoint' names no checkpoint"):
        tf.train.load_checkpoint(str(tmp_path))


def test_loaded_values_may_be_changed(stored: str) -> None:
    value = tf.train.load_variable(stored, "a/w")
    value += 1
    np.testing.assert_array_equal(tf.train.load_variable(stored, "a/w"), VALUES["a/w"])


def test_variables_start_from_a_checkpoint(stored: str) -> None:
    with tf.variable_scope("new"):
        w, other = get("w", [2]), get("other", [3])
    count = get("steps", [], tf.int64)
    tf.train.init_from_checkpoint(stored, {"a/w": w, "count": "steps"})
    assert initialized(w, other, count) == [[1, 2], [0, 0, 0], 7]


def test_scopes_start_from_scopes(stored: str) -> None:
    with tf.variable_scope("new"):
        w, b = get("w", [2]), get("b", [1])
    tf.train.init_from_checkpoint(stored, {"a/": "new/"})
    assert initialized(w, b) == [[1, 2], [3]]


def test_all_start_from_the_root(stored: str) -> None:
    with tf.variable_scope("a"):
        w = get("w", [2])
    tf.train.init_from_checkpoint(stored, {"/": "/"})
    assert initialized(w) == [[1, 2]]


def test_start_that_does_not_suit_changes_no_initializer(stored: str) -> None:
    with tf.variable_scope("new"):
        w, b = get("w", [2]), get("b", [5])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'a/b' has shape \(1,\) in it and \(5,\) in the graph"):
        tf.train.init_from_checkpoint(stored, {"a/": "new/"})
    assert initialized(w, b) == [[0, 0], [0] * 5]


def test_bad_maps_are_refused(stored: str) -> None:
    for wrong, message in (
        ({"a/w": "nobody"}, "'nobody' is no variable that get_variable made"),
        ({"a/": "new"}, "scope 'a/' goes to 'new'; a scope with a slash"),
        ({"a/": "new/"}, "scope 'new/' has no variables"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            tf.train.init_from_checkpoint(stored, wrong)


def test_state_file_is_written_and_read(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert tf.train.get_checkpoint_state(folder) is None
    tf.train.update_checkpoint_state(folder, f"{folder}/b", [f"{folder}/a", f"{folder}/b"])
    state = tf.train.get_checkpoint_state(folder)
    assert state.model_checkpoint_path == f"{folder}/b"
    assert list(state.all_model_checkpoint_paths) == [f"{folder}/a", f"{folder}/b"]
    assert tf.train.latest_checkpoint(folder) is None
    (tmp_path / "checkpoint").write_text("no state")
    assert tf.train.get_checkpoint_state(folder) is None


def test_checkpoints_are_found_and_removed(stored: str) -> None:
    path = tf.train.latest_checkpoint(stored)
    assert path is not None
    assert tf.train.checkpoint_exists(path)
    assert len(tf.train.get_checkpoint_mtimes([path, f"{path}0"])) == 1
    tf.train.remove_checkpoint(path)
    assert not tf.train.checkpoint_exists(path)
    assert [p.name for p in Path(stored).iterdir()] == ["checkpoint"]

"""Saver: what it refuses, with everything left as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf

from .conftest import initialized

X = np.arange(6, dtype=np.float32).reshape(2, 3)
DATA = "*.data-?????-of-?????"


def test_variables_without_value_are_all_named(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "a")
    tf.Variable(X, name="b")
    tf.Variable(X, name="c")
    message = r"2 of 3 variables have no value: 'b' \(.*test_saver_errors.py:\d+\), 'c' .*; run their initializers"
    with pytest.raises(tf.errors.FailedPreconditionError, match=message):
        tf.train.Saver().save(session, str(tmp_path / "m"))
    assert not list(tmp_path.iterdir())


def test_mismatches_are_listed_and_nothing_changes(session: tf.Session, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        for name, value in (("same", X), ("shape", X), ("kind", X), ("unused", X)):
            initialized(other, value, name)
        path = tf.train.Saver().save(other, str(tmp_path / "m"))
    same = initialized(session, -X, "same")
    initialized(session, X[0], "shape")
    initialized(session, X.astype(np.float64), "kind")
    initialized(session, X, "absent")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.train.Saver().restore(session, path)
    for fact in (
        "it lacks 'absent'",
        "'shape' has shape (2, 3) in it and (3,) in the graph",
        "'kind' is float32 in it and float64 in the graph",
        "of other names it has unused",
        "No variable was changed",
    ):
        assert fact in str(caught.value)
    np.testing.assert_array_equal(session.run(same), -X)


def test_checkpoint_of_another_model_is_not_found(session: tf.Session, tmp_path: Path) -> None:
    path = tf.train.Saver([initialized(session, X, "a")]).save(session, str(tmp_path / "m"))
    with pytest.raises(tf.errors.NotFoundError, match=r"it lacks 'b'; of other names it has a\..* may be of another"):
        tf.train.Saver([tf.Variable(X, name="b")]).restore(session, path)


def test_missing_checkpoint_error_lists_what_exists(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver([initialized(session, X, "a")])
    saver.save(session, str(tmp_path / "model"), global_step=3)
    for kind in (tf.errors.NotFoundError, ValueError):
        with pytest.raises(kind, match=r"there is no 'model\.index' in .*; it has model-3"):
            saver.restore(session, str(tmp_path / "model"))
    with pytest.raises(ValueError, match="as latest_checkpoint returns it"):
        saver.restore(session, None)
    with pytest.raises(tf.errors.NotFoundError, match="that folder does not exist"):
        saver.restore(session, str(tmp_path / "nowhere" / "m"))


def test_missing_data_file_raises_a_public_class(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver([initialized(session, X, "a")])
    path = saver.save(session, str(tmp_path / "m"))
    remove_data(tmp_path)
    with pytest.raises(tf.errors.DataLossError, match=r"its data file '.*' is missing; copy it here") as caught:
        saver.restore(session, path)
    assert caught.type is tf.errors.DataLossError


def test_part_of_a_checkpoint_is_no_name(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver([initialized(session, X, "a")])
    path = saver.save(session, str(tmp_path / "m"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"its name is without '\.index'"):
        saver.restore(session, f"{path}.index")
    (tmp_path / "old").write_bytes(b"something else")
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a file of another format; known are"):
        saver.restore(session, str(tmp_path / "old"))


def truncate_data(folder: Path) -> None:
    (data,) = folder.glob(DATA)
    data.write_bytes(data.read_bytes()[:-1])


def change_data(folder: Path) -> None:
    (data,) = folder.glob(DATA)
    raw = bytearray(data.read_bytes())
    raw[-1] ^= 1
    data.write_bytes(raw)


def remove_data(folder: Path) -> None:
    for data in folder.glob(DATA):
        data.unlink()


def change_index(folder: Path) -> None:
    index = folder / "m.index"
    index.write_bytes(index.read_bytes().replace(b"v", b"x", 1))


def truncate_index(folder: Path) -> None:
    index = folder / "m.index"
    index.write_bytes(index.read_bytes()[:-7])


@pytest.mark.parametrize("damage", [truncate_data, change_data, remove_data, change_index, truncate_index])
def test_damage_is_found_before_anything_is_assigned(
    session: tf.Session, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    v, w = initialized(session, X, "v"), initialized(session, X, "w")
    saver = tf.train.Saver()
    path = saver.save(session, str(tmp_path / "m"))
    session.run([v.assign(-X), w.assign(-X)])
    damage(tmp_path)
    with pytest.raises(tf.errors.DataLossError, match="restore another checkpoint"):
        saver.restore(session, path)
    np.testing.assert_array_equal(session.run([v, w]), [-X, -X])


def test_bad_arguments_are_named(session: tf.Session, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no variables to save"):
        tf.train.Saver()
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    with pytest.raises(ValueError, match=r"sess is NoneType; a tf\.Session is required"):
        saver.save(None, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="latest_filename is 'a/b'; it must have no folder"):
        saver.save(session, str(tmp_path / "m"), latest_filename="a/b")
    with pytest.raises(ValueError, match="save_path names a folder"):
        saver.save(session, f"{tmp_path}/")
    with pytest.raises(ValueError, match="var_list has a Tensor"):
        tf.train.Saver([v + 1])
    with pytest.raises(ValueError, match="two variables have the name 'v'"):
        tf.train.Saver([v, tf.Variable.from_proto(v.to_proto())])
    other = tf.Session(graph=tf.Graph())
    with other, pytest.raises(ValueError, match="'v:0' is of another graph than the session's"):
        saver.save(other, str(tmp_path / "m"))


def test_folder_that_cannot_be_made_is_an_error(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver([initialized(session, X, "v")])
    (tmp_path / "file").touch()
    with pytest.raises(tf.errors.OpError, match=r"checkpoint '.*/file/m' cannot be written: .* of '.*/file"):
        saver.save(session, str(tmp_path / "file" / "m"))

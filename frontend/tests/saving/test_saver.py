"""tf.train.Saver: restored values, which checkpoints are kept, and what is left where writing ends early."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.saving import tensorflow_bundle
from timberframe.saving.session_values import current_values

from .conftest import initialized

X = np.arange(6, dtype=np.float32).reshape(2, 3)
DATA = "*.data-?????-of-?????"
VALUES: dict[str, Any] = {
    "bool": np.array([True, False]),
    "int8": np.array([-3, 4], np.int8),
    "uint16": np.array([1, 65535], np.uint16),
    "int64": np.array(2**40),
    "float16": np.array([0.5], np.float16),
    "bfloat16": np.array([1.5, -2.0], tf.bfloat16.numpy),
    "float32": X,
    "float64": np.array([np.pi, np.nan]),
    "complex64": np.array([[1 + 2j]], np.complex64),
    "complex128": np.array(3 - 4j),
    "empty": np.zeros((0, 3), np.float32),
    "string": np.array([[b"a", b""], ["\u00fc".encode(), b"x" * 300]], object),
    "text": np.array(b"one", object),
}


def folder_names(folder: Path, suffix: str) -> list[str]:
    return sorted(p.name.removesuffix(suffix) for p in folder.glob(f"*{suffix}"))


def test_every_dtype_comes_back(session: tf.Session, tmp_path: Path) -> None:
    variables = {name: tf.Variable(value, name=name) for name, value in VALUES.items()}
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Session(graph=session.graph) as other:
        tf.train.Saver().restore(other, path)
        for name, found in other.run(variables).items():
            np.testing.assert_array_equal(found, VALUES[name])
            assert np.asarray(found).dtype == np.asarray(VALUES[name]).dtype or name == "text"


def test_a_checkpoint_has_the_files_that_tensorflow_writes(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    tf.train.Saver().save(session, str(tmp_path / "m"), global_step=3)
    names = ["checkpoint", "m-3.data-00000-of-00001", "m-3.index", "m-3.meta"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names


def test_saving_adds_nothing_to_the_graph(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    count = len(session.graph)
    session.graph.finalize()
    saver = tf.train.Saver()
    saver.restore(session, saver.save(session, str(tmp_path / "model")))
    assert len(session.graph) == count


def test_step_joins_the_name(session: tf.Session, tmp_path: Path) -> None:
    step = initialized(session, 7, "step")
    prefix = str(tmp_path / "model.ckpt")
    assert tf.train.Saver().save(session, prefix, global_step=step) == f"{prefix}-7"
    assert tf.train.Saver(pad_step_number=True).save(session, prefix, global_step=12) == f"{prefix}-00000012"
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{prefix}-00000012"


def test_oldest_checkpoints_go(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    saver = tf.train.Saver(max_to_keep=2)
    for i in range(4):
        saver.save(session, str(tmp_path / "m"), global_step=i)
    assert folder_names(tmp_path, ".index") == ["m-2", "m-3"]
    assert folder_names(tmp_path, ".meta") == ["m-2", "m-3"]
    assert len(list(tmp_path.glob(DATA))) == 2
    assert saver.last_checkpoints == [str(tmp_path / "m-2"), str(tmp_path / "m-3")]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == saver.last_checkpoints


def test_all_checkpoints_stay_without_a_limit(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    saver = tf.train.Saver(max_to_keep=None)
    for i in range(7):
        saver.save(session, str(tmp_path / "m"), global_step=i, write_meta_graph=False)
    assert len(folder_names(tmp_path, ".index")) == 7


def test_one_checkpoint_for_each_period_stays(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=0.0)
    for i in range(3):
        saver.save(session, str(tmp_path / "m"), global_step=i)
    assert folder_names(tmp_path, ".index") == ["m-0", "m-1", "m-2"]


def test_new_process_takes_over_old_checkpoints(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    first = tf.train.Saver(max_to_keep=2)
    paths = [first.save(session, str(tmp_path / "m"), global_step=i) for i in range(2)]
    second = tf.train.Saver(max_to_keep=2)
    second.recover_last_checkpoints([*paths, str(tmp_path / "gone")])
    second.save(session, str(tmp_path / "m"), global_step=2)
    assert folder_names(tmp_path, ".index") == ["m-1", "m-2"]


def test_state_file_may_name_relative_paths(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    tf.train.Saver(save_relative_paths=True).save(session, str(tmp_path / "m"), latest_filename="latest")
    assert 'model_checkpoint_path: "m"' in (tmp_path / "latest").read_text()
    assert tf.train.latest_checkpoint(str(tmp_path), "latest") == str(tmp_path / "m")


def test_same_name_is_replaced(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    saver.save(session, str(tmp_path / "m"))
    session.run(v.assign(-X))
    path = saver.save(session, str(tmp_path / "m"))
    assert len(list(tmp_path.glob(DATA))) == 1
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), -X)


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver([v])
    path = saver.save(session, str(tmp_path / "m"))
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    (tmp_path / "m.data-00000-of-00002").mkdir()  # nothing can be renamed to that
    session.run(v.assign(-X))
    with pytest.raises(tf.errors.FailedPreconditionError, match="cannot be written"):
        saver.save(session, path)
    (tmp_path / "m.data-00000-of-00002").rmdir()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_reader_keeps_the_checkpoint_that_it_opened(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    reader = tf.train.load_checkpoint(saver.save(session, str(tmp_path / "m")))
    session.run(v.assign(-X))
    saver.save(session, str(tmp_path / "m"))
    np.testing.assert_array_equal(reader.get_tensor("v"), X)


def test_reader_of_a_replaced_checkpoint_keeps_its_values(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    reader = tf.train.load_checkpoint(saver.save(session, str(tmp_path / "m")))
    for _ in range(3):
        session.run(v.assign(-X))
        saver.save(session, str(tmp_path / "m"))
    np.testing.assert_array_equal(reader.get_tensor("v"), X)


def test_a_checkpoint_that_is_replaced_twice_while_it_is_opened_is_opened_again(
    session: tf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    v, saver, mapped = initialized(session, X, "v"), tf.train.Saver(), tensorflow_bundle.map_file
    path, replaced = saver.save(session, str(tmp_path / "m")), []

    def map_late(file: Path) -> np.ndarray:
        while len(replaced) < 2:  # so that the data file has the same name again
            replaced.append(session.run(v.assign_add(X)))
            saver.save(session, path, write_meta_graph=False)
        return mapped(file)

    monkeypatch.setattr(tensorflow_bundle, "map_file", map_late)
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), 3 * X)


def test_data_of_a_killed_writer_goes_when_its_checkpoint_is_written_again(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    saver = tf.train.Saver()
    saver.save(session, str(tmp_path / "m"))
    saver.save(session, str(tmp_path / "m"))
    (tmp_path / "m.data-00000-of-00001").touch()  # of one that was killed before it wrote its index
    saver.save(session, str(tmp_path / "m"))
    assert [p.name for p in tmp_path.glob("m.data-*")] == ["m.data-00000-of-00001"]
    (tmp_path / "m.data-00000-of-00002").touch()
    (tmp_path / "m.index").unlink()
    path = saver.save(session, str(tmp_path / "m"))
    assert [p.name for p in tmp_path.glob("m.data-*")] == ["m.data-00000-of-00001"]
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), X)


def test_foreign_files_stay(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    foreign = [tmp_path / name for name in ("m.best.safetensors", "m.data", "m2.index", "m2.data-00000-of-00001")]
    for path in foreign:
        path.write_bytes(b"not ours, and longer than the first bytes of a header")
    saver = tf.train.Saver(max_to_keep=1)
    for i in range(3):
        saver.save(session, str(tmp_path / "m"), global_step=i)
    saver.save(session, str(tmp_path / "m"))
    assert all(path.exists() for path in foreign)


def test_map_renames_and_restores_in_part(session: tf.Session, tmp_path: Path) -> None:
    a, b = initialized(session, X, "a"), initialized(session, X + 1, "b")
    path = tf.train.Saver({"old/a": a, "old/b": b}).save(session, str(tmp_path / "m"))
    session.run([a.assign(-X), b.assign(-X)])
    tf.train.Saver({"old/b": a}).restore(session, path)
    np.testing.assert_array_equal(session.run([a, b]), [X + 1, -X])


def test_later_updates_change_no_saved_value(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    path = saver.save(session, str(tmp_path / "m"))
    for _ in range(3):
        session.run(v.assign_add(X, read_value=False))
    saver.restore(session, path)
    session.run(v.assign_add(X, read_value=False))
    np.testing.assert_array_equal(session.run(v), 2 * X)
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), X)


def test_values_that_were_taken_stay_while_training_goes_on(session: tf.Session) -> None:
    v = initialized(session, X, "v")
    grow = v.assign_add(X, read_value=False)
    session.run(grow)
    taken = current_values(session, {"v": v})
    session.run(grow)
    np.testing.assert_array_equal(taken["v"].array(), 2 * X)
    np.testing.assert_array_equal(session.run(v), 3 * X)


def test_checkpoints_of_running_training_are_of_one_moment(session: tf.Session, tmp_path: Path) -> None:
    variables = [initialized(session, np.zeros(1000, np.float32), name) for name in "ab"]
    step = tf.group(*(v.assign_add(tf.ones([1000]), read_value=False) for v in variables))
    saver, stop = tf.train.Saver(), threading.Event()

    def train() -> None:
        while not stop.is_set():
            session.run(step)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(10):
            path = saver.save(session, str(tmp_path / "m"), write_meta_graph=False)
            a, b = (tf.train.load_variable(path, name) for name in "ab")
            np.testing.assert_array_equal(a, a[0])
            np.testing.assert_array_equal(a, b)
    finally:
        stop.set()
        thread.join()


def test_reshape_takes_the_same_number_of_elements(session: tf.Session, tmp_path: Path) -> None:
    path = tf.train.Saver([initialized(session, X, "v")]).save(session, str(tmp_path / "m"))
    flat = tf.Variable(tf.zeros([6]), name="flat")
    tf.train.Saver({"v": flat}, reshape=True).restore(session, path)
    assert session.run(flat).tolist() == X.ravel().tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'v' has shape \(2, 3\) in it and \(6,\) in the graph"):
        tf.train.Saver({"v": flat}).restore(session, path)


def test_shape_without_validation_is_taken_from_the_checkpoint(session: tf.Session, tmp_path: Path) -> None:
    v = initialized(session, X, "v", validate_shape=False)
    path = tf.train.Saver().save(session, str(tmp_path / "m"))
    session.run(v.assign([1.0]))
    tf.train.Saver().restore(session, path)
    np.testing.assert_array_equal(session.run(v), X)


def test_plain_safetensors_file_restores(session: tf.Session, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"layer.weight": X}, str(tmp_path / "other.safetensors"))
    v = tf.Variable(tf.zeros([2, 3]))
    tf.train.Saver({"layer.weight": v}).restore(session, str(tmp_path / "other.safetensors"))
    np.testing.assert_array_equal(session.run(v), X)


# Errors


def test_full_disk_leaves_what_was_there(session: tf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    v = initialized(session, X, "v")
    saver = tf.train.Saver()
    path = saver.save(session, str(tmp_path / "m"))
    before = sorted(tmp_path.iterdir())
    session.run(v.assign(-X))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="cannot be written: No space left on device"):
            saver.save(session, str(tmp_path / "m"))
    assert sorted(tmp_path.iterdir()) == before
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), X)


def test_an_index_that_cannot_be_written_leaves_what_was_there(
    session: tf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    v, saver, replace = initialized(session, X, "v"), tf.train.Saver(), os.replace
    path = saver.save(session, str(tmp_path / "m"))
    before = sorted(tmp_path.iterdir())
    session.run(v.assign(-X))

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith(".index"):
            raise OSError(errno.EACCES, "Permission denied")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", refuse)
        with pytest.raises(tf.errors.PermissionDeniedError, match="cannot be written: Permission denied"):
            saver.save(session, str(tmp_path / "m"))
    assert sorted(tmp_path.iterdir()) == before
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), X)


@pytest.mark.slow
def test_killed_writers_lose_no_complete_checkpoint() -> None:
    script = Path(__file__).parents[1] / "killing/kill_writer.py"
    done = subprocess.run([sys.executable, script, "--kills", "10"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 kills; every time the last complete checkpoint was restored" in done.stdout


def test_leftovers_of_killed_writers_go(session: tf.Session, tmp_path: Path) -> None:
    initialized(session, X, "v")
    saver = tf.train.Saver()
    saver.save(session, str(tmp_path / "m"), global_step=1)
    (data,) = tmp_path.glob(DATA)
    names = (".m-2.data-00000-of-00001.00.writing", ".m-2.meta.00.writing", ".checkpoint.0.writing")
    left = [tmp_path / name for name in names]
    for path in left:
        path.touch()
    saver.save(session, str(tmp_path / "m"), global_step=2)
    assert all(path.exists() for path in left)  # they may be those of a writer on another machine
    for path in left:
        os.utime(path, (0, 0))
    saver.save(session, str(tmp_path / "m"), global_step=3)
    assert not any(path.exists() for path in left)
    assert data.exists()


def test_relative_paths_in_a_relative_folder_are_found(
    session: tf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tf.train.Saver([initialized(session, X, "v")], save_relative_paths=True).save(session, "folder/m")
    assert tf.train.latest_checkpoint("folder") == path


def test_checkpoints_come_as_they_are_written(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver([initialized(session, X, "v")])
    paths = tf.train.checkpoints_iterator(str(tmp_path), timeout=0)
    for step in (1, 2):
        assert saver.save(session, str(tmp_path / "m"), global_step=step) == next(paths)
    assert list(paths) == []


def test_a_numbered_checkpoint_may_have_the_name_of_the_list(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(1.0)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "checkpoint"), global_step=3)
        assert tf.train.latest_checkpoint(str(tmp_path)) == path == str(tmp_path / "checkpoint-3")
        with pytest.raises(tf.errors.InvalidArgumentError, match="both 'checkpoint'; they must differ"):
            saver.save(session, str(tmp_path / "checkpoint"))


def test_a_saver_without_a_list_says_what_it_saves() -> None:
    with tf.Graph().as_default():
        variables = [tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")]
        late = tf.train.Saver(defer_build=True)
        assert tf.train.Saver()._var_list == variables
        assert late._var_list is None
        late.build()
        assert late._var_list == variables

"""tf.gfile: files and folders of this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf


def test_texts_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with tf.gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
        file.write(b"three")
    with tf.gfile.Open(str(path)) as file:
        assert file.readline() == "one\n"
        assert file.read() == "two\nthree"
    assert list(tf.gfile.FastGFile(f"file://{path}")) == ["one\n", "two\n", "three"]


def test_bytes_are_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.bin")
    with tf.gfile.GFile(path, "wb") as file:
        file.write(b"\x00\xff")
        assert file.size() == 2
    with tf.gfile.GFile(path, "rb") as file:
        file.seek(1)
        assert (file.tell(), file.read(1)) == (1, b"\xff")


def test_folders_are_made_listed_and_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    tf.gfile.MakeDirs(folder)
    tf.gfile.MakeDirs(folder)
    tf.gfile.GFile(folder / "x", "w").write("x")
    assert tf.gfile.IsDirectory(folder)
    assert tf.gfile.ListDirectory(folder) == ["x"]
    assert [(Path(top).name, sorted(files)) for top, _, files in tf.gfile.Walk(tmp_path / "a")] == [
        ("a", []),
        ("b", ["x"]),
    ]
    tf.gfile.DeleteRecursively(tmp_path / "a")
    assert not tf.gfile.Exists(folder)


def test_files_are_copied_moved_and_found(tmp_path: Path) -> None:
    (tmp_path / "a1").write_text("1")
    tf.gfile.Copy(tmp_path / "a1", tmp_path / "a2")
    tf.gfile.Rename(tmp_path / "a2", tmp_path / "a3")
    assert tf.gfile.Glob(tmp_path / "a*") == [str(tmp_path / "a1"), str(tmp_path / "a3")]
    assert tf.gfile.Glob([str(tmp_path / "*3"), str(tmp_path / "*1")]) == [str(tmp_path / "a3"), str(tmp_path / "a1")]
    assert tf.gfile.Stat(tmp_path / "a3").length == 1
    tf.gfile.Remove(tmp_path / "a3")
    assert not tf.gfile.Exists(tmp_path / "a3")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda d: tf.gfile.GFile(d / "no").read(), tf.errors.NotFoundError, "no': No such file"),
        (lambda d: tf.gfile.GFile(d, "r").read(), tf.errors.FailedPreconditionError, "Is a directory"),
        (lambda d: tf.gfile.Copy(d / "a", d / "a"), tf.errors.AlreadyExistsError, "overwrite=True replaces it"),
        (lambda d: tf.gfile.MkDir(d / "b" / "c"), tf.errors.NotFoundError, "b/c"),
        (lambda d: tf.gfile.MkDir(d), tf.errors.AlreadyExistsError, "exists"),
        (lambda d: tf.gfile.Remove(d / "no"), tf.errors.NotFoundError, "no"),
        (lambda d: tf.gfile.ListDirectory(d / "no"), tf.errors.NotFoundError, "no"),
        (lambda d: tf.gfile.GFile(d, "x"), tf.errors.InvalidArgumentError, "mode is 'x'"),
        (lambda d: tf.gfile.Exists("gs://bucket/a"), tf.errors.InvalidArgumentError, "scheme 'gs' is not here"),
        (lambda d: tf.gfile.Exists(3), tf.errors.InvalidTypeError, "tf.gfile.Exists"),
    ],
)
def test_errors_say_what_is_wrong(
    tmp_path: Path, call: Callable[[Path], Any], kind: type[Exception], message: str
) -> None:
    (tmp_path / "a").write_text("1")
    with pytest.raises(kind, match=message):
        call(tmp_path)

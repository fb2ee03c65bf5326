"""Warm starts map vocabularies as TensorFlow does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe

OLD, NEW = ["a", "b", "c", "d"], ["c", "new", "a"]


def started(tf: Any, folder: Path, axis: int, buckets: int, **more: Any) -> np.ndarray:
    """Returns what a variable of NEW's words begins with, after a checkpoint with one of OLD's."""
    folder.mkdir()
    for name, words in (("old", OLD), ("new", NEW)):
        (folder / name).write_text("".join(f"{word}\n" for word in words))
    with tf.Graph().as_default(), tf.Session() as session:
        values = np.arange(8, dtype=np.float32).reshape(4, 2)
        kept = tf.get_variable("before", initializer=values if axis == 0 else values.T)
        session.run(kept.initializer)
        path = tf.train.Saver().save(session, str(folder / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        shape = [len(NEW) + buckets, 2]
        variable = tf.get_variable("words", shape if axis == 0 else shape[::-1])
        new, old = (str(folder / name) for name in ("new", "old"))
        info = tf.train.VocabInfo(new, len(NEW), buckets, old, axis=axis, **more)
        tf.train.warm_start(path, ".*", {"words": info}, {"words": "before"})
        session.run(tf.global_variables_initializer())
        found: np.ndarray = session.run(variable)
        return found


@pytest.mark.parametrize(
    ("axis", "buckets", "more"),
    [(0, 0, {}), (0, 2, {}), (1, 0, {}), (0, 1, {"old_vocab_size": 2})],
)
def test_rows_of_words_agree(tensorflow: Any, tmp_path: Path, axis: int, buckets: int, more: dict[str, Any]) -> None:
    theirs = started(tensorflow, tmp_path / "theirs", axis, buckets, **more)
    ours = started(timberframe, tmp_path / "ours", axis, buckets, **more)
    assert ours.tolist() == theirs.tolist()


def test_other_rows_begin_as_is_said(tensorflow: Any, tmp_path: Path) -> None:
    theirs, ours = (
        started(tf, tmp_path / name, 0, 1, backup_initializer=tf.random_uniform_initializer(7.0, 7.0))
        for tf, name in ((tensorflow, "theirs"), (timberframe, "ours"))
    )
    assert ours.tolist() == theirs.tolist()

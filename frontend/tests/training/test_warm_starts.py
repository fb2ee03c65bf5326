"""Variables whose rows are those of words, begun with the values of a checkpoint with another vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

VALUES = np.arange(8, dtype=np.float32).reshape(4, 2)


def files(folder: Path, **words: list[str]) -> dict[str, str]:
    """Returns files with a word in each line."""
    for name, lines in words.items():
        (folder / name).write_text("".join(f"{word}\n" for word in lines))
    return {name: str(folder / name) for name in words}


def checkpoint(folder: Path) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("words", initializer=VALUES)
        session.run(variable.initializer)
        return tf.train.Saver().save(session, str(folder / "model"))


def started(folder: Path, shape: list[int], info: Any) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("words", shape)
        tf.train.warm_start(checkpoint(folder), var_name_to_vocab_info={"words": info})
        session.run(tf.global_variables_initializer())
        found: np.ndarray = session.run(variable)
        return found


def test_words_keep_their_rows(tmp_path: Path) -> None:
    paths = files(tmp_path, old=["a", "b", "c", "d"], new=["c", "new", "a"])
    found = started(tmp_path, [5, 2], tf.train.VocabInfo(paths["new"], 3, 2, paths["old"]))
    assert found.tolist() == [[4, 5], [0, 0], [0, 1], [0, 0], [0, 0]]


def test_other_words_begin_as_is_said(tmp_path: Path) -> None:
    paths = files(tmp_path, old=["a", "b", "c", "d"], new=["c", "new"])
    info = tf.train.VocabInfo(paths["new"], 2, 0, paths["old"], 2, tf.constant_initializer(9.0))
    assert started(tmp_path, [2, 2], info).tolist() == [[9, 9], [9, 9]]


@pytest.mark.parametrize(
    ("words", "shape", "message"),
    [
        (["a", "b"], [3, 2], r"of shape \[3, 2\] has 2 words along axis 0"),
        (["a", "b"], [2, 3], r"the checkpoint's value has shape \[4, 2\]; matrices with one row for each word"),
    ],
)
def test_shapes_that_do_not_fit_are_an_error(tmp_path: Path, words: list[str], shape: list[int], message: str) -> None:
    paths = files(tmp_path, old=["a", "b", "c", "d"], new=words)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        started(tmp_path, shape, tf.train.VocabInfo(paths["new"], -1, 0, paths["old"]))


def test_a_vocabulary_longer_than_the_checkpoint_is_an_error(tmp_path: Path) -> None:
    paths = files(tmp_path, old=["a", "b", "c", "d", "e"], new=["e"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has more words than the checkpoint's value of shape"):
        started(tmp_path, [1, 2], tf.train.VocabInfo(paths["new"], 1, 0, paths["old"]))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="vocabulary file 'nowhere' cannot be read"):
        started(tmp_path, [1, 2], tf.train.VocabInfo("nowhere", 1, 0, "nowhere"))


def test_an_estimator_maps_words(tmp_path: Path) -> None:
    def embedded(words: list[str]) -> Any:
        column = tf.feature_column.categorical_column_with_vocabulary_list("word", words)
        return tf.feature_column.embedding_column(column, 2)

    def rows() -> Any:
        return {"word": tf.constant(["a", "b"])}, tf.constant([1.0, 2.0])

    name = "dnn/input_from_feature_columns/input_layer/word_embedding/embedding_weights"
    paths = files(tmp_path, old=["a", "b", "c"], new=["b", "a"])
    first = tf.estimator.DNNRegressor([2], [embedded(["a", "b", "c"])], str(tmp_path / "first"))
    first.train(rows, steps=1)
    settings = tf.estimator.WarmStartSettings(
        str(tmp_path / "first"), var_name_to_vocab_info={name: tf.estimator.VocabInfo(paths["new"], 2, 0, paths["old"])}
    )
    frozen = tf.train.GradientDescentOptimizer(0.0)
    second = tf.estimator.DNNRegressor(
        [2], [embedded(["b", "a"])], str(tmp_path / "second"), optimizer=frozen, warm_start_from=settings
    )
    second.train(rows, steps=1)
    np.testing.assert_array_equal(second.get_variable_value(name), first.get_variable_value(name)[[1, 0]])

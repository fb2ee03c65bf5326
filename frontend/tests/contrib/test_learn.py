"""tf.contrib.learn: the modes, and what serves instead of the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe.compat.checking import check

preprocessing = tf.contrib.learn.preprocessing


def test_modes_are_those_of_tensorflow() -> None:
    modes = tf.contrib.learn.ModeKeys
    assert (modes.TRAIN, modes.EVAL, modes.INFER) == ("train", "eval", "infer")


@pytest.mark.parametrize(
    ("name", "advice"),
    [("DNNClassifier", "tf.estimator has")],
)
def test_the_rest_says_what_serves_instead(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; .*{advice}"):
        getattr(tf.contrib.learn, name)
    (found,) = check(f"import tensorflow as tf\ntf.contrib.learn.{name}\n")
    assert found.name == f"contrib.learn.{name}"
    assert advice in found.hint


TEXTS = ["the cat sat", "the dog's bone, well-known", "HTMLParser reads the cat"]


def test_words_get_numbers_in_their_order() -> None:
    made = preprocessing.VocabularyProcessor(4)
    rows = np.array(list(made.fit_transform(TEXTS)))
    assert rows.tolist() == [[1, 2, 3, 0], [1, 4, 5, 6], [7, 8, 9, 1]]
    assert len(made.vocabulary_) == 10
    assert list(made.reverse(rows[:2])) == ["the cat sat <UNK>", "the dog's bone well-known"]
    assert next(iter(made.transform(["a cat"]))).tolist() == [0, 2, 0, 0]


def test_rare_words_are_unknown(tmp_path: Path) -> None:
    made = preprocessing.VocabularyProcessor(3, min_frequency=1).fit(TEXTS)
    assert [row.tolist() for row in made.transform(TEXTS)] == [[1, 2, 0], [1, 0, 0], [0, 0, 0]]
    made.save(tmp_path / "vocab")
    restored = preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocab"))
    assert next(iter(restored.transform(["cat"]))).tolist() == [2, 0, 0]
    with pytest.raises(tf.errors.NotFoundError, match=r"vocabulary '.*none' cannot be read"):
        preprocessing.VocabularyProcessor.restore(tmp_path / "none")


def test_bytes() -> None:
    made = preprocessing.ByteProcessor(4)
    rows = list(made.fit_transform(["ab", "\u00e4bcd"]))
    assert [row.tolist() for row in rows] == [[97, 98, 0, 0], [195, 164, 98, 99]]
    assert list(made.reverse(rows)) == ["ab", "\u00e4bc"]

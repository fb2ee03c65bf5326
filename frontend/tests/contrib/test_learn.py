"""tf.contrib.learn: the modes, and what serves instead of the rest."""

from __future__ import annotations

import pytest

import timberframe as tf
from timberframe.compat.programs import check


def test_modes_are_those_of_tensorflow() -> None:
    modes = tf.contrib.learn.ModeKeys
    assert (modes.TRAIN, modes.EVAL, modes.INFER) == ("train", "eval", "infer")


@pytest.mark.parametrize(
    ("name", "advice"),
    [("DNNClassifier", "tf.estimator has"), ("datasets", "input_data reads"), ("preprocessing", "tf.lookup has")],
)
def test_the_rest_says_what_serves_instead(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; .*{advice}"):
        getattr(tf.contrib.learn, name)
    (found,) = check(f"import tensorflow as tf\ntf.contrib.learn.{name}\n")
    assert found.name == f"contrib.learn.{name}"
    assert advice in found.hint

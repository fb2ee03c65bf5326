"""Gradients of chosen rows are IndexedSlices where TensorFlow's are."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SLICES = runpy.run_path(str(Path(__file__).parents[3] / "core/tests/gradients" / "test_indexed_slices.py"))


@pytest.mark.parametrize("name", SLICES["KEPT"])
def test_tensorflow_keeps_these_slices(tensorflow: Any, name: str) -> None:
    tf = tensorflow
    with tf.Graph().as_default():
        x = tf.constant(SLICES["X"])
        (found,) = tf.gradients(tf.gather(SLICES["KEPT"][name](tf, x), [1, 0, 1]), [x])
    assert isinstance(found, tf.IndexedSlices)

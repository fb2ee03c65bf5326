"""Crosses of features are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

RANDOM = np.random.default_rng(0)
WORDS = np.array([["a", "bc"], ["", "defghijklmnop"], ["a long text of more than thirty-two bytes", "é"]], object)
NUMBERS = np.array([[3, -1], [2**62, 0], [-5, 7]], np.int64)


def made(tf: Any, function: str, dense: list[np.ndarray], sparse: list[tuple[np.ndarray, list[Any]]], **kw: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [tf.SparseTensor(np.argwhere(kept), x[kept], x.shape) for x, kept in sparse]
        found = session.run(getattr(tf.sparse, function)([*map(tf.constant, dense), *tensors], **kw))
        return [part.tolist() for part in found], found.values.dtype.kind


@pytest.mark.parametrize(("function", "arguments"), [
    ("cross", {}), ("cross_hashed", {}), ("cross_hashed", {"num_buckets": 11}), ("cross_hashed", {"hash_key": 12345}),
])  # fmt: skip
@pytest.mark.parametrize("dense", [[], [WORDS], [NUMBERS, WORDS]], ids=["none", "words", "both"])
def test_crosses_agree(tensorflow: Any, function: str, arguments: dict[str, Any], dense: list[np.ndarray]) -> None:
    kept = np.array([[True, True], [False, False], [True, False]])
    sparse = [(WORDS, kept), (NUMBERS, np.ones((3, 2), bool))]
    theirs, ours = (made(tf, function, dense, sparse, **arguments) for tf in (tensorflow, timberframe))
    assert ours == theirs


def test_wrong_inputs_are_named() -> None:
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        with pytest.raises(timberframe.errors.InvalidArgumentError, match=r"inputs have \[2, 3\] rows; equal numbers"):
            session.run(timberframe.sparse.cross([[["a"], ["b"]], [["a"], ["b"], ["c"]]]).values)
        with pytest.raises(timberframe.errors.InvalidArgumentError, match="a dense input has rank 1"):
            timberframe.sparse.cross([["a"]])

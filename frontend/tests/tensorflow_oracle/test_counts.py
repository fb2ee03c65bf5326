"""How often numbers occur, and joined neighbours of strings, are TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

NUMBERS = np.array([[1, 1, 5, 2], [0, 3, 3, 9]], np.int32)
WEIGHTS = np.array([[0.5, 1, 2, 3], [4, 5, 6, 7]], np.float32)
WORDS = [["ab", "", "ä"], ["c d", "e", "f"]]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "counts": lambda tf: tf.math.bincount(NUMBERS),
    "counts of nothing": lambda tf: tf.bincount(np.zeros(0, np.int32), minlength=3, dtype=tf.float64),
    "sums of weights": lambda tf: tf.math.bincount(NUMBERS, weights=WEIGHTS),
    "least length": lambda tf: tf.math.bincount(NUMBERS, minlength=20, dtype=tf.int64),
    "greatest length": lambda tf: tf.math.bincount(NUMBERS.astype(np.int64), weights=WEIGHTS, maxlength=4),
    "bins": lambda tf: tf.raw_ops.Bincount(arr=NUMBERS, size=np.int32(4), weights=WEIGHTS),
    "rows": lambda tf: tf.raw_ops.DenseBincount(input=NUMBERS, size=np.int32(4), weights=WEIGHTS, binary_output=False),
    "pairs": lambda tf: tf.strings.ngrams(WORDS, 2),
    "pairs and triples": lambda tf: tf.strings.ngrams(WORDS[0], [2, 3], separator="|", pad_values="x"),
    "triples with ends": lambda tf: tf.strings.ngrams([WORDS], 3, pad_values=("l", "r"), padding_width=1),
    "whole rows": lambda tf: tf.strings.ngrams(WORDS, 5, preserve_short_sequences=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            made.append(np.asarray(session.run(FUNCTIONS[name](tf))))
    assert made[1].dtype == made[0].dtype
    assert made[1].tolist() == made[0].tolist()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("number", range(37))
def test_ngrams_of_the_samples(number: int, dtype: str) -> None:
    from timberframe_core.ops.definition import registry

    tensorflow = pytest.importorskip("tensorflow")
    op = registry.get("StringNGrams")
    samples = list(op.samples())
    assert len(samples) == 37
    sample: Any = samples[number]
    texts, splits = sample.inputs[0].values, np.array(sample.inputs[1].values, dtype)
    if not sample.attrs["ngram_widths"] and sample.attrs["pad_width"] < 0 and sample.attrs["preserve_short_sequences"]:
        pytest.skip("an error on both sides")
    wanted = tensorflow.raw_ops.StringNGrams(data=texts, data_splits=tensorflow.constant(splits), **{
        **sample.attrs, "ngram_widths": list(sample.attrs["ngram_widths"])
    })  # fmt: skip
    assert op.reference is not None
    for a, b in zip(op.reference(sample.attrs, texts, splits), wanted, strict=True):
        assert a.tolist() == b.numpy().tolist()
        assert a.dtype == b.numpy().dtype

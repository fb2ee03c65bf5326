"""Sets are TensorFlow's, of tensors and sparse tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import timberframe

KINDS = list(itertools.product(["dense", "sparse"], repeat=2))
FUNCTIONS = ["union", "intersection", "a minus b", "b minus a"]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    numbers = rng.integers(0, 6, shape)
    return (
        np.array([f"é{n}" if n % 2 else str(n) for n in numbers.flat], object).reshape(shape)
        if dtype == "string"
        else (numbers.astype(dtype))
    )


def family(tf: Any, kind: str, array: np.ndarray, kept: np.ndarray) -> Any:
    """Returns the array, or some elements of it as a sparse tensor."""
    if kind == "dense":
        return tf.constant(array)
    return tf.SparseTensor(np.argwhere(kept), array[kept], array.shape)


def applied(tf: Any, function: str, a: Any, b: Any) -> Any:
    if function.endswith(("a", "b")):
        return tf.sets.difference(a, b, aminusb=function == "a minus b")
    return getattr(tf.sets, function)(a, b)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "string"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_operations(tensorflow: Any, kinds: tuple[str, str], function: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    for leading, sizes in (((3,), (4, 2)), ((2, 3), (3, 5)), ((2,), (0, 2)), ((0,), (1, 2))):
        arrays = [values(rng, (*leading, size), dtype) for size in sizes]
        kept = [rng.random(x.shape) < 0.6 for x in arrays]
        made = []
        for tf in (tensorflow, timberframe):
            with tf.Graph().as_default(), tf.Session() as session:
                families = [family(tf, *x) for x in zip(kinds, arrays, kept, strict=True)]
                made.append(session.run(applied(tf, function, *families)))
        for theirs, ours in zip(*made, strict=True):
            assert ours.tolist() == theirs.tolist()
            assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("dtype", ["int16", "string"])
def test_sizes(tensorflow: Any, dtype: str) -> None:
    rng = np.random.default_rng(6)
    array = values(rng, (3, 2, 5), dtype)
    kept = rng.random(array.shape) < 0.6
    made = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default(), tf.Session() as session:
            made.append(session.run(tf.sets.set_size(family(tf, "sparse", array, kept))))
    assert made[0].tolist() == made[1].tolist()
    assert made[0].dtype == made[1].dtype

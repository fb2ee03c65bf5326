"""Feeds become what TensorFlow's session makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as ours

FEEDS: list[tuple[str, Any]] = [
    ("int32", [1.0, 2.0]),
    ("int32", 1.0),
    ("int32", np.array([1.0, 2.0])),
    ("int32", [True]),
    ("uint8", np.float64(255)),
    ("uint8", np.array([1, 255])),
    ("uint64", [1, 2**63]),
    ("bool", [1, 0]),
    ("bool", np.array([1.0, 0.0])),
    ("float32", [2**40 + 1]),
    ("float32", np.array([1e300])),
    ("float32", np.array([1, 2], object)),
    ("float64", [0.1]),
    ("bfloat16", np.array([2.51])),
    ("complex64", [1.0]),
    ("string", ["a", b"b"]),
]


def fed(tf: Any, dtype: str, value: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(getattr(tf, dtype))
        return session.run(tf.identity(x), {x: value})


@pytest.mark.parametrize(("dtype", "value"), FEEDS, ids=str)
def test_feed_becomes_tensorflows_array(tensorflow: Any, dtype: str, value: Any) -> None:
    got, want = fed(ours, dtype, value), fed(tensorflow, dtype, value)
    np.testing.assert_array_equal(got, want, strict=True)

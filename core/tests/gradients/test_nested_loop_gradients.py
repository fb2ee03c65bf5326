"""Gradients of loops within loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

AT = np.array([0.6, -0.4])

Check = Callable[..., None]


def nested(depth: int, x: Any, v: Any, count: int = 2) -> Any:
    """A loop nested `depth` deep, each level of which uses x."""
    if depth == 0:
        return tf.sin(v) * x
    return tf.while_loop(lambda i, _: i < count, lambda i, v: (i + 1, nested(depth - 1, x, v, count)), (0, v))[1]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_gradients_of_nested_loops(check_gradients: Check, depth: int) -> None:
    check_gradients(lambda x: nested(depth, x, x), AT)


def test_third_order(check_gradients: Check) -> None:
    check_gradients(lambda x: nested(3, x, x), AT, orders=3)


@pytest.mark.parametrize("count", [0, 1])
def test_loops_of_few_iterations(check_gradients: Check, count: int) -> None:
    check_gradients(lambda x: nested(3, x, tf.sin(x), count), AT)


def test_unknown_shape(check_gradients: Check) -> None:
    check_gradients(lambda x: nested(3, x, x), AT, [None])

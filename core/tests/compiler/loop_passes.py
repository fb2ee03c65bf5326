"""Results with and without a pass over the loops of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe as tf
from timberframe_core import nest


def whole_numbers(*shape: int) -> np.ndarray:
    """Returns numbers whose sums of products are exact, in whatever order they are added up."""
    return np.random.default_rng(7).integers(-2, 3, shape).astype(np.float32)


def small(x: Any) -> Any:
    """Whole numbers that stay small whole numbers."""
    return tf.floormod(x, 8.0)


def runs(name: str, fetches: Any, feeds: Any = None) -> tuple[Any, Any, tuple[str, ...]]:
    """Results without the pass of this name, the same with it, and the loops that it rewrote."""
    found = []
    for switched_on in (False, True):
        with tf.Session(config=tf.SessionConfig(optimizations={name: switched_on})) as session:
            session.run(tf.global_variables_initializer())
            found.append(session.run(fetches, feeds))
            rewritten = session.explain(fetches, feeds).rewritten(name)
    return found[0], found[1], rewritten


def assert_rewritten(name: str, count: int, fetches: Any, feeds: Any = None) -> None:
    """The pass has rewritten so many loops, and results have the same bits without it."""
    before, after, rewritten = runs(name, fetches, feeds)
    for a, b in zip(nest.flatten(after), nest.flatten(before), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(rewritten) == count

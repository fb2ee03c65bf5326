"""Chains of elementwise nodes run as one node, with the results that they have one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

N = 20_011  # above what is fused at all, and no multiple of a block

Graphs = dict[str, Callable[[Any, Any], Any]]
GRAPHS: Graphs = {
    "chain": lambda x, y: tf.tanh(x * 2.0 + 1.0) - tf.exp(-x) / (y + 3.0),
    "shared operand": lambda x, y: (x + y) * (x - y) + x,
    "several results": lambda x, y: [a := x * y, b := a + 1.0, b * a],
    "dtypes": lambda x, y: tf.cast(tf.where(x < y, tf.cast(x, tf.float64) * 2.0, tf.cast(y, tf.float64)), tf.float32),
    "row and column": lambda x, y: tf.reshape(x[:20_000], [10, 2_000]) * y[:2_000] + tf.reshape(y[:10], [10, 1]),
    "around a reduction": lambda x, y: (x * y - tf.reduce_sum(x * y)) * x,
}  # fmt: skip


def _run(build: Callable[[Any, Any], Any], dtype: Any, traced: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    feeds = [rng.standard_normal(N).astype(dtype) for _ in range(2)]
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x, y = (tf.placeholder(dtype, [N]) for _ in range(2))
        made = build(x, y)
        fetches = made if isinstance(made, list) else [made]
        given = dict(zip((x, y), feeds, strict=True))
        return list(session.run(fetches, given, options=tf.RunOptions(trace=traced)))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_fused_graph_gives_the_bits_of_its_nodes_one_by_one(name: str, dtype: str) -> None:
    fused = _run(GRAPHS[name], dtype, traced=False)
    single = _run(GRAPHS[name], dtype, traced=True)  # a traced run shows every node by itself
    for a, b in zip(fused, single, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_session_may_switch_fusion_off() -> None:
    for fuse, arena in ((True, 0), (False, 4 * N)):
        config = tf.SessionConfig(optimizations={"fuse": fuse})
        with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
            x = tf.placeholder(tf.float32, [N])
            explanation = str(session.explain(tf.tanh(x) * 2.0))
        assert f"arena {arena // 64 * 64 + 64 * bool(arena % 64)} bytes" in explanation

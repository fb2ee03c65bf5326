"""Sessions that are fed arrays of many shapes in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe_core.compiler.passes.pipeline as pipeline


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts, in its only element, how often a cluster is compiled."""
    count, compile_cluster = [0], pipeline.Pipeline.compile

    def counted(*args: Any) -> Any:
        count[0] += 1
        return compile_cluster(*args)

    monkeypatch.setattr(pipeline.Pipeline, "compile", counted)
    return count


def test_a_graph_of_few_nodes_is_compiled_once_for_each_of_many_shapes(compiled: list[int]) -> None:
    import timberframe as tf

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x) * 2.0 + 1.0
        for _ in range(3):
            for size in range(1, 151):
                fed = np.full(size, 0.5, np.float32)
                np.testing.assert_allclose(session.run(y, {x: fed}), np.tanh(fed) * 2 + 1, rtol=1e-6)
    assert compiled == [150]

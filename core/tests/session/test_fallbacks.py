"""Rewrites that fail: the run goes the general way, and says so."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core import fallback

PLACES = {
    "dense lists": "timberframe_ops.passes.dense.graph.dense_graph",
    "merging": "timberframe_core.compiler.passes.merge._key",
    "folding": "timberframe_core.compiler.passes.fold._foldable",
    "loops as kernels": "timberframe_core.compiler.lower.lower_loop",
    "hoisting": "timberframe_ops.passes.hoist.rewrite_products",
    "narrowing": "timberframe_ops.passes.narrow.rewrite_products",
    "sinking": "timberframe_ops.passes.sink.counted_loops",
    "fusion": "timberframe_core.compiler.passes.fuse._Grouping.groups",
}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise KeyError("a defect")

    monkeypatch.setattr(PLACES[request.param], fail)
    monkeypatch.setattr(fallback, "_logged", set())


every_rewrite = pytest.mark.parametrize(
    "broken", [pytest.param(p, marks=pytest.mark.cpu) if "fusion" in p else p for p in PLACES], indirect=True
)


def loop_over_rows() -> tuple[Any, dict[Any, Any]]:
    """Returns a loop that accumulates in a list, with elementwise ops, equal nodes and constants."""
    x = tf.placeholder(tf.float32, [3])
    rows = tf.TensorArray(tf.float32, 3).unstack(x)
    scale = tf.constant(2.0) * tf.constant(3.0)

    def body(i: Any, out: tf.TensorArray) -> Any:
        return i + 1, out.write(i, rows.read(i) * scale + rows.read(i) * scale)

    start = (0, tf.TensorArray(tf.float32, 3, element_shape=[]))
    return tf.identity(tf.while_loop(lambda i, _: i < 3, body, start)[1].stack() + 1.0), {x: [1.0, 2.0, 3.0]}


@every_rewrite
def test_results_are_those_of_the_general_way(broken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    y, feeds = loop_over_rows()
    with tf.Session() as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run(y, feeds), [13, 25, 37])


@every_rewrite
def test_failure_is_logged_once(
    broken: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    y, feeds = loop_over_rows()
    with caplog.at_level(logging.WARNING, "timberframe"):
        for _ in range(2):
            with tf.Session() as session:
                session.run(y, feeds)
    (message,) = {r.getMessage() for r in caplog.records}
    assert len(caplog.records) == 1
    assert "failed and is skipped: KeyError: 'a defect'" in message
    assert "test_fallbacks.py:" in message


@every_rewrite
def test_failure_is_shown_by_explain(broken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    y, feeds = loop_over_rows()
    with tf.Session() as session:
        found = session.explain(y, feeds)
    assert any("KeyError: 'a defect'" in line for line in found.skipped_rewrites)
    assert "failed and is skipped" in str(found)


@every_rewrite
def test_strict_setting_raises_the_error(broken: None) -> None:
    y, feeds = loop_over_rows()
    with tf.Session() as session, pytest.raises(KeyError, match="a defect"):
        session.run(y, feeds)


def test_error_of_the_user_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fallback.STRICT_VARIABLE, raising=False)
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as session:
        assert session.explain(x * 2.0).skipped_rewrites == ()
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.reshape(x, tf.placeholder_with_default([3], [1])), {x: [1.0, 2.0]})
        assert session.run(x * 2.0, {x: [1.0, 2.0]}).tolist() == [2, 4]

"""Checkpoints written from one device restore on another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf

X = np.arange(6, dtype=np.float32).reshape(2, 3)
DEVICES = ["/device:NUMPY:0", "/device:ASYNC:0", "/device:CPU:1"]


def session_of(graph: tf.Graph, device: str) -> tf.Session:
    session = tf.Session(graph=graph, config=tf.SessionConfig(device_count={"CPU": 2}))
    if device not in [d.spec for d in session.list_devices()]:
        pytest.skip(f"{device} is not installed")
    return session


def placements(session: tf.Session, fetch: object) -> dict[str, str]:
    return {p.node: p.device for p in session.explain(fetch).placements}


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("source", DEVICES)
def test_checkpoint_restores_on_another_device(tmp_path: Path, source: str, target: str) -> None:
    with tf.Graph().as_default() as graph, session_of(graph, source) as session:
        with tf.device(source):
            v = tf.Variable(X, name="v")
        session.run(v.initializer)
        assert placements(session, v)["v"] == source
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default() as graph, session_of(graph, target) as session:
        with tf.device(target):
            v = tf.Variable(-X, name="v")
        assert path is not None
        tf.train.Saver().restore(session, path)
        assert placements(session, v.assign_add(X))["v"] == target
        np.testing.assert_array_equal(session.run(v), X)
        np.testing.assert_array_equal(session.run(v.assign_add(X)), 2 * X)
        np.testing.assert_array_equal(tf.train.load_variable(path, "v"), X)


def test_restoring_over_several_devices_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default() as graph, session_of(graph, DEVICES[0]) as session:
        variables = []
        for device in DEVICES[:2]:
            with tf.device(device):
                variables.append(tf.Variable(X))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
        session.run([v.assign(-X) for v in variables])
        last = next(d for d in session.list_devices() if d.type == "ASYNC")
        assert path is not None

        def broken(_: object, x: object) -> None:
            raise tf.errors.ResourceExhaustedError("no memory is left")

        with monkeypatch.context() as patch:
            patch.setattr(type(last), "copy_in", broken)
            with pytest.raises(tf.errors.ResourceExhaustedError):
                tf.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(variables), [-X, -X])
        tf.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(variables), [X, X])

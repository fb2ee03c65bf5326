"""The example on JAX, in an environment that has it (`make peers`)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
import timberframe_sdk as sdk
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import open_target
from timberframe_core.ops.definition import registry

jax = pytest.importorskip("jax", reason="JAX is not installed; make peers installs it")

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sdk.register_plugin("jax", importlib.import_module("timberframe_jax"))
DEVICE = "/device:JAX:0"


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device(DEVICE), tf.Session(graph=graph) as session:
        yield session


def stages(session: tf.Session, fetches: Any, feeds: Any) -> list[str]:
    return [s.kind for s in session.explain(fetches, feeds).stages]


def test_a_training_step_is_one_program_and_learns_as_on_the_cpu() -> None:
    losses = {}
    for device in (DEVICE, "/device:CPU:0"):
        with tf.Graph().as_default() as graph, tf.device(device), tf.Session(graph=graph) as session:
            rng = np.random.default_rng(1)
            x, y = tf.placeholder(tf.float32, [8, 5]), tf.placeholder(tf.float32, [8, 2])
            w1, b1 = (tf.Variable(rng.normal(size=s).astype(np.float32)) for s in ((5, 7), (7,)))
            w2 = tf.Variable(rng.normal(size=(7, 2)).astype(np.float32))
            hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
            loss = tf.reduce_sum(tf.square(tf.matmul(hidden, w2) - y))
            step = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
            session.run(tf.global_variables_initializer())
            feeds = {x: rng.normal(size=(8, 5)), y: rng.normal(size=(8, 2))}
            losses[device] = [session.run([loss, step], feeds)[0] for _ in range(5)]
            if device == DEVICE:
                assert stages(session, [loss, step], feeds) == ["cluster"]
    np.testing.assert_allclose(losses[DEVICE], losses["/device:CPU:0"], rtol=1e-5)
    assert losses[DEVICE][-1] < losses[DEVICE][0]


def test_loops_and_branches_are_part_of_the_program(session: tf.Session) -> None:
    n, start = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2])
    _, grown = tf.while_loop(lambda i, a: tf.less(i, n), lambda i, a: (i + 1, a * 2.0), [tf.constant(0), start])
    y = tf.cond(tf.less(tf.reduce_max(grown), 10.0), lambda: -grown, lambda: grown + 1.0)
    for count, expected in ((1, [-2, -4]), (3, [9, 17])):
        np.testing.assert_array_equal(session.run(y, {n: count, start: [1, 2]}), expected)
    assert stages(session, y, {n: 1, start: [1, 2]}) == ["cluster"]


def test_programs_say_how_much_memory_they_need(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    y = tf.matmul(tf.tanh(tf.matmul(x, x)), x)
    report = session.explain(y, {x: np.zeros((100, 100))}).stages[0]
    assert report.arena_bytes is not None
    assert report.arena_bytes >= 40_000


def test_an_attr_that_has_no_translation_is_declined_with_the_reason() -> None:
    with tf.Graph().as_default() as graph, tf.device(DEVICE):
        x, filters = tf.placeholder(tf.float32, [1, 3, 5, 5]), tf.placeholder(tf.float32, [1, 1, 3, 2])
        y = tf.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW")
        with (
            tf.Session(graph=graph) as session,
            pytest.raises(sdk.NoKernelError, match="data_format is NCHW; NHWC is required"),
        ):
            session.run(y, {x: np.zeros((1, 3, 5, 5)), filters: np.zeros((1, 1, 3, 2))})


def test_float64_needs_no_setting_of_jax(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [2])
    assert session.run(x + 1e-12, {x: [1, 2]})[0] == 1 + 1e-12
    assert not jax.config.jax_enable_x64


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["forward", "guards", "aliasing", "faults", "leaks"])
def test_the_conformance_suite_passes(suite: str) -> None:
    options = Options("jax", profile=str(Path(__file__).parents[1] / "profile.toml"))
    target = open_target(options)
    cases = list(SUITES[suite](target, [registry.get(op) for op in ("Less", "Sum", "Relu", "MatMul")]))
    judged = [judge_case(case, target) for case in cases[:: max(1, len(cases) // 40)]]
    assert [f"{r.id}: {r.message}" for r in judged if r.verdict not in ("pass", "unsupported")] == []
    assert any(r.verdict == "pass" for r in judged)

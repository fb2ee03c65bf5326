"""Launchers that ask for the context of the run."""

from __future__ import annotations

import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import EXACT, KernelDef, KernelNode, Launch, RunContext, define_op, hookimpl
from timberframe_sdk.testing.loaded import loaded_plugin, temporary_ops

LIMIT_SECONDS = 20


def build(node: KernelNode) -> Launch:
    def launch(context: RunContext, x: Any, out: Any) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not x[0] > 0 and time.monotonic() < end:
            context.cancel.check()
            time.sleep(0.001)
        np.copyto(out, x)

    return Launch(launch, context=True)


@pytest.fixture(autouse=True, scope="module")
def plugin() -> Iterator[None]:
    kernels = [KernelDef("Acme>Wait", device, build) for device in ("CPU", "NUMPY")]
    made = types.SimpleNamespace(timberframe_kernels=hookimpl(lambda: kernels))
    with temporary_ops(), loaded_plugin("waiting", made):
        define_op(
            "Acme>Wait", inputs=["x: float"], outputs=["y: float"],
            doc="x, once the run is cancelled or x is positive.",
            shape=lambda c: [c.shapes[0]], reference=lambda attrs, x: x, accuracy=EXACT,
        )  # fmt: skip
        yield


@pytest.fixture(params=["/device:CPU:0", "/device:NUMPY:0"])
def waiting(request: pytest.FixtureRequest) -> Any:
    with tf.Graph().as_default(), tf.device(request.param):
        yield lambda x: apply_op("Acme>Wait", [x])


def test_a_launcher_gets_the_context_and_the_arrays(waiting: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(waiting(x), {x: [1, 2]}), [1, 2])


def test_a_launcher_that_checks_the_context_stops_when_the_run_is_cancelled(waiting: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    start = time.monotonic()
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(waiting(x), {x: [0, 2]}, tf.RunOptions(timeout_in_ms=50))
    assert time.monotonic() - start < LIMIT_SECONDS / 2


def test_so_does_one_in_a_loop(waiting: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, waiting(z) - 1.0), [tf.constant(0), x])
    start = time.monotonic()
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(y, {x: [1, 2]}, tf.RunOptions(timeout_in_ms=200))
    assert time.monotonic() - start < LIMIT_SECONDS / 2

"""Optimizers, random streams, and functions on devices without float64: what the conformance suite does not try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_accelerator import Source
from timberframe_core.graph.apply import apply_op
from timberframe_opencl import timberframe_devices

OPENCL = "/device:OPENCL:0"
WITHOUT_DOUBLE = "#define double tf_there_is_no_double\n"


def variable(values: np.ndarray) -> Any:
    return tf.Variable(values, use_resource=True)


def test_rows_that_are_named_often_are_updated_in_the_order_of_the_cpu(assert_same_bits: Callable[..., None]) -> None:
    rng = np.random.default_rng(1)
    rows, gradient = rng.integers(0, 11, 2000), rng.standard_normal((2000, 5)).astype(np.float32)

    def build() -> list[Any]:
        state, slot = variable(np.ones((12, 5), np.float32)), variable(np.zeros((12, 5), np.float32))
        inputs = [state.handle, slot.handle, np.float32(0.1), gradient, rows, np.float32(0.9)]
        update = apply_op("ResourceSparseApplyMomentum", inputs, {"use_nesterov": True})
        with tf.control_dependencies([update]):
            return [state.read_value(), slot.read_value()]

    assert_same_bits(build)


def test_an_optimizer_leaves_its_variable_alone_when_another_kernel_failed(session: tf.Session) -> None:
    with tf.device(OPENCL):
        state, rows = variable(np.ones((4, 2), np.float32)), tf.placeholder(tf.int32, [4])
        gradient = tf.gather(tf.placeholder_with_default(np.ones((3, 2), np.float32), [3, 2]), rows)
        update = apply_op("ResourceApplyGradientDescent", [state.handle, np.float32(0.5), gradient])
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 7"):
        session.run(update, {rows: [0, 1, 7, 2]})
    np.testing.assert_array_equal(session.run(state), np.ones((4, 2), np.float32))
    session.run(update, {rows: [0, 1, 2, 2]})
    np.testing.assert_array_equal(session.run(state), np.full((4, 2), 0.5, np.float32))


def test_a_stream_goes_on_as_on_the_cpu(assert_same_bits: Callable[..., None]) -> None:
    def build() -> list[Any]:
        tf.set_random_seed(5)
        return [
            tf.random_uniform([1001]),
            tf.random_shuffle(tf.range(777)),
            tf.greater(tf.truncated_normal([333]), 0.0),
        ]

    assert_same_bits(build, runs=3)


@pytest.mark.parametrize(
    ("header", "macros"),
    [
        ("optimizer.h", {"DTYPE": "float16", "RULE_NAME": "ftrl", "POWERS": 1, "STATES": 3, "STEP": 9, "ROWS": 0}),
        ("random_fill.h", {"T": "float32", "DRAW": "TRUNCATED", "WIDE": 0, "ORIGIN": "SEEDS", "TSEED": "int32"}),
    ],
)
def test_kernels_need_no_float64_where_the_device_has_none(header: str, macros: dict[str, Any]) -> None:
    found: list[Any] = timberframe_devices({"count": {"OPENCL": 1}, "memory_limit": {}})
    if not found:
        pytest.skip("no OpenCL driver is installed")
    device = found[0]
    device.limits = replace(device.limits, float64=False)
    try:
        source = Source.file(header, **macros)
        name = "tf_update" if header == "optimizer.h" else "tf_fill"
        assert device.function(replace(source, text=WITHOUT_DOUBLE + source.text), name) is not None
    finally:
        device.close()

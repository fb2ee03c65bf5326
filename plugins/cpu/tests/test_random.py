"""Kernels of random ops: every variant gives the numbers of the NumPy reference, at any size and number of threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import InternalError, InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_cpu.native import available_isas
from timberframe_cpu.testing import run_op

SEEDS = {"seed": 3, "seed2": 5}
SIZES = (0, 1, 3, 31, 33, 255, 256, 257, 1023, 16_385)
STATE = [np.array([2**63 + 5], np.uint64), np.array([2**64 - 9, 2**64 - 1], np.uint64), 1]


def sizes(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_uniforms_are_those_of_the_reference(isa, dtype):
    attrs = {"dtype": dtype}
    for n in SIZES:
        got = run_op("StatelessRandomUniformV2", attrs, [sizes(n), *STATE], isa)[0]
        full = {"dtype": tf.as_dtype(dtype)}
        wanted = registry.get("StatelessRandomUniformV2").reference(full, sizes(n), *STATE)
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("op", ["RandomStandardNormal", "TruncatedNormal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normals_agree_with_the_reference(isa, op, dtype):
    """Ten roundings: a logarithm, root, sine and product on each side."""
    attrs = {"dtype": tf.as_dtype(dtype), **SEEDS}
    for n in SIZES:
        got = run_op(op, dict(attrs), [sizes(n)], isa)[0]
        np.testing.assert_allclose(got, registry.get(op).reference(attrs, sizes(n)), rtol=5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_numbers_do_not_depend_on_threads(op):
    one, five = (run_op(op, {"dtype": "float32", **SEEDS}, [sizes(100_003)], threads=n)[0] for n in (1, 5))
    np.testing.assert_array_equal(one, five)


@pytest.mark.parametrize("n", [1, 2, 257, 70_001])
def test_a_shuffle_moves_items_of_any_width(n):
    orders = [
        run_op("RandomShuffle", dict(SEEDS), [np.arange(n).astype(dtype)])[0].real.astype(int)
        for dtype in (np.int32, np.int64, np.complex128)
    ]
    rows = run_op("RandomShuffle", dict(SEEDS), [np.arange(2 * n).reshape(n, 2)])[0][:, 0] // 2
    assert all(np.array_equal(order, rows) for order in orders)


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(InvalidArgumentError, match="alg is 2; 1"):
        run_op("StatelessRandomUniformV2", {"dtype": "float32"}, [sizes(3), *STATE[:2], 2])


def test_bounds_that_nothing_suits_are_refused():
    bounds = [np.float32(x) for x in (0, 1, 1, -1)]
    with pytest.raises(InvalidArgumentError, match="row 0 has a deviation or bounds"):
        run_op("ParameterizedTruncatedNormal", {"dtype": "float32", **SEEDS}, [sizes(3), *bounds])


def test_a_node_without_a_stream_is_an_error():
    from timberframe_core.plugin.contracts import KernelNode, Value
    from timberframe_cpu.kernels.random import KERNELS

    kernel = next(k for k in KERNELS if k.op == "RandomUniform")
    node = KernelNode("RandomUniform", "x", {**SEEDS}, [], [Value(0, np.dtype(np.float32), (3,))], None)
    with pytest.raises(InternalError, match="no random stream"):
        kernel.build(node)


def test_runs_at_the_same_time_share_out_one_stream():
    with tf.Graph().as_default():
        x = tf.random_uniform([8], seed=1)
        with tf.Session() as session:
            wanted = {session.run(x).tobytes() for _ in range(200)}
        with tf.Session() as session:
            found = []

            def work():
                found.extend(session.run(x).tobytes() for _ in range(50))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_a_native_loop_draws_at_each_turn():
    """The numbers of 50 turns are those of 50 runs."""
    with tf.Graph().as_default():
        attrs = {"dtype": tf.float32, **SEEDS}
        _, total = tf.while_loop(
            lambda i, a: i < 50, lambda i, a: (i + 1, a + apply_op("RandomUniform", [[4]], attrs)), [0, tf.zeros([4])]
        )
        x = apply_op("RandomUniform", [[4]], attrs)
        with tf.Session() as session:
            runs = [session.run(x) for _ in range(50)]
            np.testing.assert_array_equal(
                session.run(total), np.add.accumulate(np.array([np.zeros(4, np.float32), *runs]))[-1]
            )

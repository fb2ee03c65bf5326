"""Products of matrices by cuBLAS, in plain launches and in CUDA graphs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from timberframe_accelerator import Multiplication
from timberframe_core import errors

FLOAT32 = np.dtype(np.float32)


@pytest.fixture
def device(cuda: Any) -> Any:
    return cuda.devices({"count": {}, "memory_limit": {}})[0]


def product(device: Any, wanted: Multiplication, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Returns the elements that the library writes into `out`."""
    tensors = [device.copy_in(a) for a in (x, y, out)]
    function = device.multiplier(wanted)
    function((1,), (1,), *(a for t in tensors for a in (t, np.int64(0))))
    found: np.ndarray = device.copy_out(tensors[2])
    return found


def test_products_lie_in_lines_of_larger_matrices_and_are_added_to_what_is_there(device: Any) -> None:
    rng = np.random.default_rng(0)
    x, y, out = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 9), (5, 8), (2, 3, 7)))
    pitches, steps = (9, 8, 7), (27, 0, 21)
    wanted = Multiplication(3, 4, 5, (False, False), pitches, (FLOAT32,) * 3, 2, steps, adds=True)
    expected = out.copy()
    expected[..., :4] += x[..., :5] @ y[:, :4]
    np.testing.assert_allclose(product(device, wanted, x, y, out), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_floats_may_be_summed_into_float32(device: Any, name: str) -> None:
    from timberframe_core.dtypes import as_dtype

    short = np.dtype(as_dtype(name).numpy)
    x, y = np.full((2, 3), 1.5).astype(short), np.full((3, 2), 1.0009765625).astype(short)
    wanted = Multiplication(2, 2, 3, (False, False), (3, 2, 2), (short, short, FLOAT32))
    found = product(device, wanted, x, y, np.zeros((2, 2), np.float32))
    np.testing.assert_array_equal(found, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.parametrize(
    "types", [("int32",) * 3, ("float32", "float16", "float32"), ("float16", "float16", "float64")]
)
def test_dtypes_that_cublas_does_not_take_are_left_to_kernels(device: Any, types: tuple[str, str, str]) -> None:
    x, y, z = (np.dtype(t) for t in types)
    assert device.multiplier(Multiplication(2, 2, 2, (False, False), (2, 2, 2), (x, y, z))) is None


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (3, errors.ResourceExhaustedError, r"cublasGemmStridedBatchedEx of cuBLAS reports ALLOC_FAILED: less memory"),
        (13, errors.InternalError, r"/device:CUDA:0: cublasGemmStridedBatchedEx of cuBLAS reports EXECUTION_FAILED"),
        (15, errors.UnimplementedError, "NOT_SUPPORTED"),
        (99, errors.InternalError, "status 99"),
    ],
)
def test_a_failure_of_cublas_is_an_error_of_its_kind(
    device: Any, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception], message: str
) -> None:
    from cupy.cuda import cublas

    monkeypatch.setattr(cublas, "fails_with", status)
    wanted = Multiplication(2, 2, 2, (False, False), (2, 2, 2), (FLOAT32,) * 3)
    with pytest.raises(error, match=message):
        product(device, wanted, *[np.ones((2, 2), np.float32)] * 3)


def test_handles_go_back_when_the_device_is_closed(device: Any) -> None:
    from cupy.cuda import cublas

    assert device.multiplier(Multiplication(2, 2, 2, (False, False), (2, 2, 2), (FLOAT32,) * 3)) is not None
    assert len(cublas._handles) == 2
    device.close()
    assert not cublas._handles


def test_a_gpu_without_memory_for_the_workspace_says_so(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import runtime

    monkeypatch.setattr(runtime, "TOTAL", 1 << 20)
    wanted = Multiplication(2, 2, 2, (False, False), (2, 2, 2), (FLOAT32,) * 3)
    with pytest.raises(errors.ResourceExhaustedError, match=r"4194304 bytes of workspace for cuBLAS .*less memory"):
        device.multiplier(wanted)


PROGRAM = """
import numpy as np
import timberframe as tf
from cupy.cuda import cublas, runtime

rng = np.random.default_rng(0)
def random(*shape):
    return rng.standard_normal(shape).astype(np.float32)
"""
DENSE = """
with tf.Graph().as_default(), tf.device("/device:CUDA:0"):
    x = y = tf.placeholder(tf.float32, [6, 8])
    for _ in range(5):
        y = tf.nn.relu(tf.matmul(y, tf.constant(random(8, 8))) + random(8))
    with tf.Session() as session:
        fed = [random(6, 8) for _ in range(4)]
        first = [session.run(y, {x: a}) for a in fed]
        calls, graphs = cublas.calls, runtime.graphs_launched
        again = [session.run(y, {x: a}) for a in fed]
        assert cublas.calls == calls, "cuBLAS was called outside of graphs"
        assert runtime.graphs_launched == graphs + len(fed)
np.testing.assert_array_equal(first, again)
"""
OTHERS = """
x, y = random(3, 1, 4, 5), random(2, 5, 6)
with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
    before = cublas.calls
    found = session.run(tf.matmul(tf.constant(x), tf.constant(y)))
    assert cublas.calls == before + 2, cublas.calls - before  # one for the shorter dimension of the batch each
    np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-6)
    before, q = cublas.calls, random(2, 7, 3, 4)
    found = session.run(tf.einsum("bqhd,bkhd->bhqk", tf.constant(q), tf.constant(q)))
    assert cublas.calls == before + 1
    np.testing.assert_allclose(found, np.einsum("bqhd,bkhd->bhqk", q, q), rtol=1e-5, atol=1e-6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [DENSE, OTHERS], ids=["one graph", "batches and einsums"])
def test_ops_with_products_call_cublas(emulated_environment: dict[str, str], program: str) -> None:
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda"}
    command = [sys.executable, "-c", PROGRAM + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr

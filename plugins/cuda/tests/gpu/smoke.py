"""The first minute on a GPU: each check says PASS, FAIL or NOT RUN and how long it took.

Checks that may end the context run last, in processes of their own. status 1 if one fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np

import timberframe as tf
from timberframe_cuda.device import devices
from timberframe_sdk import cache_folder

SPEC = "/device:CUDA:0"
EMULATED = not hasattr(cupy, "ndarray")
"""CuPy's arrays are missing on the emulator."""
CUDA: Any = devices({"count": {}, "memory_limit": {}})[0]
rng = np.random.default_rng(0)
verdicts: list[str] = []


class NotRun(Exception):  # noqa: N818 - it is no error
    """Why a check is not run here."""


def check(name: str) -> Callable[[Callable[[], str | None]], None]:
    """Runs a function as a check; what it returns is a note."""

    def run(function: Callable[[], str | None]) -> None:
        start = time.perf_counter()
        try:
            note, verdict = function() or "", "PASS"
        except NotRun as e:
            note, verdict = str(e), "NOT RUN"
        except BaseException as e:
            note, verdict = f"{type(e).__name__}: {str(e)[:300]}", "FAIL"
            traceback.print_exc()
        verdicts.append(verdict)
        print(f"{verdict} {name} {time.perf_counter() - start:.2f} s {note}", flush=True)

    return run


def run(build: Callable[..., Any], feeds: Sequence[np.ndarray] = (), **options: Any) -> Any:
    """Returns the result of the fourth run, when graphs are captured and used."""
    with tf.Graph().as_default(), tf.device(SPEC):
        inputs = [tf.placeholder(x.dtype, x.shape) for x in feeds]
        y = build(*inputs)
        with tf.Session(config=tf.SessionConfig(device_options={"CUDA": options} if options else {})) as session:
            return [session.run(y, dict(zip(inputs, feeds, strict=True))) for _ in range(4)][-1]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


@check("device")
def _() -> str:
    return f"{CUDA.attributes.model}, {dict(CUDA.attributes.details)}, {CUDA.collective_library or 'no NCCL'}"


@check("copies of sizes around those of page-locked memory")
def _() -> None:
    for n in (0, 1, 7, 1000, (1 << 16) - 1, 1 << 16, (1 << 20) + 3, (1 << 25) + 5):
        x = rng.integers(0, 255, n).astype(np.uint8)
        y = x.copy()
        a = CUDA.copy_in(x)
        x[...] = 77
        assert np.array_equal(CUDA.copy_out(a), y), n


@check("page-locked memory is used again only when it is free")
def _() -> None:
    xs = [np.full(1 << 20, i, np.float32) for i in range(24)]
    held = [CUDA.copy_in(x) for x in xs]
    for x, started in zip(xs, [CUDA.start_copy_out(a) for a in held], strict=True):
        assert np.array_equal(started.result(), x)


@check("products by cuBLAS")
def _() -> None:
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-12), ("float16", 2e-3)):
        a, b = normal(3, 65, 130, dtype=dtype), normal(3, 77, 130, dtype=dtype)
        y = run(lambda a, b: tf.matmul(a, b, transpose_b=True), (a, b))
        wide = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
        assert np.linalg.norm(y - wide) <= tolerance * np.linalg.norm(wide), dtype
    a, b = normal(4, 1, 8, 16), normal(1, 5, 16, 8)
    np.testing.assert_allclose(run(tf.matmul, (a, b)), a @ b, rtol=1e-4, atol=1e-4)


@check("a convolution")
def _() -> None:
    x, w = normal(2, 17, 19, 32), normal(3, 3, 32, 48)
    y = run(lambda x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="VALID"), (x, w))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    np.testing.assert_allclose(y, np.einsum("nhwcij,ijco->nhwo", windows, w), rtol=1e-3, atol=1e-3)


@check("a softmax, sums, a sort, a transpose")
def _() -> None:
    z = normal(33, 1001)
    e = np.exp(z - z.max(1, keepdims=True))
    np.testing.assert_allclose(run(tf.nn.softmax, (z,)), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(run(lambda z: tf.reduce_sum(z, 0), (z,)), z.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(run(lambda z: tf.sort(z, axis=1), (z,)), np.sort(z, 1))
    np.testing.assert_array_equal(run(lambda z: tf.transpose(z) + 0, (z,)), z.T)


@check("an error of a kernel names its node")
def _() -> str:
    try:
        run(lambda x: tf.gather(x, tf.constant([1, 99])), (np.ones(3, np.float32),))
    except tf.errors.InvalidArgumentError as e:
        return str(e)[:80]
    raise AssertionError("no error")


@check("graphs give the bits of plain launches")
def _() -> None:
    def chain(x: Any) -> Any:
        for _ in range(12):
            x = tf.transpose(tf.nn.softmax(x))
        return x

    x = normal(64, 64)
    np.testing.assert_array_equal(run(chain, (x,)), run(chain, (x,), graphs=False))


@check("DLPack to CuPy and back")
def _() -> None:
    if EMULATED:
        raise NotRun("the emulator has no arrays of CuPy")
    x = normal(5, 7)
    there = cupy.from_dlpack(CUDA.to_dlpack(CUDA.copy_in(x)))
    np.testing.assert_array_equal(cupy.asnumpy(there), x)
    np.testing.assert_array_equal(CUDA.copy_out(CUDA.from_dlpack(there * 2)), x * 2)


class Alone:
    """A group of one process."""

    rank, size = 0, 1

    def exchange(self, data: bytes) -> list[bytes]:
        return [data]


@check("NCCL, a group of one process")
def _() -> None:
    if not CUDA.collective_library:
        raise NotRun("NCCL is not installed")
    made = CUDA.collective(Alone())
    x = CUDA.copy_in(np.arange(10, dtype=np.float32))
    np.testing.assert_array_equal(CUDA.copy_out(made.all_reduce([x]).result()[0]), np.arange(10))
    made.close()


@check("out of memory is an error, and no more")
def _() -> str:
    try:
        CUDA.allocator.allocate(1 << 46)
    except tf.errors.ResourceExhaustedError as e:
        CUDA.copy_out(CUDA.copy_in(np.ones(5)))
        return str(e)[-90:]
    raise AssertionError("no error")


@check("no more memory is in use than before")
def _() -> None:
    left = CUDA.allocator.statistics().live
    assert not left, f"{left} buffers"


ODD_ADDRESS = """
import numpy as np, cupy, timberframe as tf
x = cupy.arange(1 + 8 * 6, dtype=cupy.float32)[1:].reshape(8, 6)  # 4 bytes after a multiple of 8, rows of 24 bytes
with tf.device("/device:CUDA:0"):
    p = tf.placeholder(tf.float32, [8, 6])
    with tf.Session() as session:
        found = session.run(tf.gather(p, tf.constant([3, 1])), {p: x})
np.testing.assert_array_equal(found, cupy.asnumpy(x)[[3, 1]])
"""
LOST_CONTEXT = """
import os, numpy as np, timberframe as tf
from timberframe_accelerator import Source
from timberframe_cuda.device import devices
cuda, int32 = devices({"count": {}, "memory_limit": {}})[0], np.dtype(np.int32)
text = "#include <timberframe/accelerator/language.h>\\nTF_KERNEL tf_stray(TF_GLOBAL int *y) { y[0] = 1; }"
stray = cuda.function(Source(text), "tf_stray")
if "EMULATED_FAULT" in os.environ:
    place = cuda.empty(int32, (1,))
else:
    place = cuda.adopt(1 << 44, int32, (1,), None)  # nobody's memory
for _ in range(2):
    try:
        stray((1,), (1,), place)
        cuda.synchronize()
    except tf.errors.UnavailableError as e:
        print(e)
        assert "the GPU is lost to" in str(e) and "kernel 'tf_stray' was under way" in str(e)
    else:
        raise SystemExit("no error")
"""


def in_a_process(program: str, **variables: str) -> str:
    """Runs a program that may lose the context; the end of what it prints."""
    command, environment = [sys.executable, "-c", program], os.environ | variables
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-300:]
    return done.stdout[-300:]


@check("a tensor of another library that lies at an odd address")
def _() -> str:
    if EMULATED:
        raise NotRun("the emulator has no arrays of CuPy")
    return in_a_process(ODD_ADDRESS)


@check("a lost context is an error by name, and the next call says so, too")
def _() -> str:
    return in_a_process(LOST_CONTEXT, **({"EMULATED_FAULT": "tf_stray:700"} if EMULATED else {}))


made = cache_folder("cuda")
print(f"sources in the cache: {len(list(made.glob('*'))) if made.exists() else 0}; process {os.getpid()}")
counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in ("PASS", "FAIL", "NOT RUN")]
print("SMOKE", ", ".join(counts))
sys.exit("FAIL" in verdicts)

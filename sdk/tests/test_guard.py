"""Guarded runs: zones that show writes outside a tensor, and pages on which reading outside one ends the process."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys

import numpy as np
import pytest

from timberframe_core.errors import InternalError
from timberframe_core.plugin.contracts import Cluster, KernelNode, RunContext, Value
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_sdk import KernelDef
from timberframe_sdk.numpy_device import KERNELS, NumpyDevice
from timberframe_sdk.testing.guard import POISON, GuardedArray, fenced
from timberframe_sdk.testing.pages import PAGE

F = np.dtype(np.float32)
SHAPES = [(), (0,), (3,), (5, 7), (PAGE // 4,), (PAGE,)]
ended_by_the_system = pytest.mark.skipif(sys.platform == "win32", reason="exit codes of faults differ")


def run(script: str) -> int:
    """Returns the exit code of a script in a process of its own."""
    return subprocess.run([sys.executable, "-c", script], check=False, timeout=60, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fence", ["", "start", "end"])
def test_guarded_array_is_full_of_poison(shape, fence):
    array = GuardedArray(F, shape, fence).array
    assert array.shape == shape
    assert (array.reshape(-1).view(np.uint8) == POISON).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_fence_at_the_end_leaves_no_byte_between(shape):
    array = GuardedArray(F, shape, "end").array
    assert (array.ctypes.data + array.nbytes) % PAGE == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_fence_at_the_start_leaves_no_byte_between(shape):
    assert GuardedArray(F, shape, "start").array.ctypes.data % PAGE == 0


def test_fence_at_the_end_keeps_an_alignment():
    array = GuardedArray(F, (3,), "end", 64).array
    assert array.ctypes.data % PAGE == PAGE - 64


@pytest.mark.parametrize(
    ("fence", "offset", "where"), [("start", 12, "after"), ("end", -1, "before"), ("", -3, "before")]
)
def test_write_between_tensor_and_page_is_reported(fence, offset, where):
    guarded = GuardedArray(F, (3,), fence)
    address = guarded.array.ctypes.data + offset
    byte = ctypes.c_ubyte.from_address(address)
    byte.value ^= 0xFF
    with pytest.raises(InternalError, match=f"sums: 1 bytes {where} it were written"):
        guarded.check("sums")


@ended_by_the_system
@pytest.mark.parametrize("shape", [(0,), (3,), (PAGE,)])
@pytest.mark.parametrize(("fence", "offset"), [("start", "-1"), ("end", "x.nbytes")])
def test_reading_past_the_fence_ends_the_process(shape, fence, offset):
    script = f"""
import ctypes, numpy as np
from timberframe_sdk.testing.guard import fenced
x = fenced(np.ones({shape}, np.float32), {fence!r})
print(ctypes.string_at(x.ctypes.data, x.nbytes), flush=True)
ctypes.string_at(x.ctypes.data + {offset}, 1)
"""
    assert run(script) == -signal.SIGSEGV


@pytest.mark.parametrize("fence", ["start", "end"])
def test_fenced_copy_has_the_values(fence):
    x = np.arange(24.0).reshape(4, 6).T
    np.testing.assert_array_equal(fenced(x, fence), x)


def test_strings_are_copied_without_a_fence():
    x = np.array([b"a", "b"], object)
    assert fenced(x, "end").tolist() == x.tolist()


def chain(device: NumpyDevice) -> Cluster:
    """Mul(a + b, b), whose sum is an intermediate tensor."""
    a, b = (Value(i, F, (5,), "input") for i in range(2))
    inner, out = Value(2, F, (5,)), Value(3, F, (5,))
    nodes = [
        KernelNode("AddV2", "sum", {}, [a, b], [inner], device),
        KernelNode("Mul", "product", {}, [inner, b], [out], device),
    ]
    return Cluster(device, nodes, [a, b], [out])


@pytest.fixture
def device() -> NumpyDevice:
    made = NumpyDevice()
    made.kernels = KernelRegistry()
    made.kernels.register(KERNELS)
    return made


@pytest.mark.parametrize("fence", ["", "start", "end"])
def test_guarded_run_gives_the_values(device, fence):
    feeds = [np.arange(5, dtype=F), np.full(5, 3, F)]
    (out,) = device.compile(chain(device)).run(feeds, RunContext(mode="guarded", fence=fence))
    np.testing.assert_array_equal(out, [9, 12, 15, 18, 21])


@pytest.mark.parametrize("fence", ["start", "end"])
def test_each_tensor_of_a_run_lies_at_a_page(device, fence):
    seen = {}

    def build(node):
        def launch(x, y, out):
            seen[node.name] = x.ctypes.data + (-(-x.nbytes // 64) * 64 if fence == "end" else 0)
            np.multiply(x, y, out=out)

        return launch

    device.kernels.register([KernelDef("Mul", "NUMPY", build, priority=9)])
    feeds = [np.arange(5, dtype=F), np.full(5, 3, F)]
    device.compile(chain(device)).run(feeds, RunContext(mode="guarded", fence=fence))
    assert seen["product"] % PAGE == 0


def test_run_after_a_fenced_one_has_its_arena_again(device):
    executable = device.compile(chain(device))
    feeds = [np.arange(5, dtype=F), np.full(5, 3, F)]
    for context in (RunContext(mode="guarded", fence="end"), RunContext(), RunContext(mode="guarded")):
        (out,) = executable.run(feeds, context)
        np.testing.assert_array_equal(out, [9, 12, 15, 18, 21])


def test_write_outside_an_output_is_reported(device):
    def build(node):
        return lambda x, y, out: ctypes.memset(out.ctypes.data + out.nbytes, 0, 4)

    device.kernels.register([KernelDef("Mul", "NUMPY", build, priority=9)])
    with pytest.raises(InternalError, match=r"Mul 'product': a tensor of the run: 4 bytes after it were written"):
        device.compile(chain(device)).run([np.ones(5, F), np.ones(5, F)], RunContext(mode="guarded"))

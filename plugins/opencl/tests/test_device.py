"""The OpenCL plugin on whatever drivers are installed."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_accelerator.device import AcceleratorDevice
from timberframe_accelerator.kernels import accelerator_kernels
from timberframe_accelerator.opencl_drivers import find_drivers
from timberframe_core.plugin.contracts import KernelDef
from timberframe_core.plugin.device_defaults import complete
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_opencl.device import OpenCLDevice
from timberframe_opencl.memory import Staging
from timberframe_sdk import apply_op
from timberframe_sdk.execution.last_used import LastUsed

SPEC = "/device:OPENCL:0"


@pytest.fixture
def device(session: tf.Session) -> OpenCLDevice:
    found: OpenCLDevice = next(d for d in session.list_devices() if d.spec == SPEC)
    return found


def test_an_accelerator_that_does_not_build_is_refused(device: OpenCLDevice) -> None:
    kind: Any = type("Incomplete", (OpenCLDevice,), {"build": AcceleratorDevice.build})
    incomplete = kind.__new__(kind)
    incomplete.__dict__.update(device.__dict__)
    with pytest.raises(tf.errors.InternalError, match=f"device {SPEC}: has no build; "):
        complete(incomplete)


def test_a_device_that_the_driver_gives_up_is_lost(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    monkeypatch.setattr("timberframe_opencl.memory._lost", lambda: {cl.status_code.INVALID_VALUE})
    monkeypatch.setattr(device, "lost", "")
    small, large = (device.empty(np.dtype(np.uint8), (size,)) for size in (1, 1 << 20))
    what = "the device is lost until the process ends, as the driver reports .*INVALID_VALUE"
    with pytest.raises(tf.errors.UnavailableError, match=f"{SPEC}: {what}"):
        device.copy(small, large)  # a stand-in: no driver here gives up
    assert re.fullmatch(what, device.lost)


def test_a_chain_of_elementwise_ops_runs_on_the_device(session: tf.Session) -> None:
    with tf.device(SPEC):
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.tanh(x * 2.0 + tf.constant([1.0, 2.0, 3.0]))
    given = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_allclose(session.run(y, {x: given}), np.tanh(given * 2 + [1, 2, 3]), rtol=1e-6)


@pytest.mark.parametrize("op", ["Relu", "Sum"])
@pytest.mark.parametrize(("priority", "label"), [(1, ""), (0, "acme")])
def test_a_custom_kernel_runs_within_a_chain(
    device: OpenCLDevice, session: tf.Session, monkeypatch: pytest.MonkeyPatch, op: str, priority: int, label: str
) -> None:
    def build(node: Any) -> Any:
        return lambda *arrays: device.copy(device.copy_in(np.full(arrays[-1].shape, 7, np.float32)), arrays[-1])

    own = KernelDef(op, "OPENCL", build, {"T": ("float32",)}, priority=priority, label=label)
    kernels = KernelRegistry()
    kernels.register([*accelerator_kernels("OPENCL"), own])
    monkeypatch.setattr(device, "kernels", kernels)
    with tf.device(SPEC):
        x = tf.placeholder(tf.float32, [4])
        chain = tf.tanh(x * 2.0 - 1.0)
        inputs = [chain] if op == "Relu" else [chain, tf.constant([0])]
        y = apply_op(op, inputs, {"_kernel": label} if label else {}) + 1.0
    np.testing.assert_array_equal(session.run(y, {x: np.ones(4, np.float32)}), np.full(y.shape.as_list(), 8))


def test_an_index_out_of_range_is_named_and_the_session_goes_on(session: tf.Session) -> None:
    with tf.device(SPEC):
        rows = tf.placeholder(tf.int32, [None])
        taken = tf.gather(tf.constant([[1.0], [2.0]]), rows, name="taken")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'taken': index 2 at position 1 is outside \[0, 2\)"):
        session.run(taken, {rows: [0, 2]})
    assert session.run(taken, {rows: [1, 0]}).tolist() == [[2.0], [1.0]]


@pytest.mark.slow
def test_no_driver_is_no_fault_of_the_installation(tmp_path: Path) -> None:
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    command = [sys.executable, "-m", "timberframe", "devices"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "plugin opencl has no device: no OpenCL driver was found; install" in done.stdout


def test_the_loader_finds_drivers_of_the_python_environment_and_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libacme.so").touch()
    vendors = tmp_path / "etc" / "OpenCL" / "vendors"
    vendors.mkdir(parents=True)
    (vendors / "acme.icd").write_text("/folder/of/the/builder/libacme.so\n")
    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OCL_ICD_VENDORS", "kept")
    find_drivers(tmp_path)
    monkeypatch.delenv("OCL_ICD_VENDORS")
    find_drivers(tmp_path)
    folder = Path(os.environ["OCL_ICD_VENDORS"])
    assert (folder / "libacme.so.icd").read_text() == str(tmp_path / "lib" / "libacme.so")
    monkeypatch.delenv("OCL_ICD_VENDORS")
    folder.chmod(0o777)
    find_drivers(tmp_path)
    assert "OCL_ICD_VENDORS" not in os.environ  # others could have put a library of theirs there


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000])
def test_staged_copies_are_whole(device: OpenCLDevice, size: int) -> None:
    staging = Staging(device.queue, 64)
    given, got = np.random.default_rng(7).integers(0, 256, size, np.uint8), np.zeros(size, np.uint8)
    tensor = device.empty(given.dtype, given.shape)
    staging.write(given, tensor.handle)
    staging.read(tensor.handle, got)
    np.testing.assert_array_equal(got, given)


def test_a_refused_source_shows_the_drivers_message(device: OpenCLDevice) -> None:
    with pytest.raises(tf.errors.InternalError, match=r"the driver refuses a source(?s:.*)no_such_name"):
        device.build("__kernel void wrong(__global int *x) { x[0] = no_such_name; }", "wrong")


def test_a_failed_call_of_the_driver_names_the_device(device: OpenCLDevice) -> None:
    function = device.build("__kernel void good(__global int *x) { x[0] = 1; }", "good")
    tensor = device.empty(np.dtype(np.int32), (1,))
    with pytest.raises(tf.errors.OpError, match=r"/device:OPENCL:0: kernel good: .*INVALID_WORK_GROUP_SIZE"):
        function((7,), (1 << 20,), tensor)
    with pytest.raises(tf.errors.InternalError, match="kernel good takes 1 arguments; it was given 2"):
        function((1,), (1,), tensor, np.int32(1))
    function((1,), (1,), tensor)
    assert device.copy_out(tensor) == [1]


def test_rows_that_are_taken_at_a_time_do_not_mix(session: tf.Session) -> None:
    """PoCL gave work-groups the same shared array where a function that takes it was not inlined."""
    logits = np.random.default_rng(3).standard_normal((1031, 131)).astype(np.float32)
    with tf.device(SPEC):
        x = tf.placeholder(tf.float32, logits.shape)
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x)
    found = {session.run(loss, {x: logits}).tobytes() for _ in range(20)}
    assert len(found) == 1


def test_a_trace_has_the_drivers_own_times(device: OpenCLDevice) -> None:
    config = tf.SessionConfig(device_options={"OPENCL": {"profiling": True}})
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"), tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32, [500, 500])
        y = tf.matmul(x, x, name="product")
        feeds = {x: np.ones((500, 500), np.float32)}
        session.run(y, feeds)
        metadata = tf.RunMetadata()
        start = time.perf_counter()
        session.run(y, feeds, tf.RunOptions(trace=True), metadata)
        seconds = time.perf_counter() - start
    assert metadata.trace is not None
    event = next(e for e in metadata.trace["traceEvents"] if e["name"] == "product")
    assert 0 < event["dur"] < seconds * 1e6
    assert event["args"]["flops"] == 2 * 500**3


def test_an_unknown_option_is_refused(device: OpenCLDevice) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="OPENCL: options profilng are not known; known are profiling"
    ):
        tf.Session(config=tf.SessionConfig(device_options={"OPENCL": {"profilng": True}}))


def test_programs_that_nobody_uses_any_more_are_dropped(
    session: tf.Session, device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_functions", LastUsed(2))
    gc.collect()
    before = set(device._programs)
    with tf.device(SPEC):
        x = tf.placeholder(tf.float32, [3])
        chains = [tf.tanh(x * x) + x, tf.exp(-x * x) * x, tf.sin(x) * tf.cos(x) - x, tf.sqrt(x + x) * x]
    for y in chains:
        with tf.Session() as other:
            other.run(y, {x: [1, 2, 3]})
    gc.collect()
    assert len(set(device._programs) - before) <= 2

"""Errors after which a GPU does nothing any more, and the classes of the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_accelerator import Source
from timberframe_core import errors

SOURCE = Source("""
#include <timberframe/accelerator/language.h>
TF_KERNEL tf_right(TF_GLOBAL int *y) { y[0] = 1; }
TF_KERNEL tf_stray(TF_GLOBAL int *y) { y[0] = 2; }
""")


@pytest.fixture
def devices(cuda: Any) -> Any:
    return cuda.devices({"count": {"CUDA": 3}, "memory_limit": {}})


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMULATED_FAULT", "tf_stray:700")


def launch(device: Any, *names: str) -> Any:
    y = device.empty(np.dtype(np.int32), (1,))
    for name in names:
        device.function(SOURCE, name)((1,), (1,), y)
    return y


def test_a_lost_gpu_is_named_with_the_error_and_the_kernels(fault: None, devices: Any) -> None:
    device = devices[0]
    y = launch(device, "tf_right", "tf_stray")
    what = (
        r"/device:CUDA:0: the GPU is lost to cudaErrorIllegalAddress: an illegal memory access was encountered, while "
        r"kernels from 'tf_right' to 'tf_stray' were under way; restart the process"
    )
    with pytest.raises(errors.UnavailableError, match=what):
        device.copy_out(y)
    assert device.lost.startswith("the GPU is lost to cudaErrorIllegalAddress")


def test_kernels_that_are_known_to_have_ended_are_not_named(fault: None, devices: Any) -> None:
    launch(devices[0], "tf_right")
    devices[0].synchronize()
    launch(devices[0], "tf_stray")
    with pytest.raises(errors.UnavailableError, match="while kernel 'tf_stray' was under way"):
        devices[0].synchronize()


def test_every_call_of_a_lost_gpu_is_refused(fault: None, devices: Any) -> None:
    device = devices[0]
    y = launch(device, "tf_stray")
    with pytest.raises(errors.UnavailableError):
        device.synchronize()
    for call in (
        lambda: device.copy_in(np.ones(3)), lambda: device.copy_out(y), lambda: device.marker(),
        lambda: device.allocator.allocate(8), lambda: launch(device, "tf_right"),
    ):  # fmt: skip
        with pytest.raises(errors.UnavailableError, match="the GPU is lost to cudaErrorIllegalAddress"):
            call()
    device.close()


def test_a_gpu_is_lost_for_all_devices_on_it_and_for_no_other(fault: None, devices: Any) -> None:
    first, second, third = devices  # the third is another stream on the first GPU
    launch(first, "tf_stray")
    with pytest.raises(errors.UnavailableError):
        first.synchronize()
    assert third.lost == first.lost
    assert not second.lost
    second.copy_out(launch(second, "tf_right"))


def test_an_error_that_does_not_last_leaves_the_gpu_usable(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import runtime

    device = devices[0]
    with monkeypatch.context() as patched:
        patched.setattr(runtime, "memcpyAsync", lambda *_: fail(runtime.CUDARuntimeError(1)))
        with pytest.raises(errors.InternalError, match="/device:CUDA:0: CUDA reports 1"):
            device.copy_in(np.ones(3))
    assert not device.lost
    np.testing.assert_array_equal(device.copy_out(device.copy_in(np.ones(3))), np.ones(3))


def fail(error: Exception) -> None:
    raise error


def test_errors_of_cuda_and_of_cupy_have_their_class(devices: Any) -> None:
    from cupy.cuda import runtime

    for error, kind, words in (
        (runtime.CUDARuntimeError(2), errors.ResourceExhaustedError, "less memory in use"),
        (runtime.CUDARuntimeError(400), errors.InternalError, "CUDA reports 400, perhaps of work"),
        (RuntimeError("The stream is of device 1"), errors.InternalError, "CuPy reports The stream is of device 1"),
    ):
        with pytest.raises(kind, match=words), devices[0].calling():
            raise error


@pytest.mark.slow
def test_the_suite_goes_on_after_the_case_that_lost_the_gpu(
    emulated_environment: dict[str, str], tmp_path: Path
) -> None:
    program = "import sys; from timberframe_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    report = tmp_path / "run.json"
    chosen = ["--op=Softmax,Neg", "--suite=forward", "-k", "float32 and (/17 or /7)", "--jobs=1", f"--json={report}"]
    command = [sys.executable, "-c", program, "run", "--device=cuda", *chosen]
    environment = {**emulated_environment, "EMULATED_FAULT": "softmax:716", "TIMBERFRAME_PLUGINS": "cpu,cuda"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    cases = json.loads(report.read_text())["cases"]
    assert {(c["op"], c["verdict"]) for c in cases} == {("Softmax", "crash"), ("Neg", "pass")}, done.stdout
    messages = [c["message"] for c in cases if c["op"] == "Softmax"]
    assert all("the GPU is lost to cudaErrorMisalignedAddress: misaligned address" in m for m in messages), messages

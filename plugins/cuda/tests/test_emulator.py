"""CUDA sources on the CPU: what the emulator sees, and the conformance suite's verdict on kernels."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from timberframe import errors
from timberframe_sdk.accelerator import Source

SOURCE = Source("""
#include <timberframe/accelerator/language.h>
TF_KERNEL tf_turned(TF_GLOBAL const int *x, TF_GLOBAL int *y, int32_t count) {
  TF_SHARED int tile[64];
  tile[tf_local_id(0)] = x[tf_global_id(0)];
  tf_barrier();
  if (tf_global_id(0) < count) y[tf_global_id(0)] = tile[63 - tf_local_id(0)];
}
TF_KERNEL tf_divergent(TF_GLOBAL int *y) {
  if (tf_local_id(0) < 3) tf_barrier();
  y[0] = 1;
}
""")


@pytest.fixture
def device(emulator: None) -> Any:
    from cuda_on_cpu.device import EmulatedDevice

    return EmulatedDevice()


def test_work_items_of_a_group_meet_at_barriers(device: Any) -> None:
    x = device.copy_in(np.arange(128, dtype=np.int32))
    y = device.empty(np.dtype(np.int32), (128,))
    device.function(SOURCE, "tf_turned")((128,), (64,), x, y, np.int32(128))
    assert device.copy_out(y).tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


def test_a_barrier_that_some_work_items_miss_is_an_error(device: Any) -> None:
    y = device.empty(np.dtype(np.int32), (1,))
    with pytest.raises(errors.InternalError, match="some work-items of a group wait at the barrier of line 11"):
        device.function(SOURCE, "tf_divergent")((64,), (64,), y)


def test_a_scalar_of_another_type_than_the_kernels_is_an_error(device: Any) -> None:
    x = device.copy_in(np.arange(64, dtype=np.int32))
    with pytest.raises(errors.InternalError, match="takes pointer pointer int32; it was given pointer pointer int64"):
        device.function(SOURCE, "tf_turned")((64,), (64,), x, x, np.int64(64))


@pytest.mark.parametrize("ops", ["GatherV2"])
def test_kernels_conform(emulator: None, ops: str) -> None:
    program = "import sys; from timberframe_conformance.cli import main; sys.exit(main(sys.argv[1:]))"
    chosen = ["--op", ops, "--suite", "forward,errors,guards,determinism", "--jobs", "1"]
    command = [sys.executable, "-c", program, "run", "--device=emulated", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

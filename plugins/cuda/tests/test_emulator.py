"""What running CUDA sources on the CPU finds wrong with them."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from timberframe_accelerator import Source
from timberframe_core import errors

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
ODD_ADDRESS = f"""
import sys

import numpy as np
from timberframe_accelerator import DeviceTensor, Source
from timberframe_cuda.device import devices

device = devices({{"count": {{}}, "memory_limit": {{}}}})[0]
x, y = device.copy_in(np.arange(65, dtype=np.int32)), device.empty(np.dtype(np.int32), (64,))
moved = DeviceTensor(x.handle + int(sys.argv[1]), x.dtype, (64,), x)
device.function(Source('''{SOURCE.text}'''), "tf_turned")((64,), (64,), moved, y, np.int32(64))
print(device.copy_out(y).tolist()[:3])
"""

REFUSED = RuntimeError, errors.InternalError
"""What the emulator raises, as it is or, where a call of the plugin waits for the work, in the device's words."""


@pytest.fixture
def device(cuda: Any) -> Any:
    return cuda.devices({"count": {}, "memory_limit": {}})[0]


def run(device: Any, kernel: str, *arguments: Any) -> None:
    device.function(SOURCE, kernel)((64,), (64,), *arguments)
    device.synchronize()


def test_work_items_of_a_group_meet_at_barriers(device: Any) -> None:
    x = device.copy_in(np.arange(128, dtype=np.int32))
    y = device.empty(np.dtype(np.int32), (128,))
    device.function(SOURCE, "tf_turned")((128,), (64,), x, y, np.int32(128))
    assert device.copy_out(y).tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


def test_a_barrier_that_some_work_items_miss_is_an_error(device: Any) -> None:
    y = device.empty(np.dtype(np.int32), (1,))
    with pytest.raises(
        (RuntimeError, errors.InternalError), match="some work-items of a group wait at the barrier of line 11"
    ):
        run(device, "tf_divergent", y)


def test_a_scalar_of_another_type_than_the_kernels_is_an_error(device: Any) -> None:
    x = device.copy_in(np.arange(64, dtype=np.int32))
    with pytest.raises(
        (RuntimeError, errors.InternalError), match="takes pointer pointer int32; it was given pointer pointer int64"
    ):
        run(device, "tf_turned", x, x, np.int64(64))


def test_a_source_that_the_compiler_refuses_is_shown_with_its_message(device: Any) -> None:
    with pytest.raises(errors.InternalError, match=r"NVRTC refuses a source(.|\n)*absent(.|\n)*TF_KERNEL tf_wrong"):
        device.function(Source("#include <timberframe/accelerator/language.h>\nTF_KERNEL tf_wrong() { absent(); }"), "")


@pytest.mark.slow
def test_access_at_an_address_that_is_no_multiple_of_the_size_ends_the_process(
    emulated_environment: dict[str, str],
) -> None:
    """An x86 CPU allows it; a GPU reports error 716, and its context is lost."""

    def run(offset: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", ODD_ADDRESS, str(offset)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=emulated_environment)

    assert run(4).stdout == "[64, 63, 62]\n"
    assert run(2).returncode == -signal.SIGILL

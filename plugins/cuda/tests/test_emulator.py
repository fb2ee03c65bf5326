"""What running CUDA sources on the CPU finds wrong with them."""

from __future__ import annotations

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


@pytest.fixture
def device(cuda: Any) -> Any:
    return cuda.devices({"count": {}, "memory_limit": {}})[0]


def test_work_items_of_a_group_meet_at_barriers(device: Any) -> None:
    x = device.copy_in(np.arange(128, dtype=np.int32))
    y = device.empty(np.dtype(np.int32), (128,))
    device.function(SOURCE, "tf_turned")((128,), (64,), x, y, np.int32(128))
    assert device.copy_out(y).tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


def test_a_barrier_that_some_work_items_miss_is_an_error(device: Any) -> None:
    y = device.empty(np.dtype(np.int32), (1,))
    with pytest.raises(RuntimeError, match="some work-items of a group wait at the barrier of line 11"):
        device.function(SOURCE, "tf_divergent")((64,), (64,), y)


def test_a_scalar_of_another_type_than_the_kernels_is_an_error(device: Any) -> None:
    x = device.copy_in(np.arange(64, dtype=np.int32))
    with pytest.raises(RuntimeError, match="takes pointer pointer int32; it was given pointer pointer int64"):
        device.function(SOURCE, "tf_turned")((64,), (64,), x, x, np.int64(64))


def test_a_source_that_the_compiler_refuses_is_shown_with_its_message(device: Any) -> None:
    with pytest.raises(errors.InternalError, match=r"NVRTC refuses a source(.|\n)*absent(.|\n)*TF_KERNEL tf_wrong"):
        device.function(Source("#include <timberframe/accelerator/language.h>\nTF_KERNEL tf_wrong() { absent(); }"), "")

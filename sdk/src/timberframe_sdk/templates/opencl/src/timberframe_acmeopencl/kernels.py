"""Kernels of ACMEOPENCL's own, which replace those of timberframe-accelerator where they are faster."""

from __future__ import annotations

import timberframe_sdk as sdk
from timberframe_accelerator import Source, index_name, index_type, spread

KERNELS: list[sdk.KernelDef] = []
RELU = """
#include <timberframe/accelerator/language.h>

TF_KERNEL acmeopencl_relu(TF_GLOBAL const float *x, TF_GLOBAL float *y, tf_index count) {
  TF_EACH(i, count) {
    y[i] = x[i] <= 0 ? 0 : x[i]; /* a NaN stays */
  }
}
"""


@sdk.kernel(KERNELS, "Relu", "ACMEOPENCL", types={"T": ("float32",)}, priority=1, inplace=((0, 0),))
def relu(node: sdk.KernelNode) -> sdk.Launcher:
    count = node.outputs[0].size
    function = node.device.function(Source(RELU, (("INDEX", index_name(count)),)), "acmeopencl_relu")  # type: ignore[attr-defined]  # our device's
    items, group = spread(count)
    return lambda x, y: function(items, group, x, y, index_type(count)(count))

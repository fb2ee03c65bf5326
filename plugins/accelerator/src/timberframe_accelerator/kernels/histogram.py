"""Accelerator kernel of HistogramFixedWidth."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread
from timberframe_ops.math.histogram import NAN, RANGE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []


class _Float32Details(str):
    """Words of an error whose details are the bits of float32 numbers."""

    __slots__ = ()

    def format(self, *details: object, **_: object) -> str:
        return super().format(*np.array(details, np.int32).view(np.float32))


_RANGE = InvalidArgumentError, _Float32Details(f"value_range is [{{0}}, {{1}}]; {RANGE}")
_NAN = InvalidArgumentError, f"values[{{0}}] {NAN}"


@kernel(KERNELS, "HistogramFixedWidth", "", status=True)
def histogram(node: KernelNode) -> Launcher:
    """Counts in int32, widened at the end where int64 is wanted."""
    device: Any = node.device
    size, bins = node.inputs[0].size, node.outputs[0].size
    index = index_type(size, bins)
    source = Source.file("histogram.h", T=node.attrs["T"].name, INDEX=index_name(size, bins))
    clear, count, widen = (device.function(source, name) for name in ("tf_clear", "tf_count", "tf_widen"))
    numbers = node.number, index(size), index(bins)
    wide = node.attrs["dtype"].name == "int64"
    if wide:
        node.workspace(4 * bins)

    def launch(values: Any, limits: Any, out: Any, *rest: Any) -> None:
        *work, status = rest
        counts = work[0] if wide else out
        clear(*spread(bins), counts, numbers[2])
        count(*spread(size), values, limits, counts, status, *numbers)
        if wide:
            widen(*spread(bins), counts, out, numbers[2])

    return failing(launch, _RANGE, _NAN)

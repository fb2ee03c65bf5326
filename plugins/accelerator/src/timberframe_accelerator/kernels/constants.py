"""Accelerator kernels that make tensors of a few numbers, and those that check values."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import FLOATS, INDICES, bits_name
from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.values import planned_values, range_numbers

KERNELS: list[KernelDef] = []

_FORMATS = {
    "float16": ("0x7C00u", "0x03FFu"), "bfloat16": ("0x7F80u", "0x007Fu"), "float32": ("0x7F800000u", "0x007FFFFFu"),
    "float64": ("0x7FF0000000000000ul", "0x000FFFFFFFFFFFFFul"),
}  # fmt: skip
"""Bits of exponent and fraction."""


def unsigned(dtype: str) -> str:
    """Returns the dtype to compute in: of integers the unsigned one, whose results wrap."""
    return f"u{dtype}" if dtype.startswith("int") else dtype


@kernel(KERNELS, ("Shape", "ShapeN", "Rank", "Size", "ConcatOffset", "BroadcastGradientArgs"), "")
def planned(node: KernelNode) -> Launcher:
    """Copies of what was found when planning."""
    device: Any = node.device
    tables = [device.table(value) for value in planned_values(node)]
    count = len(tables)

    def launch(*arrays: Any) -> None:
        for table, out in zip(tables, arrays[len(arrays) - count :], strict=True):
            device.copy(table, out)

    return launch


@kernel(KERNELS, "Range", "", types={"Tidx": (*FLOATS, *INDICES)})
def number_range(node: KernelNode) -> Launcher:
    """start + i * delta."""
    device: Any = node.device
    out = node.outputs[0]
    dtype = unsigned(out.dtype.name)
    function = device.function(Source.file("sequence.h", T=dtype, INDEX=index_name(out.size)), "tf_range")
    convert = np.float32 if dtype.endswith("float16") else np.dtype(dtype).type
    numbers = [np.array(n).astype(out.dtype).astype(convert)[()] for n in range_numbers(node)]
    (items, group), count = spread(out.size), index_type(out.size)(out.size)
    return lambda y: function(items, group, y, count, *numbers) if out.size else None


@kernel(KERNELS, "LinSpace", "", types={"T": FLOATS})
def linspace(node: KernelNode) -> Launcher:
    """Numbers at equal distances from start to stop."""
    device: Any = node.device
    out = node.outputs[0]
    source = Source.file("sequence.h", T=out.dtype.name, INDEX=index_name(out.size))
    function = device.function(source, "tf_linspace")
    (items, group), count = spread(out.size), index_type(out.size)(out.size)
    return lambda *arrays: function(items, group, *arrays, count)


@kernel(KERNELS, ("CheckNumerics", "CheckNumericsV2"), "", types={"T": FLOATS}, inplace=((0, 0),), status=True)
def check_numerics(node: KernelNode) -> Launcher:
    """A copy, and an error with the counts of what is not finite."""
    from timberframe_ops.array.checks import nonfinite_message

    device: Any = node.device
    x = node.inputs[0]
    exponent, fraction = _FORMATS[x.dtype.name]
    bits, index = bits_name(x.dtype), index_name(x.size)
    source = Source.file("check.h", T=bits, INDEX=index, EXPONENT=exponent, FRACTION=fraction)
    clear, count, report = (device.function(source, f"tf_{n}") for n in ("no_counts", "count_odd", "report_odd"))
    (items, group), size, number = spread(x.size), index_type(x.size)(x.size), node.number
    node.workspace(12)

    def launch(x: Any, y: Any, counts: Any, status: Any) -> None:
        if size:
            clear((1,), (1,), counts)
            count(items, group, x, y, counts, size)
            report((1,), (1,), counts, status, number)

    return failing(launch, (InvalidArgumentError, nonfinite_message(node.op, node.attrs["message"])))


def _rearranging(node: KernelNode, name: str, size: int) -> Any:
    """Returns a kernel of rearrange.h on indices of the node's first input."""
    device: Any = node.device
    index = node.inputs[0].dtype.name
    return device.function(Source.file("rearrange.h", T="uint8", TINDEX=index, INDEX=index_name(size)), name)


@kernel(KERNELS, "InvertPermutation", "", types={"T": INDICES}, status=True)
def invert_permutation(node: KernelNode) -> Launcher:
    """Where each number stands."""
    from timberframe_ops.array.manipulation import NO_PERMUTATION

    n = node.inputs[0].size
    clear, invert = (_rearranging(node, name, n) for name in ("tf_no_marks", "tf_invert_permutation"))
    (items, group), size, number = spread(n), index_type(n)(n), node.number
    node.workspace(4 * max(n, 1))

    def launch(x: Any, y: Any, marks: Any, status: Any) -> None:
        if size:
            clear(items, group, marks, size)
            invert(items, group, x, y, marks, status, number, size)

    return failing(launch, *((InvalidArgumentError, message) for message in NO_PERMUTATION))


@kernel(KERNELS, "BroadcastArgs", "", types={"T": INDICES}, status=True)
def broadcast_args(node: KernelNode) -> Launcher:
    """The shape that two shapes broadcast to."""
    from timberframe_core.ops.base.math.arithmetic import SIZES_DIFFER

    function = _rearranging(node, "tf_broadcast_args", 0)
    ranks = [np.int32(v.size) for v in (*node.inputs, node.outputs[0])]
    number = node.number
    return failing(lambda *arrays: function((1,), (1,), *arrays, number, *ranks), (InvalidArgumentError, SIZES_DIFFER))

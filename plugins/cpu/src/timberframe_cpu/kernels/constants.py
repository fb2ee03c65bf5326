"""Kernels that make tensors of a few numbers, and those that check values."""

from __future__ import annotations

import numpy as np

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.native import Native
from timberframe_sdk.plans.values import planned_values, range_numbers

FLOATS = ("bfloat16", "float16", "float32", "float64")


def number_range(node: KernelNode) -> Native:
    return native(f"range_{node.outputs[0].dtype.name}", *range_numbers(node))


def linspace(node: KernelNode) -> Native:
    return native(f"linspace_{node.outputs[0].dtype.name}")


def planned(node: KernelNode) -> Native:
    words = [int(x) for value in planned_values(node) for x in value.reshape(-1)]
    return native(f"store_{node.outputs[0].dtype.name}", len(node.outputs), *words)


def check_numerics(node: KernelNode) -> Native:
    from timberframe_ops.array.checks import nonfinite_message

    return native(f"check_{node.inputs[0].dtype.name}", reasons=(nonfinite_message(node.op, node.attrs["message"]),))


def invert_permutation(node: KernelNode) -> Native:
    from timberframe_ops.array.manipulation import NO_PERMUTATION

    return native(f"invert_permutation_{node.inputs[0].dtype.name}", reasons=NO_PERMUTATION)


def check_condition(node: KernelNode) -> Launcher:
    """In Python, since the error shows the data, strings among them."""
    from timberframe_ops.array.checks import assertion_error

    def launch(condition: np.ndarray, *data: np.ndarray) -> None:
        if not condition:
            raise assertion_error(node.op, node.name, node.attrs, list(data))

    return launch


KERNELS: list[KernelDef] = [
    KernelDef("Range", "CPU", number_range, {"Tidx": (*FLOATS, "int32", "int64")}),
    KernelDef("LinSpace", "CPU", linspace, {"T": FLOATS}),
    KernelDef("Shape", "CPU", planned),
    KernelDef("ShapeN", "CPU", planned),
    KernelDef("Rank", "CPU", planned),
    KernelDef("Size", "CPU", planned),
    KernelDef("ConcatOffset", "CPU", planned),
    KernelDef("BroadcastGradientArgs", "CPU", planned),
    KernelDef("InvertPermutation", "CPU", invert_permutation),
    KernelDef("CheckNumerics", "CPU", check_numerics, {"T": FLOATS}, inplace=((0, 0),)),
    KernelDef("CheckNumericsV2", "CPU", check_numerics, {"T": FLOATS}, inplace=((0, 0),)),
    KernelDef("Assert", "CPU", check_condition),
]

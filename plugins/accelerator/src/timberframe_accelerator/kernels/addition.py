"""Accelerator kernels that add whole tensors: biases along channels, and sums of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from timberframe_accelerator.kernels.elementwise import build_single
from timberframe_accelerator.kernels.reduction import FLOATS, INTEGERS, accumulator
from timberframe_accelerator.launches import Source, index_name, index_type, spread
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_NUMBERS = {"T": (*FLOATS, *INTEGERS)}
_MOST_TERMS = 16  # of one launch: devices limit the number of arguments


@kernel(KERNELS, ("BiasAdd", "BiasAddV1"), "", types=_NUMBERS, inplace=((0, 0),))
def bias_add(node: KernelNode) -> Launcher:
    """The sum with a vector along the channels."""
    x, bias = node.inputs
    trailing = len(x.shape) - 2 if node.attrs.get("data_format") == "NCHW" else 0
    column = replace(bias, shape=(*bias.shape, *(1,) * trailing))
    return build_single(replace(node, op="AddV2", inputs=[x, column]))


@kernel(KERNELS, "AddN", "", types=_NUMBERS, inplace=((0, 0),))
def add_n(node: KernelNode) -> Launcher:
    """The sum of tensors of one shape; partial sums of many are kept in the accumulator's dtype."""
    device: Any = node.device
    x = node.inputs[0]
    dtype, partial = node.attrs["T"].name, accumulator("Sum", node.attrs["T"].name)
    functions: list[tuple[Any, int, int]] = []
    count = len(node.inputs)
    for begin in range(0, count, _MOST_TERMS):
        end = min(begin + _MOST_TERMS, count)
        sources = [*([partial] if begin else []), *[dtype] * (end - begin)]
        source = _sum_source(sources, dtype if end == count else partial, partial, index_name(x.size))
        functions.append((device.function(source, "tf_add_n"), begin, end))
    if len(functions) > 1:
        node.workspace(x.size * (8 if partial.endswith("64") else 4))
    items, group = spread(x.size)
    size = index_type(x.size)(x.size)

    def launch(*arrays: Any) -> None:
        out, work = arrays[count], arrays[-1]
        for function, begin, end in functions if x.size else ():
            before = [work] if begin else []
            function(items, group, *before, *arrays[begin:end], out if end == count else work, size)

    return launch


def _sum_source(sources: Sequence[str], target: str, partial: str, index: str) -> Source:
    """Returns a kernel that adds tensors of these dtypes in the dtype `partial`."""
    parameters = ", ".join(f"TF_GLOBAL const tf_storage_{t} *x{k}" for k, t in enumerate(sources))
    terms = " + ".join(f"(tf_value_{partial})tf_load_{t}(x{k}, i)" for k, t in enumerate(sources))
    text = f"""#include <timberframe/accelerator/language.h>
TF_KERNEL tf_add_n({parameters}, TF_GLOBAL tf_storage_{target} *out, tf_index count) {{
  TF_EACH(i, count) tf_store_{target}(out, i, (tf_value_{target})({terms}));
}}
"""
    return Source(text, (("INDEX", index),))

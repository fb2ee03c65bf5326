"""Kernels that make tensors of a few numbers, and those that check values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from timberframe.ops import registry
from timberframe.ops.checks import assertion_error
from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_cpu.reference import Launcher
from timberframe_sdk.native import Native

FLOATS = ("bfloat16", "float16", "float32", "float64")


def number_range(node: KernelNode) -> Native:
    start, delta = (node.const(i) for i in (0, 2))
    assert start is not None
    assert delta is not None
    convert: Callable[..., int | float] = int if start.dtype.kind in "iu" else float
    return native(f"range_{node.outputs[0].dtype.name}", convert(start.reshape(-1)[0]), convert(delta.reshape(-1)[0]))


def linspace(node: KernelNode) -> Native:
    return native(f"linspace_{node.outputs[0].dtype.name}")


def _store(node: KernelNode, values: Iterable[np.ndarray]) -> Native:
    words = [int(x) for value in values for x in value.reshape(-1)]
    return native(f"store_{node.outputs[0].dtype.name}", len(node.outputs), *words)


def shapes(node: KernelNode) -> Native:
    return _store(node, (np.array(v.shape, np.int64) for v in node.inputs))


def rank(node: KernelNode) -> Native:
    return _store(node, [np.array(len(node.inputs[0].shape))])


def size(node: KernelNode) -> Native:
    return _store(node, [np.array(node.inputs[0].size)])


def planned(node: KernelNode) -> Native:
    """For ops all of whose inputs are known when planning: what the reference makes of them."""
    reference = registry.get(node.op).reference
    assert reference is not None
    return _store(node, reference(node.attrs, *(node.const(i) for i in range(len(node.inputs)))))


def check_numerics(node: KernelNode) -> Native:
    signed = node.op == "CheckNumericsV2"
    message = str(node.attrs["message"]).replace("{", "{{").replace("}", "}}")
    fact = "{1} +Inf and {2} -Inf" if signed else "{3} infinite"
    words = f"{message}: the tensor has {{0}} NaN, {fact} values; all must be finite"
    return native(f"check_{node.inputs[0].dtype.name}", reasons=(words,))


def invert_permutation(node: KernelNode) -> Native:
    rule = "x must be a permutation of 0 to {1}"
    return native(
        f"invert_permutation_{node.inputs[0].dtype.name}",
        reasons=(f"x holds {{0}}; {rule}", f"{{0}} occurs twice; {rule}"),
    )


def check_condition(node: KernelNode) -> Launcher:
    """In Python, since the error shows the data, strings among them."""

    def launch(condition: np.ndarray, *data: np.ndarray) -> None:
        if not condition:
            raise assertion_error(node.op, node.name, node.attrs, list(data))

    return launch


KERNELS: list[KernelDef] = [
    KernelDef("Range", "CPU", number_range, {"Tidx": (*FLOATS, "int32", "int64")}),
    KernelDef("LinSpace", "CPU", linspace, {"T": FLOATS}),
    KernelDef("Shape", "CPU", shapes),
    KernelDef("ShapeN", "CPU", shapes),
    KernelDef("Rank", "CPU", rank),
    KernelDef("Size", "CPU", size),
    KernelDef("ConcatOffset", "CPU", planned),
    KernelDef("BroadcastGradientArgs", "CPU", planned),
    KernelDef("InvertPermutation", "CPU", invert_permutation),
    KernelDef("CheckNumerics", "CPU", check_numerics, {"T": FLOATS}, inplace=((0, 0),)),
    KernelDef("CheckNumericsV2", "CPU", check_numerics, {"T": FLOATS}, inplace=((0, 0),)),
    KernelDef("Assert", "CPU", check_condition),
]

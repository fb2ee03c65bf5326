"""Elementwise kernels of accelerators, generated: one source for a chain of nodes, and so for a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.ops import registry
from timberframe.plugin.contracts import Cluster, KernelDef, KernelNode, Launcher
from timberframe_sdk.accelerator.device import Source
from timberframe_sdk.elementwise import ACCELERATOR_TYPES, Expression, expression, has_source
from timberframe_sdk.fusion import ELEMENTWISE, Dim, merged_dims

GROUP = 256
_MOST_ITEMS = 1 << 22  # more elements than that are taken in turns
_CANDIDATES = (
    "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64",
)  # fmt: skip


def elementwise_kernels(device: str, float64: bool = True) -> list[KernelDef]:
    """Kernels of all elementwise ops that have a source, for a device type."""
    kernels = []
    for op in (registry.get(name) for name in sorted(ELEMENTWISE)):
        types = {}
        for attr in (a for a in op.attrs.values() if a.kind == "type"):
            allowed = _CANDIDATES if attr.allowed is None else [t.name for t in attr.allowed]
            known = [t for t in _CANDIDATES if t in allowed and (float64 or t != "float64")]
            types[attr.name] = tuple(t for t in known if op.name == "Cast" or has_source(op.name, t))
        if all(types.values()):
            kernels.append(KernelDef(op.name, device, build_single, types))
    return kernels


def can_fuse(node: KernelNode) -> bool:
    """Whether a node has a form in source."""
    inputs = list({v.id: v for v in node.inputs}.values())
    return expression(Cluster(node.device, [node], inputs, node.outputs), ACCELERATOR_TYPES) is not None


def build_single(node: KernelNode) -> Launcher:
    """The launcher of one elementwise node."""
    inputs = list({v.id: v for v in node.inputs}.values())
    launch = _launcher(node, Cluster(node.device, [node], inputs, list(node.outputs)))
    places = [next(i for i, v in enumerate(node.inputs) if v is x) for x in inputs]
    if len(inputs) == len(node.inputs):
        return launch
    count = len(node.inputs)
    return lambda *arrays: launch(*(arrays[i] for i in places), *arrays[count:])


def build_fused(node: KernelNode) -> Launcher:
    """The launcher of a fused node."""
    return _launcher(node, node.inner[0])


def _launcher(node: KernelNode, body: Cluster) -> Launcher:
    device: Any = node.device
    made = expression(body, ACCELERATOR_TYPES)
    assert made is not None
    count = body.outputs[0].size
    dims = merged_dims([v.shape for v in body.inputs], body.outputs[0].shape)
    walks = [_walk(k, dims) for k in range(len(body.inputs))]
    wide = count + _MOST_ITEMS >= 2**31
    types = [v.dtype.name for v in (*body.inputs, *body.outputs)]
    source = _source(made, types, walks, len(dims), "int64_t" if wide else "int32_t")
    function = device.function(Source(source), "tf_elementwise")
    scalar = np.int64 if wide else np.int32
    numbers = [count]
    if _STRIDED in walks:
        numbers += [
            n
            for size, strides in dims
            for n in (size, *(s for s, w in zip(strides, walks, strict=False) if w == _STRIDED))
        ]
    arguments = [scalar(n) for n in numbers]
    items = (max(GROUP, min(-(-count // GROUP) * GROUP, _MOST_ITEMS)),)

    def launch(*arrays: Any) -> None:
        if count:
            function(items, (GROUP,), *arrays, *arguments)

    return launch


_DENSE, _SCALAR, _STRIDED = "dense", "scalar", "strided"


def _walk(k: int, dims: Sequence[Dim]) -> str:
    """How operand k moves: with the result, not at all, or by strides of its own."""
    strides = [s[k] for _, s in dims]
    if not any(strides):
        return _SCALAR
    step = 1
    for (size, _), stride in zip(dims, strides, strict=True):
        if stride != step:
            return _STRIDED
        step *= size
    return _DENSE


def _source(made: Expression, types: Sequence[str], walks: Sequence[str], rank: int, index: str) -> str:
    """The source for one form of operands; sizes and strides are arguments."""
    count = len(walks)
    strided = [k for k in range(count) if walks[k] == _STRIDED]
    parameters = [f"TF_GLOBAL const tf_storage_{types[k]} *p{k}" for k in range(count)]
    parameters += [f"TF_GLOBAL tf_storage_{t} *z{k}" for k, t in enumerate(types[count:])]
    parameters.append(f"{index} count")
    if strided:
        parameters += [p for d in range(rank) for p in (f"{index} n{d}", *(f"{index} s{d}_{k}" for k in strided))]
    lines = [
        "#include <timberframe/accelerator/language.h>",
        "#include <timberframe/elementwise.h>",
        f"TF_KERNEL tf_elementwise({', '.join(parameters)}) {{",
        f"  for ({index} i = ({index})tf_global_id(0); i < count; i += ({index})tf_global_size(0)) {{",
    ]
    if strided:
        lines.append(f"    {index} left = i, " + ", ".join(f"o{k} = 0" for k in strided) + ";")
        for d in range(rank):
            moves = "".join(f" o{k} += at * s{d}_{k};" for k in strided)
            lines.append(f"    {{ {index} rest = left / n{d}, at = left - rest * n{d};{moves} left = rest; }}")
    for k, ((operand, kind), walk) in enumerate(zip(made.inputs, walks, strict=True)):
        place = {_DENSE: "i", _SCALAR: "0", _STRIDED: f"o{k}"}[walk]
        lines.append(f"    const {kind} {operand} = tf_load_{types[k]}(p{k}, {place});")
    lines += [f"    {statement}" for statement in made.statements]
    lines += [f"    tf_store_{types[count + k]}(z{k}, i, {result});" for k, (result, _) in enumerate(made.outputs)]
    return "\n".join([*lines, "  }", "}", ""])

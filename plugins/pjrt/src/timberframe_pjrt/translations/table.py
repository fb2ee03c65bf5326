"""The table of translations, by op: each is a function of a node and of its inputs as JAX traces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timberframe_pjrt.checks import Check
from timberframe_sdk import Cluster, KernelNode, role

Function = Callable[..., Any]
"""Of a node and its inputs: traced arrays, or host arrays where they are constants. Returns the output, or a list."""

HALF = ("float16", "bfloat16")
FLOATS = (*HALF, "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")


@dataclass(frozen=True)
class Translation:
    """An op in JAX. types: the dtypes of its attrs. suits: says why a node does not fit, None where it does.

    check: what values of the node's inputs are refused.
    """

    function: Function
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    suits: Callable[[KernelNode], str | None] = lambda node: None
    check: Check | None = None


TABLE: dict[str, Translation] = {}
"""By op."""
ROLES: dict[str, Function] = {}
"""By the role of ops that have clusters of their own: functions of a Tracer, a node and its inputs."""


def translation(
    ops: str | Sequence[str],
    types: Mapping[str, Sequence[str]] | None = None,
    suits: Callable[[KernelNode], str | None] = lambda node: None,
    check: Check | None = None,
) -> Callable[[Function], Function]:
    """Declares the function below it as the translation of these ops."""

    def declare(function: Function) -> Function:
        for op in (ops,) if isinstance(ops, str) else ops:
            TABLE[op] = Translation(function, types or {}, suits, check)
        return function

    return declare


def in_float32(function: Function) -> Function:
    """Has a translation compute half precision in float32, and round its outputs alone, as TensorFlow's kernels do.

    For functions of several operations, each of which would round, and for sums and products of many elements.
    """

    def run(node: KernelNode, *inputs: Any) -> Any:
        made = function(node, *(x.astype(np.float32) if x.dtype.name in HALF else x for x in inputs))
        if not isinstance(made, list):
            return made.astype(node.outputs[0].dtype)
        return [y.astype(v.dtype) for y, v in zip(made, node.outputs, strict=True)]

    return run


def named(table: Mapping[str, Callable[..., Any]], types: Mapping[str, Sequence[str]]) -> None:
    """Declares ops that are each a function of JAX of their inputs."""
    for op, function in table.items():
        translation(op, types)(of_inputs(function))


def of_inputs(function: Callable[..., Any]) -> Function:
    """Returns a translation that calls a function of JAX with the inputs."""
    return lambda node, *inputs: function(*inputs)


def refusal(node: KernelNode) -> str | None:
    """Returns why there is no translation of a node; None if there is one."""
    for value in (*node.inputs, *node.outputs):
        if value.dtype.name not in ALL:
            return f"{value.dtype.name} is not one of {', '.join(ALL)}"
    if "_kernel" in node.attrs:
        return f"there is no kernel with the label {node.attrs['_kernel']!r}"
    if role(node.op) in ROLES:
        return None
    found = TABLE.get(node.op)
    if found is None:
        return "the op has no translation to JAX"
    for attr, allowed in found.types.items():
        dtype = node.attrs.get(attr)
        if dtype is not None and dtype.name not in allowed:
            return f"{attr} is {dtype.name}; one of {', '.join(allowed)} is required"
    return found.suits(node)


def checks_of(cluster: Cluster) -> list[tuple[KernelNode, Check]]:
    """Returns the checks of a cluster's nodes, in the order of their rows."""
    found: list[tuple[KernelNode, Check]] = []
    for node in cluster.nodes:
        own = TABLE.get(node.op)
        if own is not None and own.check is not None:
            found.append((node, own.check))
        for inner in node.inner:
            found += checks_of(inner)
    return found


def integers(node: KernelNode, i: int) -> list[int]:
    """Returns the elements of an input that is known when a node is compiled."""
    return [int(v) for v in np.ravel(np.asarray(node.const(i)))]


def integer(node: KernelNode, i: int) -> int:
    """Returns the one element of an input that is known when a node is compiled."""
    return integers(node, i)[0]

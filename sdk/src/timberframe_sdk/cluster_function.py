"""A cluster as a function, for compilers that take a graph as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InternalError
from timberframe_core.plugin.contracts import Cluster, KernelNode, Value
from timberframe_core.plugin.nodes import passed_inputs
from timberframe_sdk.execution.errors import naming

Translate = Callable[[KernelNode, Sequence[Any]], Any]


class ClusterFunction:
    """A pure function of `parameters` that gives `results`: both are Values, which have dtype and shape.

    Parameters are the cluster's inputs, the versions of variables that it reads, and `constants`: those of more than
    `inline_bytes`, which would make the program large (None: there are none). Results are the cluster's outputs and
    the new versions of variables. The body of a loop or branch is ``ClusterFunction(node.inner[i])``.
    """

    def __init__(self, cluster: Cluster, inline_bytes: int | None = None) -> None:
        self.cluster = cluster
        self.constants = [] if inline_bytes is None else _large_constants(cluster, inline_bytes)
        self.parameters = [*cluster.inputs, *cluster.resources, *self.constants]
        self.results = [*cluster.outputs, *(u.new for u in cluster.updates)]

    def __call__(self, translate: Translate, arguments: Sequence[Any]) -> list[Any]:
        """Translates node after node, and gives what stands for the results.

        translate(node, inputs) returns the node's output, or a list of them where there are several. Arguments, inputs
        and outputs are whatever the compiler computes with: traced arrays, nodes of its own graph, names in a source.
        A constant that is no parameter is handed over as an ndarray. Inputs that the op needs for planning, such as the
        axes of Sum, are better taken from ``node.const(i)``. UnknownError names the node whose translation raised,
        InternalError one whose outputs have another shape or dtype than planned, as far as they tell.
        """
        found = {v.id: x for v, x in zip(self.parameters, arguments, strict=True)}
        for node in self.cluster.nodes:
            inputs = [found.get(v.id, v.constant) for v in node.inputs]
            found.update({v.id: x for v, x in zip(node.outputs, _outputs(translate, node, inputs), strict=True)})
        return [found[v.id] for v in self.results]


def single(node: KernelNode) -> Cluster:
    """Returns the cluster of one node of another: its inputs are the node's, each once, without constants."""
    inputs = list({v.id: v for v in node.inputs if v.kind != "const"}.values())
    return Cluster(node.device, [node], inputs, list(node.outputs))


def _large_constants(cluster: Cluster, most: int) -> list[Value]:
    found: dict[int, Value] = {}
    for node in cluster.nodes:
        for i in passed_inputs(node):
            value = node.inputs[i]
            if value.kind == "const" and value.nbytes > most:
                found[value.id] = value
    return list(found.values())


def _outputs(translate: Translate, node: KernelNode, inputs: Sequence[Any]) -> Sequence[Any]:
    with naming(node, "its translation"):
        made = translate(node, inputs)
    head = f"{node.op} '{node.name}'"
    outputs = made if isinstance(made, list | tuple) else [made]
    if len(outputs) != len(node.outputs):
        fact = f"its translation gives {len(outputs)} outputs"
        raise InternalError(f"{head}: {fact}; {len(node.outputs)} are required", node.name)
    for i, (value, x) in enumerate(zip(node.outputs, outputs, strict=True)):
        dtype, shape = getattr(x, "dtype", value.dtype), tuple(getattr(x, "shape", value.shape))
        if np.dtype(dtype) != value.dtype or (shape != value.shape and not value.dynamic):
            fact = f"its translation gives {np.dtype(dtype)}{list(shape)} as output {i}"
            raise InternalError(f"{head}: {fact}; {value.dtype}{list(value.shape)} is required", node.name)
    return outputs

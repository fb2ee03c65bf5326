"""The clusters of a plan as GraphDefs, with _Send and _Recv nodes where tensors pass from one to another."""

from __future__ import annotations

from typing import Any

from timberframe_core.compiler.ir import Node, Output
from timberframe_core.compiler.plan import Plan
from timberframe_core.compiler.stages import Stage
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry


def partition_graphs(plan: Plan) -> list[Any]:
    """Returns one GraphDef for each stage, in running order."""
    stages = plan.schedule.stages
    stage_of = {n: s for s in stages for n in s.nodes}
    return [_Partition(plan, stage, stage_of).graph.as_graph_def() for stage in stages]


class _Partition:
    """Rebuilds the nodes of a stage as a graph of its own."""

    def __init__(self, plan: Plan, stage: Stage, stage_of: dict[Node, Stage]) -> None:
        self.graph = Graph()
        self.stage = stage
        self.stage_of = stage_of
        self.tensors: dict[Output, Tensor] = {}
        self.operations: dict[Node, Operation] = {}
        for node in stage.nodes:
            for function in node.bodies:
                self.graph.add_function(function)
            self._copy(node)
        for x in stage.outputs:
            for target in _readers(plan, x, stage, stage_of):
                self._send(x, target)

    def _copy(self, node: Node) -> None:
        inputs = [self._tensor(x) for x in node.inputs]
        control = [self.operations[c] for c in (*node.control, *node.after) if c in self.operations]
        made = self.graph.create_op(
            node.op,
            inputs,
            node.attrs,
            node.name,
            control_inputs=control,
            device=self.stage.device.name,
            exact_name=True,
        )
        self.operations[node] = made
        self.tensors.update(zip(node.outputs, made.outputs, strict=True))

    def _tensor(self, x: Output) -> Tensor:
        found = self.tensors.get(x)
        if found is None:
            source = self.stage_of.get(x.node)
            if source is None or source is self.stage:
                self._copy(x.node)  # a constant, a handle, a feed, or host arithmetic
                return self.tensors[x]
            attrs = {**_rendezvous(x, source, self.stage), "tensor_type": x.dtype}
            found = self.graph.apply("_Recv", (), attrs, f"{x.node.name}/_recv_{x.index}").outputs[0]
            found.set_shape(x.static_shape)
            self.tensors[x] = found
        return found

    def _send(self, x: Output, target: Stage) -> None:
        attrs = {**_rendezvous(x, self.stage, target), "T": x.dtype}
        self.graph.create_op(registry.get("_Send"), [self.tensors[x]], attrs, f"{x.node.name}/_send_{x.index}")


def _rendezvous(x: Output, source: Stage, target: Stage) -> dict[str, Any]:
    return {
        "tensor_name": x.name,
        "send_device": source.device.name,
        "send_device_incarnation": source.device.incarnation,
        "recv_device": target.device.name,
        "client_terminated": False,
    }


def _readers(plan: Plan, x: Output, stage: Stage, stage_of: dict[Node, Stage]) -> list[Stage]:
    found = {id(stage_of[n]): stage_of[n] for n in plan.program.nodes if x in n.inputs and n in stage_of}
    found.pop(id(stage), None)
    return list(found.values())

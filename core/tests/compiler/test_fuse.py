"""Which nodes are fused, and that no order of running is broken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from timberframe_core.compiler.passes import fuse
from timberframe_core.compiler.passes.rewriter import ClusterRewriter
from timberframe_core.plugin.contracts import Cluster, KernelNode, Value
from timberframe_core.plugin.fusion import FUSED, Fusion, merged_dims

FLOAT = np.dtype(np.float32)


class Builder:
    """A cluster, node by node."""

    def __init__(self) -> None:
        self.nodes: list[KernelNode] = []
        self.count = 0

    def value(self, shape: tuple[int, ...] = (64,)) -> Value:
        self.count += 1
        return Value(self.count, FLOAT, shape)

    def node(self, op: str, *inputs: Value, shape: tuple[int, ...] = (64,)) -> Value:
        made = self.value(shape)
        device: Any = None
        self.nodes.append(KernelNode(op, f"n{made.id}", {}, list(inputs), [made], device))
        return made

    def reduction(self, op: str, x: Value, shape: tuple[int, ...] = ()) -> Value:
        self.count += 1
        axes = Value(self.count, np.dtype(np.int32), (1,), "const", np.zeros(1, np.int32))
        return self.node(op, x, axes, shape=shape)

    def fused(self, outputs: Sequence[Value], **options: Any) -> Cluster:
        device: Any = SimpleNamespace(fusion=Fusion(lambda node: True, **options))
        rewriter = ClusterRewriter(Cluster(device, self.nodes, [], list(outputs)))
        fuse.run(rewriter)
        rewriter.commit()
        return rewriter.cluster


def ops(cluster: Cluster) -> list[str]:
    return [n.op for n in cluster.nodes]


def members(node: KernelNode) -> list[str]:
    return [n.op for n in node.inner[0].nodes]


def test_a_chain_becomes_one_node_with_its_outer_inputs() -> None:
    b = Builder()
    x, y = b.value(), b.value()
    out = b.node("Tanh", b.node("Mul", b.node("AddV2", x, y), y))
    (node,) = b.fused([out]).nodes
    assert (node.op, members(node)) == (FUSED, ["AddV2", "Mul", "Tanh"])
    assert (node.inputs, node.outputs) == ([x, y], [out])


def test_a_value_that_others_want_is_an_output() -> None:
    b = Builder()
    middle = b.node("Exp", b.value())
    out = b.node("Neg", middle)
    total = b.reduction("Sum", middle)
    cluster = b.fused([out, total])
    assert ops(cluster) == [FUSED, "Sum"]
    assert cluster.nodes[0].outputs == [middle, out]


def test_a_path_that_leaves_a_group_keeps_its_ends_apart() -> None:
    b = Builder()
    x = b.node("Exp", b.node("Neg", b.value()))
    total = b.reduction("Sum", x)
    out = b.node("Mul", b.node("Sub", x, total), x)
    cluster = b.fused([out])
    assert ops(cluster) == [FUSED, "Sum", FUSED]
    assert [members(n) for n in cluster.nodes if n.op == FUSED] == [["Neg", "Exp"], ["Sub", "Mul"]]


def test_a_reduction_that_alone_reads_a_chain_ends_it() -> None:
    b = Builder()
    x = b.value()
    out = b.node("Neg", b.reduction("Mean", b.node("Exp", x)))
    cluster = b.fused([out], reduces=lambda node: True)
    assert ops(cluster) == [FUSED, "Neg"]
    assert members(cluster.nodes[0]) == ["Exp", "Mean"]
    assert cluster.nodes[0].inputs == [x]


def test_a_reduction_stays_by_itself_where_others_read_the_chain_too() -> None:
    b = Builder()
    x = b.node("Exp", b.node("Neg", b.value()))
    total = b.reduction("Sum", x)
    assert ops(b.fused([total, x], reduces=lambda node: True)) == [FUSED, "Sum"]


def test_two_chains_that_meet_are_one_group() -> None:
    b = Builder()
    out = b.node("AddV2", b.node("Exp", b.value()), b.node("Neg", b.value()))
    assert ops(b.fused([out])) == [FUSED]


def test_a_smaller_operand_is_computed_once_and_not_with_each_element() -> None:
    b = Builder()
    row = b.node("Exp", b.node("Neg", b.value((8,)), shape=(8,)), shape=(8,))
    out = b.node("Tanh", b.node("Mul", b.value((4, 8)), row, shape=(4, 8)), shape=(4, 8))
    cluster = b.fused([out])
    assert [members(n) for n in cluster.nodes] == [["Neg", "Exp"], ["Mul", "Tanh"]]


def test_short_rows_are_not_fused_where_a_device_asks_for_long_ones() -> None:
    b = Builder()
    out = b.node("Tanh", b.node("Mul", b.value((64, 8)), b.value((8,)), shape=(64, 8)), shape=(64, 8))
    assert FUSED in ops(b.fused([out], run=8))
    assert FUSED not in ops(b.fused([out], run=9))


def test_nodes_stay_in_an_order_in_which_they_can_run() -> None:
    for seed in range(300):
        choose = random.Random(seed)
        b = Builder()
        values = [b.value(), b.value()]
        for _ in range(40):
            op, count = choose.choice([("AddV2", 2), ("Tanh", 1), ("Mul", 2), ("Sort", 1)])
            values.append(b.node(op, *choose.sample(values[-8:] if len(values) > 8 else values, count)))
        wanted = choose.sample(values[2:], 3)
        cluster = b.fused(wanted)
        made = {values[0].id, values[1].id}
        for node in cluster.nodes:
            assert {v.id for v in node.inputs} <= made
            made |= {v.id for v in node.outputs}
        assert {v.id for v in wanted} <= made
        kept = [m for n in cluster.nodes for m in (n.inner[0].nodes if n.op == FUSED else [n])]
        assert sorted(n.name for n in kept) == sorted(n.name for n in b.nodes)


def test_dimensions_that_all_operands_walk_alike_are_merged() -> None:
    assert merged_dims([(4, 5, 6), (4, 5, 6)], (4, 5, 6)) == [(120, (1, 1))]
    assert merged_dims([(4, 5, 6), (6,)], (4, 5, 6)) == [(6, (1, 1)), (20, (6, 0))]
    assert merged_dims([(4, 1, 6), ()], (4, 5, 6)) == [(6, (1, 0)), (5, (0, 0)), (4, (6, 0))]

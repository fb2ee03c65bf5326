"""The memory planner: tensors that are alive together do not overlap, others share, in-place permissions are used."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

import timberframe as tf
from timberframe_sdk import Allocator, Cluster, KernelNode, Value, plan_memory

FLOAT = np.dtype(np.float32)


def chain(length: int, size: int = 100) -> Cluster:
    """x -> op -> op -> ... -> y."""
    values = [Value(i, FLOAT, (size,), "input" if i == 0 else "temp") for i in range(length + 1)]
    nodes = [KernelNode("Tanh", f"n{i}", {}, [values[i]], [values[i + 1]], None) for i in range(length)]
    return Cluster(None, nodes, values[:1], values[-1:])


def test_a_chain_needs_two_tensors() -> None:
    assert plan_memory(chain(50), lambda node: (), 64).arena == 2 * 448


def test_a_chain_that_may_work_in_place_needs_one() -> None:
    assert plan_memory(chain(50), lambda node: ((0, 0),), 64).arena == 448


def test_escaping_values_are_not_in_the_arena() -> None:
    cluster = chain(1)
    assert plan_memory(cluster, lambda node: (), 64).arena == 0


def test_an_input_read_twice_is_not_overwritten() -> None:
    cluster = chain(3)
    first = cluster.nodes[1].inputs[0]
    cluster.nodes[2].inputs.append(first)
    plan = plan_memory(cluster, lambda node: ((0, 0),), 64)
    assert plan.offsets[cluster.nodes[1].outputs[0].id] != plan.offsets[first.id]


@pytest.mark.parametrize("seed", range(20))
def test_values_alive_together_never_overlap(seed: int) -> None:
    rng = random.Random(seed)
    values = [Value(0, FLOAT, (16,), "input")]
    nodes = []
    for i in range(40):
        inputs = rng.sample(values, min(len(values), rng.randint(1, 3)))
        made = Value(len(values), FLOAT, (rng.choice([1, 16, 100, 1000]),))
        node = KernelNode("Op", f"n{i}", {}, inputs, [made], None)
        node.workspace_bytes = rng.choice([0, 0, 300])
        values.append(made)
        nodes.append(node)
    cluster = Cluster(None, nodes, values[:1], values[-2:])
    plan = plan_memory(cluster, lambda node: ((0, 0),), 64)
    last = {v.id: i for i, n in enumerate(nodes) for v in n.inputs}
    for i, node in enumerate(nodes):
        made = node.outputs[0]
        if made.id not in plan.offsets:
            continue
        spans = [
            (plan.offsets[v.id], v.nbytes)
            for v in values[1 : made.id]
            if v.id in plan.offsets and last.get(v.id, -1) > i
        ]
        if i in plan.workspaces:
            spans.append((plan.workspaces[i], node.workspace_bytes))
        start, end = plan.offsets[made.id], plan.offsets[made.id] + made.nbytes
        assert all(end <= s or s + n <= start for s, n in spans)
        assert end <= plan.arena


def layered(sizes: Sequence[Sequence[int]]) -> Cluster:
    """Nodes in a row, each of which makes tensors of these sizes; each reads what the one before it made."""
    values, nodes = [Value(0, FLOAT, (1,), "input")], []
    inputs = values[:1]
    for i, row in enumerate(sizes):
        made = [Value(len(values) + k, FLOAT, (size,)) for k, size in enumerate(row)]
        nodes.append(KernelNode("Op", f"n{i}", {}, inputs, made, None))
        values += made
        inputs = made
    return Cluster(None, nodes, values[:1], values[-1:])


def test_tensors_that_grow_leave_no_gaps() -> None:
    """In the order in which they are made, each would be too large for what is free."""
    cluster = layered([[16], [32], [64], [128], [256], [512], [1]])
    plan = plan_memory(cluster, lambda node: (), 64)
    assert plan.arena == plan.live == 4 * (256 + 512)


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_says_how_much_is_alive_together(seed: int) -> None:
    rng = random.Random(seed)
    cluster = layered([[16 * rng.randint(1, 100) for _ in range(rng.randint(1, 3))] for _ in range(60)])
    plan = plan_memory(cluster, lambda node: (), 64)
    escaping = cluster.outputs[0]
    made = [sum(v.nbytes for v in node.outputs if v is not escaping) for node in cluster.nodes]
    assert plan.live == max(a + b for a, b in itertools.pairwise(made))
    assert plan.live <= plan.arena <= sum(made)


def refused(fetch: object, feeds: dict[tf.Tensor, np.ndarray]) -> str:
    """Returns what a run says on a device with 10,000 bytes."""
    config = tf.SessionConfig(memory_limit={"ASYNC": 10_000})
    with tf.Session(config=config) as session, pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        session.run(fetch, feeds)
    return str(caught.value)


def test_a_feed_that_does_not_fit_is_named() -> None:
    with tf.Graph().as_default(), tf.device("/device:ASYNC:0"):
        x = tf.placeholder(tf.float32, [None], name="x")
        said = refused(tf.reduce_sum(x), {x: np.zeros(10_000, np.float32)})
    assert said.startswith("Placeholder 'x': allocation of 40000 bytes was refused by the limit")
    assert "[/device:ASYNC:0, " in said


@pytest.mark.parametrize("value", [np.arange(10_000, dtype=np.float32), np.zeros(10_000, np.float32)])
def test_a_variable_that_does_not_fit_is_named(value: np.ndarray) -> None:
    with tf.Graph().as_default(), tf.device("/device:ASYNC:0"):
        said = refused(tf.Variable(value, name="v").initializer, {})
    assert "'v/Assign': allocation of 40000 bytes was refused by the limit" in said
    assert "[/device:ASYNC:0, " in said


class FullAllocator(Allocator):
    def raw(self, nbytes: int) -> object:
        raise MemoryError("64 of 100 bytes are free")


def test_where_memory_itself_is_used_up_no_limit_is_to_be_raised() -> None:
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        FullAllocator().allocate(80)
    assert str(caught.value) == (
        "allocation of 80 bytes was refused by the device (64 of 100 bytes are free): 0 bytes used; "
        "free tensors or use smaller batches"
    )

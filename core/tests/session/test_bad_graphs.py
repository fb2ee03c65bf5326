"""Graphs that cannot run: unknown devices and ops, missing kernels, impossible sizes, limits."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf

Invalid = tf.errors.InvalidArgumentError


def test_unknown_device_lists_the_devices(world, device_type: str) -> None:
    words = (
        f"Mul '.*': device /device:NOWHERE:3 does not exist; devices: /device:{device_type}:0.*; "
        f"place it on /device:{device_type}:0.*, or set allow_soft_placement=True"
    )
    with tf.device("/device:NOWHERE:3"):
        z = world.x * 2.0
    with pytest.raises(Invalid, match=words):
        world.session.run(z, {world.x: np.ones((1, 3))})


def test_soft_placement_moves_the_node_and_says_so(world) -> None:
    with tf.device("/device:NOWHERE:3"):
        z = tf.multiply(world.x, 2.0, name="doubled")
    with tf.Session(graph=world.session.graph, config=tf.SessionConfig(allow_soft_placement=True)) as soft:
        np.testing.assert_array_equal(soft.run(z, {world.x: np.ones((1, 3))}), [[2, 2, 2]])
        placement = next(p for p in soft.explain(z).placements if p.node == "doubled")
        assert "soft placement: /device:NOWHERE:3 does not exist" in placement.reason


def test_malformed_device_string(world) -> None:
    with pytest.raises(Invalid, match=r"device '/device:CPU:x'"), tf.device("/device:CPU:x"):
        pass


def test_unknown_ops_are_all_named(world) -> None:
    message = tf.GraphDef()
    for name in ("Frobnicate", "Defenestrate"):
        message.node.add(name=name, op=name)
    with pytest.raises(tf.errors.OpError, match=r"(?s)Defenestrate.*Frobnicate|Frobnicate.*Defenestrate"):
        tf.import_graph_def(message, name="")


def test_no_kernel_for_a_dtype_lists_what_there_is(world) -> None:
    words = tf.constant(["a", "b"])
    with pytest.raises(tf.errors.OpError, match=r"Mul"):
        world.session.run(tf.multiply(words, words))


def test_cyclic_graphdef(world) -> None:
    message = tf.GraphDef()
    for name, other in (("a", "b"), ("b", "a")):
        node = message.node.add(name=name, op="Identity", input=[other])
        node.attr["T"].type = tf.float32.as_datatype_enum
    with pytest.raises(Invalid, match=r"cycle"):
        tf.import_graph_def(message, name="")


def test_truncated_graphdef(world) -> None:
    whole = world.session.graph.as_graph_def().SerializeToString()
    with pytest.raises(Exception, match=r"(?i)truncated|pars"):
        tf.GraphDef().ParseFromString(whole[: len(whole) // 2])


def test_control_edge_that_closes_a_cycle(world) -> None:
    other = tf.Graph()
    with other.as_default():
        p = tf.constant([1.0])
        q = p * 2.0
        r = q * 3.0
        other.add_control_input(q.op, r.op)
        with tf.Session(graph=other) as session, pytest.raises(Invalid, match=r"part of the cycle .*must be acyclic"):
            session.run(r)


def test_graph_may_grow_between_runs(world) -> None:
    world.check()
    z = world.y * 10.0
    np.testing.assert_array_equal(world.session.run(z, {world.x: np.zeros((1, 3))}), [[10, 20, 30]])


def test_control_edge_added_between_runs_takes_effect(world) -> None:
    counter = tf.Variable(np.zeros((), np.float32))
    world.session.run(counter.initializer)
    count = counter.assign_add(1.0)
    z = world.x * 1.0
    world.session.run(z, {world.x: np.ones((1, 3))})
    world.session.graph.add_control_input(z.op, count.op)
    world.session.run(z, {world.x: np.ones((1, 3))})
    assert world.session.run(counter) == 1.0


@pytest.mark.cpu
def test_rank_above_eight_runs_where_dimensions_merge_and_says_so_where_not(world) -> None:
    x = tf.placeholder(tf.float32, None)
    y = tf.placeholder(tf.float32, None)
    z = tf.add(x, y, name="sum")
    assert world.session.run(z, {x: np.ones([1] * 10), y: np.ones([2] * 10)}).shape == (2,) * 10
    with pytest.raises(tf.errors.UnimplementedError, match=r"AddV2 'sum': 10 dimensions of different strides.*up to 8"):
        world.session.run(z, {x: np.ones([1, 2] * 5), y: np.ones([2, 1] * 5)})


def test_sizes_whose_product_passes_63_bits(world) -> None:
    huge = tf.fill(tf.placeholder_with_default([1 << 31, 1 << 31, 1 << 31], [3]), 1.0)
    with pytest.raises(Invalid, match=r"2\^63"):
        world.session.run(tf.reduce_sum(huge))


def test_fill_of_8_gigabytes_above_the_limit_names_the_node(world, device_type: str) -> None:
    message = tf.GraphDef()
    with tf.Graph().as_default() as other:
        tf.reduce_sum(tf.fill([1 << 31], 1.0, name="huge"), name="total")
        message.CopyFrom(other.as_graph_def())
    (total,) = tf.import_graph_def(message, return_elements=["total:0"], name="")
    config = tf.SessionConfig(memory_limit={device_type: 1 << 30})
    with (
        tf.Session(graph=world.session.graph, config=config) as small,
        pytest.raises(tf.errors.ResourceExhaustedError, match=r"'huge'.*8589934592.*limit is 1073741824 bytes"),
    ):
        small.run(total)


def test_memory_limit_is_kept_and_given_back(world, device_type: str) -> None:
    config = tf.SessionConfig(memory_limit={device_type: 1 << 20})
    with tf.Session(graph=world.session.graph, config=config) as small:
        n = tf.placeholder(tf.int32, [1])
        total = tf.reduce_sum(tf.tanh(tf.fill(n, 1.0)))
        allocator = small.list_devices()[0].allocator
        assert small.run(total, {n: [1000]}) > 0
        used = allocator.statistics().used
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"1048576"):
            small.run(total, {n: [1 << 20]})
        assert allocator.statistics().used == used
        assert small.run(total, {n: [1000]}) > 0


def test_error_in_a_kernel_leaves_the_variable_of_the_same_run(world) -> None:
    check = tf.check_numerics(world.x, "fed")
    update = world.weights.assign_add(tf.reduce_sum(check, axis=0))
    with pytest.raises(Invalid, match=r"fed"):
        world.session.run(update, {world.x: np.full((1, 3), np.inf)})


def test_assign_of_a_wrong_shape(world) -> None:
    z = tf.placeholder(tf.float32, None)
    assign = world.weights.assign(z)
    with pytest.raises(Invalid, match=r"shape"):
        world.session.run(assign, {z: np.ones(4)})

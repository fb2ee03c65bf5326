"""Running node by node: observer, trace, guard zones and poison."""

from __future__ import annotations

import itertools
import mmap
import time

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import InternalError, InvalidArgumentError, UnknownError
from timberframe_core.plugin.contracts import KernelDef, RunContext
from timberframe_cpu.native import native
from timberframe_sdk.testing import guard

F = np.float32


@pytest.mark.parametrize("mode", ["nodes", "guarded"])
def test_observer_sees_each_node_with_its_arrays(graph, mode):
    seen = []

    def observer(node, inputs, outputs):
        seen.append((node.name, [x.copy() for x in inputs], [y.copy() for y in outputs]))

    x = graph.input(F, 2)
    y = graph.op("Test>Negate", graph.op("AddV2", x, x, node="first"), node="second")
    z = graph.op("AddV2", y, x, node="third")
    (out,) = graph.run([z], np.array([1, 2], F), context=RunContext(mode=mode, observer=observer))
    np.testing.assert_array_equal(out, [-1, -2])
    assert [name for name, _, _ in seen] == ["first", "second", "third"]
    np.testing.assert_array_equal(seen[0][2][0], [2, 4])
    np.testing.assert_array_equal(seen[2][1], [[-2, -4], [1, 2]])


def test_trace_has_an_event_for_each_node(graph):
    class Sink:
        events = []

        def event(self, name, category, start, end, track, **details):
            self.events.append((name, category, track))
            assert end >= start

    x = graph.input(F, 2)
    y = graph.op("Mul", graph.op("AddV2", x, x, node="a"), x, node="b")
    graph.run([y], np.array([1, 2], F), context=RunContext(mode="nodes", trace=Sink()))
    assert Sink.events == [("a", "AddV2", "/device:CPU:0"), ("b", "Mul", "/device:CPU:0")]


class Events(list):
    """A sink that keeps name, start and end of each event."""

    def event(self, name, category, start, end, track, **details):
        self.append((name, start, end))


def test_events_of_a_trace_follow_each_other_within_the_run(graph):
    x = graph.input(F, 1 << 20)
    y = graph.op("Exp", graph.op("Exp", x, node="first"), node="second")
    events = Events()
    before = time.perf_counter_ns()
    graph.run([y], np.zeros(1 << 20, F), context=RunContext(mode="nodes", trace=events))
    after = time.perf_counter_ns()
    (_, first, middle), (_, again, last) = events
    assert before <= first < middle <= again < last <= after


def test_a_trace_of_a_failed_run_has_the_nodes_that_ended(graph):
    x = graph.input(np.int32, 2)
    y = graph.op("FloorDiv", graph.op("Neg", x, node="first"), x, node="second")
    events = Events()
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        graph.run([y], np.array([1, 0], np.int32), context=RunContext(mode="nodes", trace=events))
    assert [name for name, _, _ in events] == ["first"]


def test_a_python_kernel_that_fails_has_no_event(graph):
    def fail(node):
        def run(*arrays):
            raise ValueError("no")

        return run

    graph.device.kernels.register([KernelDef("Identity", "CPU", fail, priority=9)])
    x = graph.input(F, 2)
    y = graph.op("Identity", graph.op("Neg", x, node="first"), node="second")
    events = Events()
    with pytest.raises(UnknownError, match="no"):
        graph.run([y], np.ones(2, F), context=RunContext(mode="nodes", trace=events))
    assert [name for name, _, _ in events] == ["first"]


@pytest.fixture(params=[tf.constant, tf.Variable])
def packed(request):
    """A convolution of volumes by weights that are packed: the image, the result and the result's variables."""
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [1, 4, 4, 4, 2])
        y = tf.nn.conv3d(x, request.param(np.ones((3, 2, 3, 2, 70), F)), [1] * 5, "SAME", name="conv")
        yield x, y, tf.global_variables_initializer()


def test_a_shadow_computes_from_weights_as_they_were_before_they_were_packed(packed):
    x, y, initializer = packed
    config = tf.SessionConfig(device_count={"CPU": 2}, shadow_device="/device:CPU:1")
    with tf.Session(config=config) as session:
        session.run(initializer)
        assert session.run(y, {x: np.ones(x.shape, F)}).max() == 3 * 2 * 3 * 2


def test_a_trace_counts_operations_by_weights_as_they_were_before_they_were_packed(packed):
    x, y, initializer = packed
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(initializer)
        session.run(y, {x: np.ones(x.shape, F)}, tf.RunOptions(trace=True), metadata)
    (event,) = (e for e in metadata.trace["traceEvents"] if e["name"] == "conv")
    assert event["args"]["flops"] == 2 * y.shape.num_elements() * 3 * 2 * 3 * 2


def overrunning(graph, extra):
    """A kernel that writes `extra` bytes too much."""
    kernel = KernelDef("Identity", "CPU", lambda n: native("copy", n.outputs[0].nbytes + extra), priority=9)
    graph.device.kernels.register([kernel])


@pytest.mark.parametrize("fetched", [True, False])
def test_write_past_the_end_names_the_node(graph, fetched, monkeypatch):
    monkeypatch.setattr(guard, "_phases", itertools.count(1))  # after some phases one of the bytes is there already
    overrunning(graph, 4)
    x = graph.input(F, 16)
    inner = graph.op("AddV2", x, x)
    y = graph.op("Identity", inner, node="long")
    out = y if fetched else graph.op("AddV2", y, x)
    with pytest.raises(InternalError, match=r"Identity 'long': .*output.*: 4 bytes after it were written.* offset 0"):
        graph.run([out], np.ones(16, F), context=RunContext(mode="guarded"))


def test_write_past_the_end_inside_a_loop_is_found(graph, counting):
    overrunning(graph, 4)
    body = graph.body()
    i, a = body.input(F), body.input(F, 16)
    copied = body.op("Identity", body.op("AddV2", a, a))
    body = body.cluster(body.op("AddV2", i, body.const(1.0)), body.op("AddV2", copied, a))
    x = graph.input(F, 16)
    out = graph.loop(graph.const(0.0), x, cond=counting(graph, 2, [(F, (16,))]), body=body)
    with pytest.raises(InternalError, match=r"While 'loop': .* bytes between tensors were written"):
        graph.run(out, np.ones(16, F), context=RunContext(mode="guarded"))


@pytest.mark.parametrize("fence", ["", "start", "end"])
def test_guarded_run_of_loops_gives_the_values(graph, counting, fence):
    body = graph.body()
    i, a, b = body.input(F), body.input(F, 3), body.input(F, 3)
    body = body.cluster(body.op("AddV2", i, body.const(1.0)), body.op("Sub", b, a), a)
    x = graph.input(F, 3)
    cond = counting(graph, 3, [(F, (3,)), (F, (3,))])
    out = graph.loop(graph.const(0.0), x, graph.const([9.0, 9.0, 9.0]), cond=cond, body=body)
    feed = np.array([1, 2, 3], F)
    plain = graph.run(out, feed)
    guarded = graph.run(out, feed, context=RunContext(mode="guarded", fence=fence))
    for a, b in zip(plain, guarded, strict=True):
        np.testing.assert_array_equal(a, b)


def test_memory_is_poisoned_before_a_guarded_run(graph):
    kernel = KernelDef("Identity", "CPU", lambda n: native("copy", 0), priority=9)  # writes nothing
    graph.device.kernels.register([kernel])
    x = graph.input(np.uint8, 4)
    (out,) = graph.run([graph.op("Identity", x)], np.zeros(4, np.uint8), context=RunContext(mode="guarded"))
    assert out.tolist() == [0x7F] * 4


@pytest.mark.parametrize("fence", ["start", "end"])
def test_intermediate_tensors_of_a_fenced_run_lie_at_a_page(graph, fence):
    addresses = []

    def observer(node, inputs, outputs):
        addresses.extend(x.ctypes.data + (x.nbytes if fence == "end" else 0) for x in outputs)

    x = graph.input(F, 5)
    y = graph.op("Square", graph.op("AddV2", x, x))
    graph.run([y], np.ones(5, F), context=RunContext(mode="guarded", observer=observer, fence=fence))
    assert [a % mmap.PAGESIZE for a in addresses] == [0, 0]


def test_intermediate_tensors_of_a_fenced_run_share_no_page(graph):
    pages = []

    def observer(node, inputs, outputs):
        pages.extend(x.ctypes.data // mmap.PAGESIZE for x in outputs)

    x = graph.input(F, 5)
    y = graph.op("Square", graph.op("AddV2", graph.op("Neg", x), x))
    graph.run([y], np.ones(5, F), context=RunContext(mode="guarded", observer=observer, fence="start"))
    assert all(abs(a - b) > 1 for a in pages for b in pages if a != b)

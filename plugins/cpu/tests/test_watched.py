"""Running node by node: observer, trace, guard zones and poison."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from timberframe_core.errors import InternalError
from timberframe_core.plugin.contracts import KernelDef, RunContext
from timberframe_cpu.native import native

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


def overrunning(graph, extra):
    """A kernel that writes `extra` bytes too much."""
    kernel = KernelDef("Identity", "CPU", lambda n: native("copy", n.outputs[0].nbytes + extra), priority=9)
    graph.device.kernels.register([kernel])


@pytest.mark.parametrize("fetched", [True, False])
def test_write_past_the_end_names_the_node(graph, fetched):
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

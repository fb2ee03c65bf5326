"""The device itself: settings, copies, allocator, arenas."""

from __future__ import annotations

import numpy as np
import pytest

from timberframe_core.dtypes import float32, int32
from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError
from timberframe_core.plugin.contracts import KernelNode, RunContext
from timberframe_cpu.device import CpuDevice, devices
from timberframe_cpu.native import available_isas

F = np.float32


def test_settings_make_as_many_devices_as_asked():
    made = devices({"count": {"CPU": 3}, "threads": 2, "memory_limit": {"CPU": 1000}})
    assert [d.spec for d in made] == ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert {d.threads for d in made} == {2}
    assert made[0].allocator.statistics().limit == 1000


def test_unknown_option_is_named():
    with pytest.raises(InvalidArgumentError, match="options speed are not known; known are isa, matmul_precision"):
        devices({"options": {"CPU": {"speed": "fast"}}})


def test_unknown_instruction_set_names_its_option():
    with pytest.raises(InvalidArgumentError, match="/device:CPU:0: device option isa is 'neon'; this machine has"):
        devices({"options": {"CPU": {"isa": "neon"}}, "count": {}, "threads": 1, "memory_limit": {}})


@pytest.mark.parametrize("isa", available_isas())
def test_every_variant_runs(new_device, new_graph, isa):
    graph = new_graph(new_device(isa=isa))
    x = graph.input(F, 37)
    feed = np.linspace(-3, 3, 37, dtype=F)
    (out,) = graph.run([graph.op("Mul", graph.op("AddV2", x, x), x)], feed)
    np.testing.assert_array_equal(out, 2 * feed * feed)


def test_support_tells_why_not(device):
    node = KernelNode("Test>Nothing", "n", {"T": float32}, [], [], device)
    assert device.supports(node) == "no kernel is registered"
    node = KernelNode("Xdivy", "n", {"T": int32}, [], [], device)
    assert "T=int32 is not one of" in device.supports(node)


def test_dense_host_array_is_taken_as_it_is(device):
    x = np.arange(6, dtype=F).reshape(2, 3)
    assert device.copy_in(x) is x
    assert device.copy_in(x.T).flags.c_contiguous


def test_scalar_stays_a_scalar(device):
    assert device.copy_in(np.array(3, F)).shape == ()


def test_buffers_are_aligned_and_counted(device):
    before = device.allocator.statistics()
    buffer = device.allocator.allocate(1000)
    assert buffer.handle.ctypes.data % device.allocator.alignment == 0
    assert device.allocator.statistics().used == before.used + 1000
    buffer.close()
    buffer.close()
    assert device.allocator.statistics().used == before.used


def test_impossible_size_is_refused():
    device = CpuDevice(memory_limit=1 << 70)
    with pytest.raises(ResourceExhaustedError, match="refused by the device"):
        device.allocator.allocate(1 << 66)


def test_large_array_gives_its_memory_back(device):
    before = device.allocator.statistics().used
    x = device.empty(np.dtype(F), (1 << 16,))
    view = x[1:]
    del x
    assert device.allocator.statistics().used == before + (1 << 18)
    del view
    assert device.allocator.statistics().used == before


def test_idle_arenas_make_room_when_the_limit_is_near(new_device, new_graph):
    device = new_device(memory_limit=6 << 20)

    def program(size):
        graph = new_graph(device)
        x = graph.input(F, size)
        y = graph.op("AddV2", graph.op("Mul", x, x), graph.op("Sub", x, graph.const(1.0)))
        return device.compile(graph.cluster(graph.op("Sub", y, x)))

    small, large = program(200_000), program(450_000)
    small.run([np.zeros(200_000, F)], RunContext())
    assert device.allocator.statistics().used >= 800_000  # its arena is idle
    large.run([np.zeros(450_000, F)], RunContext())
    device.close()
    assert device.allocator.statistics().used == 0


@pytest.mark.parametrize("nth", [0, 1, 2])
def test_failing_allocation_leaves_nothing_behind(new_device, new_graph, nth):
    device = new_device()
    graph = new_graph(device)
    x = graph.input(F, 100_000)
    y = graph.op("AddV2", graph.op("Mul", x, x), x)
    outputs = [graph.op("Sub", y, x), graph.op("Mul", y, x)]
    executable = device.compile(graph.cluster(*outputs))
    device.allocator.fail_at = nth
    with pytest.raises(ResourceExhaustedError, match="an injected fault"):
        executable.run([np.zeros(100_000, F)], RunContext())
    assert device.allocator.statistics().used == 0
    assert len(executable.run([np.zeros(100_000, F)], RunContext())) == 2


def test_a_device_shows_its_name_and_model() -> None:
    assert repr(CpuDevice()).startswith("<Device /job:localhost/replica:0/task:0/device:CPU:0 (")
